//! The checks, in the order in which one depends on another.

use std::path::Path;

use dodona_hub::HubConfig;
use dodona_proto::{CallError, PluginState, PluginStatus};
use dodona_store::{DatabaseReport, Durability, Store};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::finding::Finding;
use super::machine;
use crate::config::{self, ConfigError};
use crate::failure::in_full;
use crate::home::{self, Home};
use crate::owner::{OwnerError, Ownership};
use crate::quantity::show_size;
use crate::session::{Ask, Session};

/// Everything there is to find. No finding keeps another from being made.
pub(super) async fn all(home: &Home) -> Vec<Finding> {
    let mut findings = directories(home);
    let (config, finding) = settings(&home.config_file());
    findings.push(finding);
    let (session, finding) = session(home, config.clone()).await;
    findings.extend(finding);
    findings.extend(databases(home, config).await);
    if let Some(session) = session {
        findings.push(journal(&session).await);
        findings.extend(plugins(&session).await);
        session.close().await;
    }
    findings.push(machine::disk(&home.data));
    findings.push(machine::clock(&home.data));
    findings
}

fn directories(home: &Home) -> Vec<Finding> {
    const CHECK: &str = "directory";
    if let Err(error) = home.create() {
        let advice = format!("set {} to a directory you can write to", home::VARIABLE);
        return vec![Finding::wrong(CHECK, in_full(&error), advice)];
    }
    let private = home.directories().into_iter().map(|dir| (dir, 0o700));
    let token = Some((home.token.as_path(), 0o600)).filter(|(path, _)| path.exists());
    private
        .chain(token)
        .map(|(path, mode)| match machine::others_may_see(path) {
            true => Finding::wrong(
                CHECK,
                format!("other users may look into `{}`", path.display()),
                format!("run `chmod {mode:o} '{}'`", path.display()),
            ),
            false => Finding::ok(CHECK, path.display().to_string()),
        })
        .collect()
}

/// The settings, or the defaults where they have faults.
fn settings(file: &Path) -> (HubConfig, Finding) {
    const CHECK: &str = "settings";
    match config::load(file) {
        Ok(config) if file.exists() => (config, Finding::ok(CHECK, file.display().to_string())),
        Ok(config) => (config, Finding::ok(CHECK, "the defaults")),
        Err(error) => {
            let advice = match &error {
                ConfigError::Read { .. } => "check its permissions",
                ConfigError::Wrong { .. } => {
                    "correct the file; until then every command that needs it fails"
                }
            };
            let finding = Finding::wrong(CHECK, in_full(&error), advice);
            (HubConfig::default(), finding)
        }
    }
}

/// A session, if nobody else owns the home and a hub starts on it.
async fn session(home: &Home, config: HubConfig) -> (Option<Session>, Vec<Finding>) {
    const OWNER: &str = "owner";
    let ownership = match Ownership::take(&home.data) {
        Ok(ownership) => ownership,
        Err(error @ OwnerError::Held { .. }) => {
            let looked = "; journal and plugins are its own and were not looked at";
            let finding = Finding::skipped(OWNER, format!("{error}{looked}"));
            return (None, vec![finding]);
        }
        Err(error @ OwnerError::Lock { .. }) => {
            let advice = "make the data directory writable for yourself";
            return (None, vec![Finding::wrong(OWNER, in_full(&error), advice)]);
        }
    };
    let free = Finding::ok(OWNER, "no other process is using the home directory");
    match Session::own(home, config, ownership).await {
        Ok(session) => (Some(session), vec![free]),
        Err(error) => {
            let advice = "nothing can be called until this is mended; see below";
            let finding = Finding::wrong("start", in_full(&error), advice);
            (None, vec![free, finding])
        }
    }
}

