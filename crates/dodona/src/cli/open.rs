//! `dodona open`.

use std::fmt::Write as _;

use clap::Args;
use dodona_proto::ExitKind;
use serde::Deserialize;
use serde_json::json;

use crate::failure::Failure;
use crate::shell::Shell;

const EXAMPLES: &str = "\
Examples:
  dodona open                   print the link
  xdg-open \"$(dodona open)\"    show the page";

/// Print a link that signs a browser in to the running server, once and within five minutes
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Open {
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

#[derive(Deserialize)]
struct LoginCode {
    code: String,
}

impl Open {
    pub(crate) async fn run(self, shell: &Shell) -> Result<(), Failure> {
        let session = shell.session_in_project_if_any().await?;
        let Some(url) = session.url().map(str::to_owned) else {
            session.close().await;
            return Err(Failure::new(ExitKind::Failed, "no server is running")
                .hint("start one with `dodona serve`"));
        };
        let code = session.ask::<LoginCode>("hub.login_code", json!({})).await;
        let project = session.project().cloned();
        session.close().await;
        let mut link = format!("{url}/login?code={}", code?.code);
        if let Some(project) = project {
            let _ = write!(link, "&project={project}");
        }
        match self.json {
            true => super::print(&(json!({ "url": link }).to_string() + "\n")),
            false => super::print(&format!("{link}\n")),
        }
    }
}
