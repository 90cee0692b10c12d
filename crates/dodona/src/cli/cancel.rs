//! `dodona cancel`.

use clap::Args;
use dodona_hub::CancelTarget;
use dodona_proto::{CallId, CallSummary, PluginPath};
use serde::Deserialize;
use serde_json::json;

use crate::failure::Failure;
use crate::session::Session;
use crate::shell::Shell;

const EXAMPLES: &str = "\
Examples:
  dodona calls                       what is running, and its ids
  dodona cancel 8f2c91d0             a call and everything below it
  dodona cancel 8f2c91d0.3           one nested call
  dodona cancel agent.librarian      every call with that path, and what is below";

/// Cancel running calls
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Cancel {
    /// A call id or its first digits, or a path prefix such as `agent.librarian`
    #[arg(value_name = "ID|PATH")]
    target: String,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl Cancel {
    pub(crate) async fn run(self, shell: &Shell) -> Result<(), Failure> {
        let session = shell.session().await?;
        let stopped = self.stop(&session).await;
        session.close().await;
        let stopped = stopped?;
        if self.json {
            return super::print(&(json!(stopped).to_string() + "\n"));
        }
        let paths: Vec<&str> = stopped
            .iter()
            .map(|call| call.plugin_path.as_str())
            .collect();
        match paths[..] {
            [] => super::print("nothing of that name is running\n"),
            [one] => super::print(&format!("stopped 1 call: {one}\n")),
            _ => super::print(&format!(
                "stopped {} calls: {}\n",
                paths.len(),
                paths.join(", ")
            )),
        }
    }

    async fn stop(&self, session: &Session) -> Result<Vec<CallSummary>, Failure> {
        let target = match self.named_call(session).await? {
            Some(call) => CancelTarget::Call(call),
            None => CancelTarget::Path {
                prefix: self.path()?,
                within: None,
            },
        };
        Ok(session.cancel(&target).await?)
    }

    /// The running call whose id is, or begins with, what was given.
    async fn named_call(&self, session: &Session) -> Result<Option<CallId>, Failure> {
        #[derive(Deserialize)]
        struct Running {
            calls: Vec<CallSummary>,
        }
        if !self.target.starts_with(|c: char| c.is_ascii_hexdigit()) {
            return Ok(None);
        }
        let (digits, ordinals) = match self.target.split_once('.') {
            Some((digits, ordinals)) => (digits, format!(".{ordinals}")),
            None => (self.target.as_str(), String::new()),
        };
        let Running { calls } = session.ask("hub.calls", json!({})).await?;
        let named = |id: &CallId| {
            let full = id.to_string();
            let stream = id.stream().to_string();
            full[stream.len()..] == ordinals
                && (stream.starts_with(digits) || stream.replace('-', "").starts_with(digits))
        };
        let mut found = calls.iter().map(|call| call.call_id).filter(named);
        match (found.next(), found.next()) {
            (Some(_), Some(_)) => {
                let message = format!("more than one call's id begins with `{}`", self.target);
                Err(Failure::usage(message)
                    .hint("give more of its digits; `dodona calls --json` has them all"))
            }
            (call, _) => Ok(call),
        }
    }

    fn path(&self) -> Result<PluginPath, Failure> {
        self.target.parse().map_err(|_| {
            let message = format!(
                "`{}` is neither the id of a running call nor a path",
                self.target
            );
            Failure::usage(message).hint("`dodona calls` shows what is running")
        })
    }
}
