//! The tables.

use dodona_plugin::store::Migration;

/// In the database of the plugin `rules`.
pub(crate) const MIGRATIONS: &[Migration] = &[Migration::new(
    1,
    "the execution log, and how alive rules are",
    "
    create table rule_execution_log (
        id                integer primary key autoincrement,
        user_id           text not null,
        project_id        text not null,
        rule_id           text not null,
        trigger           text not null,
        condition_result  integer not null,
        action_executed   integer not null,
        execution_time_ms real not null,
        error_message     text,
        created_at        text not null,
        context_id        text,
        query_id          text,
        turn              integer not null,
        decisions_json    text not null
    ) strict;
    create index idx_rule_log_lookup on rule_execution_log(user_id, project_id, created_at desc);
    create index idx_rule_log_rule on rule_execution_log(rule_id, id desc);

    create table rule_liveness (
        rule_id        text primary key,
        evaluated      integer not null,
        fired          integer not null,
        failed         integer not null,
        suppressed     integer not null,
        last_evaluated text,
        last_fired     text,
        last_failed    text,
        last_error     text
    ) strict;
    ",
)];
