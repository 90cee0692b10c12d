//! The tables of the journal, and the statements on them.

use crate::Migration;

pub(super) const MIGRATIONS: &[Migration] = &[TABLES, ONCE, CAUSES, CLOCK];

const ONCE: Migration = Migration::new(
    2,
    "an event is stored once",
    "create unique index records_by_event on records(event_id) where event_id is not null",
);

const CAUSES: Migration = Migration::new(
    3,
    "what led to an event",
    "alter table records add column causes text",
);

const CLOCK: Migration = Migration::new(
    4,
    "the clock that retention trusts",
    "create table clock (
        id         integer primary key check (id = 1),
        trusted_ms integer not null,
        credit_ms  integer not null
    )",
);

const TABLES: Migration = Migration::new(
    1,
    "streams, items, mutating calls, records",
    "
    create table streams (
        no         integer primary key,
        stream_id  text not null unique,
        user_id    text not null,
        project_id text,
        surface    text not null,
        method     text not null,
        params     text not null,
        began_at   integer not null,
        ended_at   integer,
        status     text,
        reason     text
    );
    create index streams_open on streams(no) where ended_at is null;
    create index streams_by_end on streams(ended_at) where ended_at is not null;

    create table items (
        stream_no  integer not null,
        seq        integer not null,
        call       text not null,
        path       text not null,
        kind       integer not null,
        body       text not null,
        at         integer not null,
        primary key (stream_no, seq)
    ) without rowid;

    create table calls (
        no         integer primary key,
        call_id    text not null,
        path       text not null,
        method     text not null,
        user_id    text not null,
        project_id text,
        params     text not null,
        began_at   integer not null,
        ended_at   integer,
        status     text,
        code       text
    );
    create index calls_open on calls(call_id) where ended_at is null;
    create index calls_by_start on calls(began_at);

    create table records (
        no         integer primary key,
        kind       text not null check (kind in ('event', 'trigger', 'decision')),
        type       text not null,
        source     text not null,
        severity   text,
        event_id   text,
        user_id    text,
        project_id text,
        call_id    text,
        at         integer not null,
        body       text not null
    );
    create index records_by_time on records(at);
    create index records_by_type on records(kind, type, no);
    ",
);

pub(super) const NEXT_STREAM: &str = "select coalesce(max(no), 0) + 1 from streams";

pub(super) const BEGIN_STREAM: &str = "
    insert into streams (no, stream_id, user_id, project_id, surface, method, params, began_at)
    values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";

pub(super) const END_STREAM: &str =
    "update streams set ended_at = ?2, status = ?3, reason = ?4 where no = ?1";

pub(super) const END_OPEN_STREAM: &str =
    "update streams set ended_at = ?2, status = ?3, reason = ?4 where no = ?1 and ended_at is null";

pub(super) const STREAM_HEAD: &str = "
    select stream_id, user_id, project_id, surface, method, params, began_at, ended_at, status, reason
    from streams where stream_id = ?1";

pub(super) const ADD_ITEM: &str = "
    insert into items (stream_no, seq, call, path, kind, body, at) values (?1, ?2, ?3, ?4, ?5, ?6, ?7)";

pub(super) const READ_ITEMS: &str = "
    select i.call, i.seq, i.path, i.kind, i.body
    from items i join streams s on s.no = i.stream_no
    where s.stream_id = ?1 and i.seq > ?2 order by i.seq limit ?3";

pub(super) const BEGIN_CALL: &str = "
    insert into calls (call_id, path, method, user_id, project_id, params, began_at)
    values (?1, ?2, ?3, ?4, ?5, ?6, ?7)";

pub(super) const END_CALL: &str = "update calls set ended_at = ?2, status = ?3, code = ?4 where call_id = ?1 and ended_at is null";

pub(super) const RECENT_CALLS: &str = "
    select call_id, path, method, user_id, project_id, params, began_at, ended_at, status, code
    from calls order by no desc limit ?1";

/// The newest calls are searched first: recovery looks for calls of the last process.
pub(super) const CALL_STATUS: &str =
    "select status from calls where call_id = ?1 and ended_at is not null order by no desc limit 1";

pub(super) const ADD_RECORD: &str = "
    insert into records (kind, type, source, severity, event_id, user_id, project_id, call_id, at, body, causes)
    values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
    on conflict (event_id) where event_id is not null do nothing";

pub(super) const RECENT_EVENTS: &str = "
    select type, source, severity, event_id, user_id, project_id, call_id, at, body, causes from records
    where kind = 'event' and (?1 = '' or type = ?1 or substr(type, 1, length(?2)) = ?2)
    order by no desc limit ?3";

/// In the order of rows, which the plus signs say: an index by kind or time would have to sort.
pub(super) const EVENTS_FORWARDS: &str = "
    select no, type, source, severity, event_id, user_id, project_id, call_id, at, body, causes from records
    where no > ?1 and +kind = 'event' and user_id = ?2 and (?3 is null or project_id = ?3)
    and (?4 = '' or instr(?4, ',' || type || ',') > 0) and +at >= ?5 and +at <= ?6
    order by no limit ?7";

