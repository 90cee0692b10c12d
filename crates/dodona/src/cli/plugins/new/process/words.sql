-- Migrations are numbered from 0001. One that was applied must not change: add the next.
CREATE TABLE word (
    id   INTEGER PRIMARY KEY,
    word TEXT NOT NULL
) STRICT;
