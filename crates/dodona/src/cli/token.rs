//! `dodona token`.

use std::io;
use std::time::Duration;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::failure::Failure;
use crate::layout;
use crate::paint::Paint;
use crate::quantity;
use crate::session::Session;
use crate::shell::Shell;
use crate::table::{self, Cell, Look, Table};

const EXAMPLES: &str = "\
Examples:
  dodona token create --user bob --scope 'echo:*' --scope hub:read --expires 30d
  dodona token list
  dodona token revoke 3fa9c2d41b07";

/// Create, list and revoke access tokens
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Token {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Create a token and print it; it is shown only once
    Create {
        /// The user; created if missing
        #[arg(long)]
        user: String,
        /// A name that says what the token is for
        #[arg(long, default_value = "default")]
        name: String,
        /// A scope, such as `vault:read`, `vault:*` or `*`; can be repeated
        #[arg(long, value_name = "SCOPE", required = true)]
        scope: Vec<String>,
        /// Lifetime, such as `30d` [default: no expiry]
        #[arg(long, value_name = "TIME", value_parser = quantity::duration)]
        expires: Option<Duration>,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// List tokens without their secret
    List {
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Revoke a token at once
    Revoke {
        /// The id shown by `dodona token list`
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
        return "no tokens; `dodona serve` creates the local one\n".to_owned();
    }
    let mut table = Table::new(&["ID", "USER", "NAME", "EXPIRES", "SCOPES"]);
    for token in tokens {
        let expires = match token.expires_at {
            None => "never".into(),
            Some(at) if at <= Timestamp::now() => Cell::new("expired", Look::Bad),
            Some(at) => at.strftime("%Y-%m-%d %H:%M UTC").to_string().into(),
        };
        table.row([
            token.id.as_str().into(),
            token.user.as_str().into(),
            token.name.as_str().into(),
            expires,
            table::dim(token.scopes.join(" ")),
        ]);
    }
    table.render(paint, layout::width(&io::stdout()))
}
