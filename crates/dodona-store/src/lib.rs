//! Databases and the journal.
