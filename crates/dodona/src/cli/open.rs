//! `dodona open`.

use std::fmt::Write as _;
use std::io::{self, IsTerminal};
use std::process::{Command, Stdio};

use clap::Args;
use dodona_proto::ExitKind;
use serde::Deserialize;
use serde_json::json;

use crate::failure::Failure;
use crate::shell::{self, Shell};

const EXAMPLES: &str = "\
Examples:
  dodona open             open the page, and print the link
  dodona open --print     only print the link

The link signs a browser in once and is valid for five minutes. Over SSH, without a display or into a
pipe it is only printed.";

/// Open the page in a browser, signed in with a one-time link
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Open {
    /// Only print the link
    #[arg(long)]
    print: bool,
    /// Print the result as JSON
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
            false => {
                super::print(&format!("{link}\n"))?;
                if !self.print && has_browser() {
                    open(&link);
                }
                Ok(())
            }
        }
    }
}

/// Whether somebody sits in front of a display of this machine.
fn has_browser() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    io::stdout().is_terminal()
        && !is_set("SSH_CONNECTION")
        && (cfg!(any(target_os = "macos", windows))
            || is_set("DISPLAY")
            || is_set("WAYLAND_DISPLAY"))
}

/// Starts the browser of the system. The link was printed, so a failure is only reported.
fn open(link: &str) {
    let (program, arguments): (&str, &[&str]) = if cfg!(target_os = "macos") {
        ("open", &[])
    } else if cfg!(windows) {
        ("rundll32", &["url.dll,FileProtocolHandler"])
    } else {
        ("xdg-open", &[])
    };
    let started = Command::new(program)
        .args(arguments)
        .arg(link)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if let Err(error) = started {
        shell::tell(&format!(
            "could not start a browser with `{program}`: {error}"
        ));
    }
}
