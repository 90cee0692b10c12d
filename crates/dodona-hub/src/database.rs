//! The schema of `hub.db`.

use dodona_store::Migration;

/// File name in the data directory.
pub(crate) const FILE: &str = "hub.db";

pub(crate) const MIGRATIONS: &[Migration] = &[
    TABLES,
    APPROVALS,
    STATE_VERSIONS,
    TRUSTED_FILES,
    FOLLOWED_PROJECTS,
];

const TABLES: Migration = Migration::new(
    1,
    "accounts, projects, settings, state, approvals, trust, roster",
    "
    create table users (
        id          text primary key,
        created_at  text not null
    ) strict;

    create table tokens (
        id          text primary key,
        user_id     text not null references users(id) on delete cascade,
        name        text not null,
        hash        blob not null unique,
        scopes      text not null,
        created_at  text not null,
        expires_at  text,
        revoked_at  text,
        unique (user_id, name)
    ) strict;

    create table projects (
        id          text primary key,
        root        text not null unique,
        vault       text,
        created_at  text not null
    ) strict;

    create table project_members (
        project_id  text not null references projects(id) on delete cascade,
        user_id     text not null,
        primary key (project_id, user_id)
    ) strict, without rowid;

    create table user_settings (
        user_id              text primary key,
        disabled_rules_json  text not null default '[]',
        plugin_settings_json text not null default '{}'
    ) strict;

    create table plugin_state (
        id          integer primary key autoincrement,
        user_id     text not null,
        project_id  text not null,
        plugin_id   text not null,
        key         text not null,
        value_json  text not null,
        created_at  text not null default (datetime('now')),
        updated_at  text not null default (datetime('now')),
        unique (user_id, project_id, plugin_id, key)
    ) strict;
    create index idx_plugin_state_lookup on plugin_state(user_id, project_id, plugin_id);

    create table approvals (
        id          text primary key,
        call_id     text not null,
        user_id     text not null,
        method      text not null,
        params_json text not null,
        message     text not null,
        asked_at    text not null,
        answer      text check (answer in ('approved', 'denied', 'expired')),
        answered_by text,
        answered_at text
    ) strict;

    create table trust (
        root        text primary key,
        hash        text not null,
        granted_by  text not null,
        granted_at  text not null
    ) strict;

    create table roster_state (
        plugin      text primary key,
        state_json  text not null
    ) strict;
    ",
);

/// The table of the first version was never written to.
const APPROVALS: Migration = Migration::new(
    2,
    "approvals with path, project, plugin, state and reason",
    "
    drop table approvals;

    create table approvals (
        id          text primary key,
        call_id     text not null,
        path        text not null,
        method      text not null,
        params_json text not null,
        user_id     text not null,
        project_id  text,
        plugin      text,
        message     text not null,
        state       text not null check (state in ('pending', 'approved', 'denied', 'expired', 'cancelled')),
        answered_by text,
        reason      text,
        created_at  text not null,
        answered_at text
    ) strict;
    create index idx_approvals_state on approvals(state, created_at);
    create index idx_approvals_answered on approvals(answered_at);
    ",
);

const STATE_VERSIONS: Migration = Migration::new(
    3,
    "how often the state of a plugin has changed",
    "
    create table plugin_state_version (
        user_id     text not null,
        project_id  text not null,
        plugin_id   text not null,
        version     integer not null,
        primary key (user_id, project_id, plugin_id)
    ) strict, without rowid;
    ",
);

const TRUSTED_FILES: Migration = Migration::new(
    4,
    "which files of a project are trusted",
    "alter table trust add column files_json text not null default '{}';",
);

const FOLLOWED_PROJECTS: Migration = Migration::new(
    5,
    "which projects are trusted with their later changes",
    "alter table trust add column follow text not null default 'nothing'
        check (follow in ('nothing', 'rules', 'everything'));",
);
