//! `dodona approvals`.

use std::collections::HashSet;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::io;
use std::time::Duration;

use clap::{Args, Subcommand};
use dodona_proto::{ApprovalId, ApprovalRecord, ApprovalState};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;

use crate::failure::Failure;
use crate::layout;
use crate::paint::{Paint, harmless, one_line};
use crate::quantity;
use crate::session::Session;
use crate::shell::{self, Shell};
use crate::table::{self, Table};

const EXAMPLES: &str = "\
Examples:
  dodona approvals list                          list pending approvals
  dodona approvals show 3fa9c2d41b07             what would run, and with what
  dodona approvals approve 3fa9                  the first digits will do
  dodona approvals deny 3fa9 --reason \"not in this project\"

Calls wait in a server, `dodona serve`; `dodona ask` and `dodona chat` ask by themselves where they
run in a terminal. How long a call waits is the setting `approvals.timeout`.";

/// How long a call runs before it is asked what it waits for, and how long until the next time.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// How many approvals are looked through.
const MOST: u32 = 1000;

/// List pending approvals and answer them
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Approvals {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List pending approvals, newest first
    List {
        /// Include answered approvals
        #[arg(long)]
        all: bool,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the call and its parameters
    Show {
        /// The id of the approval, or its first digits
        id: String,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Approve a call
    Approve(Answer),
    /// Deny a call
    Deny(Answer),
}

#[derive(Debug, Args)]
struct Answer {
    /// The id of the approval, or its first digits
    id: String,
    /// A reason, which the caller sees
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Deserialize)]
struct Listed {
    approvals: Vec<ApprovalRecord>,
}

impl Approvals {
    pub(crate) async fn run(self, shell: &Shell) -> Result<(), Failure> {
        let session = shell.session().await?;
        let text = self.command.text(&session).await;
        session.close().await;
        super::print(&text?)
    }
}

impl Command {
    async fn text(self, session: &Session) -> Result<String, Failure> {
        let stdout = io::stdout();
        let (paint, width) = (Paint::of(&stdout), layout::width(&stdout));
        Ok(match self {
            Self::List { all, json } => {
                let approvals = list(session, all).await?;
                match json {
                    true => json!(approvals).to_string() + "\n",
                    false => table(&approvals, all, paint, width),
                }
            }
            Self::Show { id, json } => {
                let approval = find(session, &id).await?;
                match json {
                    true => json!(approval).to_string() + "\n",
                    false => details(&approval, paint),
                }
            }
            Self::Approve(answer) => answer.give(session, "hub.approve").await?,
            Self::Deny(answer) => answer.give(session, "hub.deny").await?,
        })
    }
}

impl Answer {
    async fn give(self, session: &Session, method: &str) -> Result<String, Failure> {
        let id = find(session, &self.id).await?.id;
        let params = json!({ "id": id, "reason": self.reason });
        let answered: ApprovalRecord = session.ask(method, params).await?;
        Ok(match self.json {
            true => json!(answered).to_string() + "\n",
            false => format!("{} {} · {}\n", answered.state, id, answered.method),
        })
    }
}

/// Tells, as long as a call runs, what it waits for somebody to allow. Ends with being dropped.
pub(crate) async fn tell_of_waiting(session: &Session, method: &str) -> Infallible {
    let mut told = HashSet::new();
    loop {
        tokio::time::sleep(LOOK_AGAIN).await;
        // A call may be made by somebody who may not see what waits.
        let waiting = list(session, false).await.unwrap_or_default();
        for ApprovalRecord { id, message, .. } in waiting
            .into_iter()
            .filter(|approval| approval.method.as_str() == method)
        {
            if told.insert(id) {
                shell::tell(&waits(id, method, &message));
            }
        }
    }
}

/// Who waits for what, and how to answer.
pub(super) fn waits(id: ApprovalId, method: &str, message: &str) -> String {
    format!(
        "`{method}` is waiting for approval: {}\n\
         answer with `dodona approvals approve {id}` or `dodona approvals deny {id}`",
        one_line(message)
    )
}

async fn list(session: &Session, all: bool) -> Result<Vec<ApprovalRecord>, Failure> {
    let params = json!({ "all": all, "limit": MOST });
    let Listed { approvals } = session.ask("hub.approvals", params).await?;
    Ok(approvals)
}

/// The approval whose id is, or begins with, what was given.
async fn find(session: &Session, given: &str) -> Result<ApprovalRecord, Failure> {
    let mut found = list(session, true).await?;
    found.retain(|approval| approval.id.to_string().starts_with(given));
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(
            Failure::usage(format!("approval `{}` not found", one_line(given)))
                .hint("run `dodona approvals list` to see pending approvals"),
        ),
        _ => Err(
            Failure::usage(format!("several approval ids start with `{given}`"))
                .hint("give more digits"),
        ),
    }
}

fn table(approvals: &[ApprovalRecord], all: bool, paint: Paint, width: Option<usize>) -> String {
    if approvals.is_empty() {
        return match all {
            true => "no approvals\n".to_owned(),
            false => "no pending approvals\n".to_owned(),
        };
    }
    let mut table = Table::new(&["ID", "STATUS", "USER", "METHOD", "CREATED", "REQUEST"]);
    for approval in approvals {
        table.row([
            approval.id.to_string().into(),
            approval.state.as_str().into(),
            approval.user.to_string().into(),
            table::bold(approval.method.as_str()),
            quantity::show_moment(approval.created_at, width).into(),
            approval.message.as_str().into(),
        ]);
    }
    table.render(paint, width)
}

fn minute(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M").to_string()
}

fn details(approval: &ApprovalRecord, paint: Paint) -> String {
    let who = match &approval.plugin {
        Some(plugin) => format!("plugin `{plugin}`"),
        None => "the method or a setting".to_owned(),
    };
    let state = match (&approval.answered_by, approval.answered_at) {
        (Some(user), Some(at)) => format!("{} by {user} at {}", approval.state, minute(at)),
        (None, Some(at)) => format!("{} at {}", approval.state, minute(at)),
        _ => approval.state.to_string(),
    };
    let mut lines = vec![
        ("approval", approval.id.to_string()),
        ("state", state),
        ("method", approval.method.to_string()),
        ("question", harmless(&approval.message).into_owned()),
        ("requested by", who),
        ("user", approval.user.to_string()),
        ("call", format!("{} ({})", approval.call_id, approval.path)),
        ("since", minute(approval.created_at)),
    ];
    lines.extend(
        approval
            .project
            .iter()
            .map(|id| ("project", id.to_string())),
    );
    let reason = approval.reason.iter();
    lines.extend(reason.map(|reason| ("reason", harmless(reason).into_owned())));
    let mut text = String::new();
    for (name, value) in lines {
        let _ = writeln!(text, "{}  {value}", paint.dim(format_args!("{name:>8}")));
    }
    let params = format!("{:#}", approval.params);
    let _ = writeln!(text, "{}", harmless(&params));
    if approval.state == ApprovalState::Pending {
        let hint = format!(
            "approve: dodona approvals approve {id}   deny: dodona approvals deny {id}",
            id = approval.id
        );
        let _ = writeln!(text, "{}", paint.dim(hint));
    }
    text
}
