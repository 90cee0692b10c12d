//! `dodona steer`.

use std::io::{self, Read};

use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::failure::Failure;
use crate::shell::Shell;

const EXAMPLES: &str = "\
Examples:
  dodona steer \"Answer in German\"
  dodona steer --context release \"Leave the changelog alone\"
  dodona steer - < correction.txt";

/// The longest message that the server accepts, in bytes.
const LARGEST: u64 = 65_536;

/// Send a message to the query that is running in a conversation
///
/// The model reads the message before its next request. An answer that it is writing is kept, and
/// it answers again with the message.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Steer {
    /// The message; `-` reads it from standard input
    message: String,

    /// The conversation, by name or id [default: the default conversation]
    #[arg(long, value_name = "NAME_OR_ID")]
    context: Option<String>,

    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

#[derive(Deserialize, Serialize)]
struct Steered {
    query_id: String,
}

impl Steer {
    pub(crate) async fn run(self, shell: &Shell) -> Result<(), Failure> {
        let message = match self.message.as_str() {
            "-" => read(io::stdin().lock())?,
            given => given.to_owned(),
        };
        let message = message.trim();
        if message.is_empty() {
            return Err(Failure::usage("the message is empty"));
        }
        let session = shell.session_in_project().await?;
        let params = json!({ "message": message, "context_id": self.context });
        let steered = session.ask("agent.steer", params).await;
        session.close().await;
        let steered: Steered = steered?;
        if self.json {
            return super::print(&format!("{}\n", json!(steered)));
        }
        super::print(&format!(
            "sent to query {}\n",
            crate::layout::short_id(&steered.query_id)
        ))
    }
}

fn read(from: impl Read) -> Result<String, Failure> {
    let mut text = String::new();
    from.take(LARGEST + 1)
        .read_to_string(&mut text)
        .map_err(|error| Failure::usage(format!("cannot read the message: {error}")))?;
    if text.len() as u64 > LARGEST {
        let message = format!("the message is longer than {LARGEST} bytes");
        return Err(Failure::usage(message));
    }
    Ok(text)
}
