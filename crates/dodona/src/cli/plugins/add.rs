//! `dodona plugins add`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use dodona_proto::PluginStatus;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Done, Form, answer, list};
use crate::failure::Failure;
use crate::paint::{Paint, one_line};
use crate::session::Session;
use crate::shell::tell;

/// How often a command that waits for a server says so.
const PROGRESS_EVERY: Duration = Duration::from_secs(3);

/// Add an MCP server or a plugin directory
#[derive(Debug, Args)]
pub(super) struct Add {
    /// A name; its tools are called NAME.TOOL
    name: String,
    /// The URL of a server that speaks streamable HTTP
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    url: Option<String>,
    /// A directory with a manifest
    #[arg(long, value_name = "DIR", conflicts_with_all = ["command", "url"])]
    dir: Option<PathBuf>,
    /// An environment variable to pass to the server, in addition to PATH, HOME and similar
    #[arg(long, value_name = "VARIABLE", conflicts_with_all = ["url", "dir"])]
    env: Vec<String>,
    /// A header to send, and the environment variable that holds its value
    #[arg(long, value_name = "NAME=VARIABLE", requires = "url", value_parser = pair)]
    header: Vec<(String, String)>,
    #[command(flatten)]
    form: Form,
    /// The program of the server and its arguments
    #[arg(last = true, value_name = "COMMAND", required_unless_present_any = ["url", "dir"])]
    command: Vec<String>,
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, variable)) if !name.is_empty() && !variable.is_empty() => {
            Ok((name.to_owned(), variable.to_owned()))
        }
        _ => Err("write NAME=VARIABLE, such as authorization=TOKEN".to_owned()),
    }
}

#[derive(Serialize, Deserialize)]
struct Added {
    #[serde(flatten)]
    status: PluginStatus,
    methods: Vec<String>,
}

impl Add {
    pub(super) async fn run(self, session: &Session) -> Result<Done, Failure> {
        let module = self.module()?;
        let headers: BTreeMap<String, String> = self.header.into_iter().collect();
        let params = json!({
            "plugin": self.name, "module": module, "env": self.env, "headers": headers,
        });
        let added: Added =
            with_progress(&self.name, answer(session, "plugins.add", params)).await?;
        Ok(self.form.text(&added, words).into())
    }

    fn module(&self) -> Result<String, Failure> {
        let here = std::env::current_dir().unwrap_or_default();
        if let Some(dir) = &self.dir {
            return Ok(format!("dir:{}", here.join(dir).display()));
        }
        let words = match &self.url {
            Some(url) => vec![url.clone()],
            None => self
                .command
                .iter()
                .map(|word| in_full(&here, word))
                .collect(),
        };
        dodona_extern::mcp::module_of(&words).map_err(Failure::usage)
    }
}

/// Prints how long the plugin has been starting, until it has.
async fn with_progress<T>(name: &str, work: impl Future<Output = T>) -> T {
    let began = Instant::now();
    let mut work = std::pin::pin!(work);
    loop {
        tokio::select! {
            done = &mut work => return done,
            () = tokio::time::sleep(PROGRESS_EVERY) => {
                let waited = began.elapsed().as_secs();
                tell(&format!("waiting for `{name}` to start ({waited} s)"));
            }
        }
    }
}

/// A path that is meant from here, in full: the server starts elsewhere.
fn in_full(here: &Path, word: &str) -> String {
    let is_from_here =
        word == "." || word == ".." || word.starts_with("./") || word.starts_with("../");
    if !is_from_here {
        return word.to_owned();
    }
    let path = here.join(word);
    let path = path.canonicalize().unwrap_or(path);
    path.to_string_lossy().into_owned()
}

fn words(added: &Added, paint: Paint) -> String {
    let mut text = list::lines(std::slice::from_ref(&added.status), paint);
    for method in &added.methods {
        let _ = writeln!(text, "  {}", one_line(method));
    }
    text
}
