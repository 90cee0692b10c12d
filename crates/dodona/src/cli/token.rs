//! `dodona token`.

use std::fmt::Write as _;
use std::io;
use std::time::Duration;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::failure::Failure;
use crate::paint::{Paint, harmless};
use crate::quantity;
use crate::session::Session;
use crate::shell::Shell;

const EXAMPLES: &str = "\
Examples:
  dodona token create --user bob --scope 'echo:*' --scope hub:read --expires 30d
  dodona token list
  dodona token revoke 3fa9c2d41b07";

/// Make, list and revoke the tokens that let users and programs in
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Token {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a token and print it; it cannot be shown again
    Create {
        /// Whose token; the user is made when there is none of the name
        #[arg(long)]
        user: String,
        /// What it is for
        #[arg(long, default_value = "default")]
        name: String,
        /// What it grants, such as `vault:read`, `vault:*` or `*`; may be given several times
        #[arg(long, value_name = "SCOPE", required = true)]
        scope: Vec<String>,
        /// How long it lives, such as `30d`; for ever without
        #[arg(long, value_name = "TIME", value_parser = quantity::duration)]
        expires: Option<Duration>,
        /// Print JSON for programs
        #[arg(long)]
        json: bool,
    },
    /// List the tokens, without their text
    List {
        /// Print JSON for programs
        #[arg(long)]
        json: bool,
    },
    /// End a token at once
    Revoke {
        /// Its id, as `dodona token list` shows it
        id: String,
    },
}

#[derive(Serialize, Deserialize)]
struct Info {
    id: String,
    user: String,
    name: String,
    scopes: Vec<String>,
    created_at: Timestamp,
    expires_at: Option<Timestamp>,
}

#[derive(Serialize, Deserialize)]
struct Created {
    token: String,
    info: Info,
}

#[derive(Deserialize)]
struct Listed {
    tokens: Vec<Info>,
}

impl Token {
    pub(crate) async fn run(self, shell: &Shell) -> Result<(), Failure> {
        let session = shell.session().await?;
        let text = self.command.text(&session).await;
        session.close().await;
        super::print(&text?)
    }
}

impl Command {
    async fn text(self, session: &Session) -> Result<String, Failure> {
        match self {
            Self::Create {
                user,
                name,
                scope,
                expires,
                json,
            } => {
                let expires_in_s = expires.map(|time| time.as_secs().max(1));
                let params = json!({ "user": user, "name": name, "scopes": scope, "expires_in_s": expires_in_s });
                let created: Created = session.ask("hub.token_create", params).await?;
                Ok(match json {
                    true => json!(created).to_string() + "\n",
                    // Alone on its line, so that it can be piped.
                    false => format!("{}\n", created.token),
                })
            }
            Self::List { json } => {
                let Listed { tokens } = session.ask("hub.tokens", json!({})).await?;
                Ok(match json {
                    true => json!(tokens).to_string() + "\n",
                    false => table(&tokens, Paint::of(&io::stdout())),
                })
            }
            Self::Revoke { id } => {
                let _: serde_json::Value =
                    session.ask("hub.token_revoke", json!({ "id": id })).await?;
                Ok(format!("revoked {id}\n"))
            }
        }
    }
}

fn table(tokens: &[Info], paint: Paint) -> String {
    if tokens.is_empty() {
        return "there are no tokens; `dodona serve` makes the local one\n".to_owned();
    }
    let width = |text: fn(&Info) -> &str| {
        tokens
            .iter()
            .map(|token| harmless(text(token)).chars().count())
            .max()
            .unwrap_or(0)
    };
    let (users, names) = (width(|token| &token.user), width(|token| &token.name));
    let mut text = String::new();
    for token in tokens {
        let expires = match token.expires_at {
            None => "for ever".to_owned(),
            Some(at) if at <= Timestamp::now() => "expired".to_owned(),
            Some(at) => format!("until {}", at.strftime("%Y-%m-%d %H:%M UTC")),
        };
        let (user, name) = (harmless(&token.user), harmless(&token.name));
        let _ = writeln!(
            text,
            "{}   {user:users$}   {name:names$}   {expires}   {}",
            token.id,
            paint.dim(token.scopes.join(" "))
        );
    }
    text
}
