//! The agent on a real hub, and its conversations on a real database.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod accounting;
mod archives;
mod chat;
mod compacting;
mod compaction;
mod contexts;
mod crashes;
mod delegates;
mod faults;
mod hook_order;
mod integration;
mod lazy;
mod long;
mod memory;
mod methods;
mod notices;
mod offline;
mod prefix;
mod queries;
mod replays;
mod results;
mod rules;
mod steward;
mod storage;
mod survival;
mod talk;
mod tool_endings;
mod trees;
mod usage;