pub(super) const EVENTS_BACKWARDS: &str = "
    select no, type, source, severity, event_id, user_id, project_id, call_id, at, body, causes from records
    where no < ?1 and +kind = 'event' and user_id = ?2 and (?3 is null or project_id = ?3)
    and (?4 = '' or instr(?4, ',' || type || ',') > 0) and +at >= ?5 and +at <= ?6
    order by no desc limit ?7";

/// By the index of types: the events of a type may be few among all.
pub(super) const EVENTS_BELOW: &str = "
    select no, type, source, severity, event_id, user_id, project_id, call_id, at, body, causes from records
    where kind = 'event' and (type = ?1 or (type > ?1 || '.' and type < ?1 || '/'))
    and user_id = ?2 and (?3 is null or project_id = ?3)
    order by no desc limit ?4";

pub(super) const FIRST_SINCE: &str = "select min(no) from records where at >= ?1";

pub(super) const OPEN_STREAMS: &str = "
    select no, stream_id, method, user_id, project_id, params
    from streams where ended_at is null order by no";

pub(super) const INTERRUPTED_STREAM: &str = "
    select no, method, (select coalesce(max(seq), 0) from items where stream_no = streams.no)
    from streams where stream_id = ?1 and status = 'failed' and reason = ?2";

pub(super) const DROP_ITEM: &str =
    "delete from items where stream_no = ?1 and seq = ?2 and kind = ?3";

pub(super) const CALLS_OF_ITEMS: &str = "select call, path, kind, seq from items where stream_no = ?1 and seq > ?2 order by seq limit 4096";

pub(super) const END_OPEN_CALLS: &str =
    "update calls set ended_at = ?1, status = ?2, code = ?3 where ended_at is null";

pub(super) const ENDED_BEFORE: &str = "select no, ended_at from streams where ended_at is not null and ended_at < ?1 order by ended_at limit ?2";

pub(super) const DROP_ITEMS: &str = "delete from items where stream_no = ?1 and seq in
    (select seq from items where stream_no = ?1 order by seq limit ?2)";

pub(super) const DROP_STREAM: &str = "delete from streams where no = ?1";

pub(super) const DROP_CALLS: &str = "delete from calls where no in
    (select no from calls where began_at < ?1 and ended_at is not null order by began_at limit ?2)";

pub(super) const DROP_RECORDS: &str = "delete from records where no in
    (select no from records where at < ?1 order by no limit ?2)";

pub(super) const OLDEST: &str = "select min(t) from (
    select min(ended_at) as t from streams where ended_at is not null
    union all select min(began_at) from calls where ended_at is not null
    union all select min(at) from records)";

pub(super) const NEWEST: &str = "select max(t) from (
    select max(began_at) as t from streams
    union all select max(began_at) from calls
    union all select max(at) from records)";

pub(super) const BYTES: &str = "select
    (select coalesce(sum(octet_length(body)) + count(*) * 64, 0) from items)
    + (select coalesce(sum(octet_length(body)) + count(*) * 128, 0) from records)
    + (select coalesce(sum(octet_length(params)) + count(*) * 160, 0) from calls)";

/// The oldest of each table with their sizes, as [`BYTES`] counts them. The newest stream is never
/// among them: a stream larger than the bound is kept until another one ends.
pub(super) const OLDEST_STREAMS: &str = "select no, ended_at from streams
    where ended_at is not null
    and no != (select no from streams where ended_at is not null order by ended_at desc, no desc limit 1)
    order by ended_at, no limit ?1";

pub(super) const OLDEST_CALLS: &str = "select no, began_at, octet_length(params) + 160 from calls
    where ended_at is not null order by began_at, no limit ?1";

pub(super) const OLDEST_RECORDS: &str =
    "select no, at, octet_length(body) + 128 from records order by at, no limit ?1";

pub(super) const FIRST_ITEMS_SIZE: &str =
    "select coalesce(sum(octet_length(body)) + count(*) * 64, 0)
    from (select body from items where stream_no = ?1 order by seq limit ?2)";

pub(super) const DROP_CALL: &str = "delete from calls where no = ?1";

pub(super) const DROP_RECORD: &str = "delete from records where no = ?1";

pub(super) const START_CLOCK: &str = "insert into clock (id, trusted_ms, credit_ms)
    values (1, ?1, 0) on conflict do nothing";

pub(super) const READ_CLOCK: &str = "select trusted_ms, credit_ms from clock where id = 1";

pub(super) const SET_CLOCK: &str = "update clock set trusted_ms = ?1, credit_ms = ?2 where id = 1";

/// On how many different days after a time something was written.
pub(super) const DAYS_SINCE: &str =
    "select count(distinct began_at / 86400000) from streams where began_at > ?1";
