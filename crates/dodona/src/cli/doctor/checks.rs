//! The checks, in the order in which one depends on another.

use std::path::Path;

use dodona_hub::Approvers;
use dodona_llm::{Models, process_environment};
use dodona_plugin::reading::Problem;
use dodona_proto::{PluginState, PluginStatus};
use dodona_store::{DatabaseReport, DbError, Durability, Store};
use serde::Deserialize;
use serde_json::json;

use super::finding::Finding;
use super::{machine, rules};
use crate::cli::agents;
use crate::config::{self, ConfigError, Settings};
use crate::failure::in_full;
use crate::home::{self, Home};
use crate::owner::{OwnerError, OwnerNote, Ownership};
use crate::quantity::show_size;
use crate::schema::{self, NewerHome};
use crate::session::Session;

/// Everything there is to find. No finding keeps another from being made.
pub(super) async fn all(home: &Home) -> Vec<Finding> {
    let mut findings = places(home);
    let (config, finding) = settings(&home.config_file());
    findings.push(finding);
    findings.push(model(&config));
    if home.data.is_dir() {
        let (owner, found) = owner(home, config.clone()).await;
        findings.extend(found);
        findings.extend(databases(home, config, owner.access()).await);
        if let Owner::Session(mut session) = owner {
            findings.push(journal(&session).await);
            findings.extend(plugins(&session).await);
            findings.extend(rules::check(&mut session).await);
            findings.extend(agents(&session).await);
            session.close().await;
        }
    }
    findings.push(machine::disk(&home.data));
    findings.push(machine::clock(&home.data));
    findings
}

fn places(home: &Home) -> Vec<Finding> {
    const CHECK: &str = "home";
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

/// Without a model answers are quotations, which works but surprises.
fn model(settings: &Settings) -> Finding {
    const CHECK: &str = "model";
    let environment = process_environment();
    let default = settings.agent.model.as_deref();
    let (models, _) = Models::from_config(&settings.models, default, &environment);
    match models.default_model().name() {
        "offline" => Finding {
            advice: Some(
                "run `dodona models set NAME --provider PROVIDER --model MODEL --key --default`"
                    .to_owned(),
            ),
            ..Finding::skipped(CHECK, "no model configured: answers are quotations")
        },
        name => Finding::ok(CHECK, name),
    }
}

/// The settings, or the defaults where they have faults.
fn settings(file: &Path) -> (Settings, Finding) {
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
            (Settings::default(), finding)
        }
    }
}

/// Who has the home.
enum Owner {
    /// Somebody who can be asked: this process, or a server.
    Session(Session),
    /// A process that cannot be asked, or nobody since no hub starts on it.
    Unasked,
    /// Nobody can: it cannot be written.
    Nobody,
}

/// Whether the databases can be opened as they should be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Full,
    /// Without being able to write beside it, the engine cannot read a database that was closed
    /// properly.
    ReadOnly,
}

impl Owner {
    fn access(&self) -> Access {
        match self {
            Self::Session(_) | Self::Unasked => Access::Full,
            Self::Nobody => Access::ReadOnly,
        }
    }
}

async fn owner(home: &Home, config: Settings) -> (Owner, Vec<Finding>) {
    const CHECK: &str = "owner";
    let ownership = match Ownership::take(&home.data) {
        Ok(ownership) => ownership,
        Err(OwnerError::Held { note }) => {
            let (owner, finding) = other_owner(home, note).await;
            return (owner, vec![finding]);
        }
        Err(error @ OwnerError::Lock { .. }) => {
            let advice = format!("make `{}` writable for yourself", home.data.display());
            let finding = Finding::wrong(CHECK, in_full(&error), advice);
            return (Owner::Nobody, vec![finding]);
        }
    };
    let free = Finding::ok(CHECK, "no other process is using the home directory");
    if let Err(error) = schema::check(&home.data) {
        let finding = Finding::wrong("start", error.to_string(), NewerHome::HINT);
        return (Owner::Unasked, vec![free, finding]);
    }
    match Session::own(home, config, ownership).await {
        Ok(session) => (Owner::Session(session), vec![free]),
        Err(error) => {
            let advice = "nothing can be called until this is mended; see below";
            let finding = Finding::wrong("start", in_full(&error), advice);
            (Owner::Unasked, vec![free, finding])
        }
    }
}

/// Another process: a server is asked, a command that runs is left alone.
async fn other_owner(home: &Home, note: Option<OwnerNote>) -> (Owner, Finding) {
    const CHECK: &str = "owner";
    let Some((pid, url)) = note
        .as_ref()
        .and_then(|note| Some((note.pid, note.url.as_ref()?)))
    else {
        let held = OwnerError::Held { note };
        let message = format!("{held}; its journal and plugins were not looked at");
        return (Owner::Unasked, Finding::skipped(CHECK, message));
    };
    match Session::start(home, None, Approvers::None).await {
        Ok(session) => {
            let message = format!("process {pid} serves at {url}");
            (Owner::Session(session), Finding::ok(CHECK, message))
        }
        Err(_) => {
            let message = format!("process {pid} should serve at {url}, and does not answer");
            let advice = format!("look at its log, or end it with `kill {pid}`");
            (Owner::Unasked, Finding::wrong(CHECK, message, advice))
        }
    }
}