/// Reads all of every database, and changes none.
async fn databases(home: &Home, config: HubConfig) -> Vec<Finding> {
    const ENGINE: &str = "engine";
    if !home.data.is_dir() {
        return Vec::new();
    }
    let store = match Store::open(&home.data, config.store) {
        Ok(store) => store,
        Err(error) => return vec![Finding::wrong(ENGINE, in_full(&error), "update dodona")],
    };
    let reports = store.check().await;
    let engine = match version(&store, &reports).await {
        Some(version) => Finding::ok(ENGINE, format!("SQLite {version}")),
        None => Finding::skipped(ENGINE, "no database is sound enough to ask for its version"),
    };
    store.close().await;
    let reports = reports.iter().map(database);
    std::iter::once(engine).chain(reports).collect()
}

async fn version(store: &Store, reports: &[DatabaseReport]) -> Option<String> {
    for report in reports.iter().filter(|report| report.problems.is_empty()) {
        let db = store.database(&report.file, Durability::Full);
        let asked = db
            .read(|tx| tx.query_one("select sqlite_version()", (), |row| row.get(0)))
            .await;
        if let Ok(version) = asked {
            return Some(version);
        }
    }
    None
}

fn database(report: &DatabaseReport) -> Finding {
    const CHECK: &str = "database";
    let file = &report.file;
    if report.problems.is_empty() {
        let version = report.version.unwrap_or_default();
        let size = show_size(report.size_bytes);
        return Finding::ok(CHECK, format!("{file} · version {version} · {size}"));
    }
    let message = format!("{file}\n{}", report.problems.join("\n"));
    let advice = format!(
        "stop dodona, keep a copy of the file, then put the newest `{file}.before-v*.bak` in its \
         place, or remove it to begin anew"
    );
    Finding::wrong(CHECK, message, advice)
}

async fn journal(session: &Session) -> Finding {
    const CHECK: &str = "journal";
    #[derive(Deserialize)]
    struct Health {
        recovered_streams: u64,
        recovered_calls: u64,
    }
    match ask::<Health>(session, "hub.health").await {
        Ok(Health {
            recovered_streams: 0,
            recovered_calls: 0,
        }) => Finding::ok(CHECK, "nothing was interrupted"),
        Ok(health) => Finding::ok(
            CHECK,
            format!(
                "closed what an earlier process left open: {} streams, {} calls",
                health.recovered_streams, health.recovered_calls
            ),
        ),
        Err(error) => Finding::wrong(CHECK, error.message, "see the databases above"),
    }
}

async fn plugins(session: &Session) -> Vec<Finding> {
    const CHECK: &str = "plugin";
    #[derive(Deserialize)]
    struct Plugins {
        plugins: Vec<PluginStatus>,
    }
    let plugins = match ask::<Plugins>(session, "hub.plugins").await {
        Ok(answer) => answer.plugins,
        Err(error) => return vec![Finding::wrong(CHECK, error.message, "see above")],
    };
    plugins.iter().map(plugin).collect()
}

fn plugin(status: &PluginStatus) -> Finding {
    const CHECK: &str = "plugin";
    let version = status.version.as_deref().unwrap_or_default();
    let named = format!("{} {version}", status.name);
    let reason = status.reason.as_deref().unwrap_or("it gives no reason");
    match status.state {
        PluginState::Active => Finding::ok(CHECK, named),
        PluginState::Disabled => Finding::skipped(CHECK, format!("{named} is switched off")),
        PluginState::SkippedDependency => Finding::wrong(
            CHECK,
            format!("{named} was not started: {reason}"),
            "mend what it needs",
        ),
        PluginState::Failed | PluginState::Discovered | PluginState::Loaded => Finding::wrong(
            CHECK,
            format!("{named} is not active: {reason}"),
            "mend the reason; its methods cannot be called until the next start",
        ),
    }
}

async fn ask<T: DeserializeOwned>(session: &Session, method: &str) -> Result<T, CallError> {
    let answer = session.call(Ask::new(method, json!({}))).await?;
    serde_json::from_value(answer).map_err(|error| {
        let message = format!("could not read what {method} answered: {error}");
        CallError::new(dodona_proto::ErrorCode::Internal, message)
    })
}
