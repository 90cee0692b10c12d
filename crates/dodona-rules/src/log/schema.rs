//! The tables.

use dodona_plugin::store::Migration;

/// In the database of the plugin `rules`.
pub(crate) const MIGRATIONS: &[Migration] = &[LOG, LIVENESS_BY_USER, LIVENESS_BY_PLACE, LINES];

/// Levels are stored as 0 (debug) to 3 (error), so that a level and those above it are one comparison.
const LINES: Migration = Migration::new(
    4,
    "lines that rules log",
    "
    create table rule_log_lines (
        id         integer primary key autoincrement,
        user_id    text not null,
        project_id text not null,
        rule_id    text not null,
        level      integer not null check (level between 0 and 3),
        message    text not null,
        trigger    text not null,
        created_at text not null,
        context_id text,
        query_id   text
    ) strict;
    create index idx_rule_log_lines on rule_log_lines(user_id, project_id, id desc);
    ",
);

/// Evaluations are counted by user and project too, in queries and outside of them apart. Earlier
/// numbers of evaluations have no user and are dropped; a rule was evaluated at least as often as it
/// fired, was suppressed or failed.
const LIVENESS_BY_PLACE: Migration = Migration::new(
    3,
    "evaluations by user, in queries and outside of them; dropped notifications",
    "
    create table rule_liveness_anew (
        user_id        text not null,
        project_id     text not null,
        rule_id        text not null,
        outside        integer not null check (outside in (0, 1)),
        evaluated      integer not null,
        fired          integer not null,
        failed         integer not null,
        suppressed     integer not null,
        dropped        integer not null,
        last_evaluated text,
        last_fired     text,
        last_failed    text,
        last_error     text,
        primary key (user_id, project_id, rule_id, outside)
    ) strict, without rowid;
    insert into rule_liveness_anew
        select user_id, project_id, rule_id, 0, max(fired + suppressed, failed), fired, failed,
            suppressed, 0, nullif(max(coalesce(last_fired, ''), coalesce(last_failed, '')), ''),
            last_fired, last_failed, last_error
        from rule_liveness where user_id <> '';
    drop table rule_liveness;
    alter table rule_liveness_anew rename to rule_liveness;
    alter table rule_execution_log add column dropped text;
    ",
);

/// Error texts belong to the user whose call failed. Earlier ones cannot be told apart and are
/// dropped; how often a rule was evaluated is counted for all users together and stays.
const LIVENESS_BY_USER: Migration = Migration::new(
    2,
    "liveness by user and project",
    "
    create table rule_liveness_anew (
        user_id        text not null,
        project_id     text not null,
        rule_id        text not null,
        evaluated      integer not null,
        fired          integer not null,
        failed         integer not null,
        suppressed     integer not null,
        last_evaluated text,
        last_fired     text,
        last_failed    text,
        last_error     text,
        primary key (user_id, project_id, rule_id)
    ) strict, without rowid;
    insert into rule_liveness_anew
        select '', '', rule_id, evaluated, 0, 0, 0, last_evaluated, null, null, null
        from rule_liveness;
    drop table rule_liveness;
    alter table rule_liveness_anew rename to rule_liveness;
    ",
);

const LOG: Migration = Migration::new(
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
);