/// Reads all of every database, and changes none.
async fn databases(home: &Home, config: Settings, access: Access) -> Vec<Finding> {
    const ENGINE: &str = "engine";
    let store = match Store::open(&home.data, config.hub.store) {
        Ok(store) => store,
        Err(error) => return vec![Finding::wrong(ENGINE, in_full(&error), "update dodona")],
    };
    let reports = store.check().await;
    let engine = match version(&store, &reports).await {
        Some(version) => Finding::ok(ENGINE, format!("SQLite {version}")),
        None => Finding::skipped(ENGINE, "no database could be opened to read its version"),
    };
    let mut findings = vec![engine];
    for report in &reports {
        findings.push(match blame(&home.data, &store, report, access).await {
            None => sound(report),
            Some(blame) => unsound(&home.data, report, blame),
        });
    }
    store.close().await;
    findings
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

/// What is to blame for problems with a database.
enum Blame {
    /// The file.
    File,
    /// What is around it: the disk, its room, somebody's lock.
    Surroundings,
    /// That nothing can be written, which was told already.
    ReadOnly,
}

/// The difference is a database that is lost, or one that only seems to be.
async fn blame(
    data: &Path,
    store: &Store,
    report: &DatabaseReport,
    access: Access,
) -> Option<Blame> {
    if report.problems.is_empty() {
        return None;
    }
    if access == Access::ReadOnly {
        return Some(Blame::ReadOnly);
    }
    let is_absent = |file: &str| {
        let found = data.join(file).metadata();
        found.map_or(true, |found| found.len() == 0)
    };
    if is_absent(&report.file) {
        return Some(Blame::File);
    }
    let db = store.database(&report.file, Durability::Full);
    let read = db
        .read(|tx| {
            tx.query("select name from sqlite_schema", (), |row| {
                row.get::<String>(0)
            })
        })
        .await;
    match read {
        Ok(_) | Err(DbError::Corrupt { .. }) => Some(Blame::File),
        Err(_) => Some(Blame::Surroundings),
    }
}

const DATABASE: &str = "database";

fn sound(report: &DatabaseReport) -> Finding {
    let version = report.version.unwrap_or_default();
    let (file, size) = (&report.file, show_size(report.size_bytes));
    Finding::ok(DATABASE, format!("{file} · version {version} · {size}"))
}

fn unsound(data: &Path, report: &DatabaseReport, blame: Blame) -> Finding {
    let (file, problems) = (&report.file, report.problems.join("\n"));
    let advice = match blame {
        Blame::ReadOnly => {
            let message = format!("{file} could not be examined: {problems}");
            return Finding::skipped(DATABASE, message);
        }
        Blame::Surroundings => {
            "the file itself may be sound: look at the disk and its free space, \
                                then run this again"
                .to_owned()
        }
        Blame::File => advice(data, file),
    };
    Finding::wrong(DATABASE, format!("{file}\n{problems}"), advice)
}

/// What helps against a lost database. Only backups that exist are named.
fn advice(data: &Path, file: &str) -> String {
    if let Some(backup) = machine::newest_full_backup(data, file) {
        return format!(
            "stop dodona and run `dodona restore '{}'`",
            backup.display()
        );
    }
    let is_there = data
        .join(file)
        .metadata()
        .is_ok_and(|found| found.len() > 0);
    match (machine::newest_backup(&data.join(file)), is_there) {
        (Some(copy), true) => {
            format!("stop dodona, move the file aside, and put `{copy}` in its place")
        }
        (Some(copy), false) => format!("stop dodona and put `{copy}` in its place"),
        (None, true) => {
            "there is no backup; stop dodona, move the file aside, and start once with \
                         `--accept-data-loss`"
                .to_owned()
        }
        (None, false) => {
            "there is no backup; start once with `--accept-data-loss` to create it again".to_owned()
        }
    }
}

async fn journal(session: &Session) -> Finding {
    const CHECK: &str = "journal";
    #[derive(Deserialize)]
    struct Health {
        recovered_streams: u64,
        recovered_calls: u64,
    }
    match session.ask::<Health>("hub.health", json!({})).await {
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
        problems: Vec<Problem>,
    }
    let answer = match session.ask::<Plugins>("plugins.list", json!({})).await {
        Ok(answer) => answer,
        Err(error) => return vec![Finding::wrong(CHECK, error.message, "see above")],
    };
    let plugins = answer.plugins.iter().map(plugin);
    let problems = answer.problems.iter().map(|problem| {
        let advice =
            "correct it, then run `dodona plugins reload`; `dodona plugins check` shows it";
        Finding::wrong("roster", problem.to_string(), advice)
    });
    plugins.chain(problems).collect()
}

/// Definitions of agents: files that cannot be used, and tools and models that do not exist.
async fn agents(session: &Session) -> Vec<Finding> {
    let problems = agents::problems(session).await;
    let advice = "correct the definition; `dodona agents` shows it";
    let wrong = |problem: &Problem| Finding::wrong("agents", problem.to_string(), advice);
    match problems.is_empty() {
        true => vec![Finding::ok("agents", "every definition is valid")],
        false => problems.iter().map(wrong).collect(),
    }
}

fn plugin(status: &PluginStatus) -> Finding {
    const CHECK: &str = "plugin";
    let version = status.version.as_deref().unwrap_or_default();
    let named = format!("{} {version}", status.name);
    let reason = status.reason.as_deref().unwrap_or("it gives no reason");
    match status.state {
        PluginState::Active => Finding::ok(CHECK, named),
        PluginState::Disabled => Finding::skipped(CHECK, format!("{named} is switched off")),
        PluginState::Starting => Finding::skipped(CHECK, format!("{named} is being started")),
        PluginState::SkippedDependency => Finding::wrong(
            CHECK,
            format!("{named} was not started: {reason}"),
            "mend what it needs",
        ),
        PluginState::Failed | PluginState::Discovered | PluginState::Loaded => Finding::wrong(
            CHECK,
            format!("{named} is not active: {reason}"),
            "mend the reason, then run `dodona plugins reload`",
        ),
    }
}
