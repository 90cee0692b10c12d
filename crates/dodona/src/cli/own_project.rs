//! Marking a project as the user's own, after `dodona init` and `dodona rules new`.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::session::Session;
use crate::shell::{Shell, tell};
use crate::trust_notice;

/// What `hub.trust` returns, as far as it matters here.
#[derive(Deserialize)]
pub(super) struct Trust {
    root: std::path::PathBuf,
    state: String,
    hash: Option<String>,
    granted: Option<Granted>,
}

#[derive(Deserialize)]
struct Granted {
    follow: String,
}

impl Trust {
    /// Whether everything that is there is trusted, or nothing is there.
    fn is_clean(&self) -> bool {
        matches!(self.state.as_str(), "nothing" | "trusted")
    }

    fn is_followed(&self) -> bool {
        let granted = self.granted.as_ref();
        granted.is_some_and(|granted| granted.follow != "nothing")
    }
}

/// Runs `create` and trusts what it creates. If nothing in the project was untrusted before, later
/// changes of its rules are trusted too. Otherwise only `file` is, a path below `.dodona/`: a clone
/// must not become the user's own because the user added a rule to it.
pub(super) async fn create_in<T>(
    shell: &Shell,
    file: Option<&str>,
    create: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let session = match shell.quiet_session_in_project().await {
        Ok(session) => session,
        Err(failure) => {
            let created = create()?;
            warn(&failure);
            return Ok(created);
        }
    };
    let before: Result<Trust, _> = session.ask("hub.trust", json!({})).await;
    let created = create();
    if created.is_ok() {
        let trusted = match before {
            Ok(before) => trust(&session, &before, file).await,
            Err(error) => Err(error.into()),
        };
        if let Err(failure) = trusted {
            warn(&failure);
        }
    }
    session.close().await;
    created
}

async fn trust(session: &Session, before: &Trust, file: Option<&str>) -> Result<(), Failure> {
    let now: Trust = session.ask("hub.trust", json!({})).await?;
    let params = match (before.is_clean(), file) {
        (true, _) if before.is_followed() => return Ok(()),
        (true, _) => json!({ "hash": now.hash, "follow": "rules" }),
        (false, Some(file)) => json!({ "hash": now.hash, "only": [file] }),
        (false, None) => {
            trust_notice::print_once(session, &now.root).await;
            return Ok(());
        }
    };
    let _: Value = session.ask("hub.trust_accept", params).await?;
    trust_notice::print_once(session, &now.root).await;
    Ok(())
}

/// The file is there; only its trust is missing.
fn warn(failure: &Failure) {
    let why = match failure {
        Failure::Said { message, .. } => message.as_str(),
        Failure::Drawn { text, .. } => text.as_str(),
        Failure::Told(_) | Failure::Unread => return,
    };
    tell(&format!("warning: the project could not be trusted: {why}"));
    tell("hint: run `dodona trust accept --follow`");
}
