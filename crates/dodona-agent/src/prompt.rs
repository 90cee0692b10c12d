//! Prompts: files with variables, the bundled ones or the user's.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use dodona_plugin::{CallError, ErrorCode};
use dodona_template::{Limits, Template};
use serde::Serialize;

/// The prompt of the main agent.
const ORACLE: &str = include_str!("../prompts/oracle.md");

/// The name of its file, where the user has another.
const ORACLE_FILE: &str = "oracle.md";

/// What a prompt can name.
#[derive(Debug, Serialize)]
pub(crate) struct Variables<'a> {
    /// The agent's name.
    pub(crate) agent: &'a str,
    /// The project's name.
    pub(crate) project: Option<&'a str>,
    /// What was decided in the conversation.
    pub(crate) decisions: Vec<String>,
}

/// The prompts there are. A file of the user's is read again when it changes.
pub(crate) struct Prompts {
    dir: Option<PathBuf>,
    compiled: Mutex<Option<Compiled>>,
}

/// A template, and the file it was made from as it was then.
#[derive(Clone)]
struct Compiled {
    stamp: Stamp,
    template: Arc<Template>,
}

/// When a file was changed last, and its size; `None` for the bundled prompt.
type Stamp = Option<(SystemTime, u64)>;

impl Prompts {
    pub(crate) fn new(dir: Option<PathBuf>) -> Self {
        Self {
            dir,
            compiled: Mutex::new(None),
        }
    }

    /// The prompt of the main agent.
    pub(crate) fn oracle(&self, variables: &Variables<'_>) -> Result<String, CallError> {
        let template = self.template()?;
        let variables = serde_json::to_value(variables).unwrap_or_default();
        template
            .render(&variables, &Limits::prompt())
            .map_err(|error| wrong(&self.origin(), &error))
    }

    /// Where the prompt comes from.
    fn origin(&self) -> String {
        match self.file().filter(|file| file.exists()) {
            Some(file) => file.display().to_string(),
            None => format!("the bundled {ORACLE_FILE}"),
        }
    }

    fn file(&self) -> Option<PathBuf> {
        self.dir.as_ref().map(|dir| dir.join(ORACLE_FILE))
    }

    fn template(&self) -> Result<Arc<Template>, CallError> {
        let file = self.file();
        let stamp: Stamp = file
            .as_ref()
            .and_then(|file| file.metadata().ok())
            .and_then(|data| Some((data.modified().ok()?, data.len())));
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = compiled.as_ref().filter(|known| known.stamp == stamp) {
            return Ok(Arc::clone(&known.template));
        }
        let source = match (&file, &stamp) {
            (Some(file), Some(_)) => std::fs::read_to_string(file).map_err(|error| {
                let message = format!("could not read `{}`: {error}", file.display());
                CallError::new(ErrorCode::InvalidRequest, message)
            })?,
            _ => ORACLE.to_owned(),
        };
        let template = Template::compile(&source, &Limits::prompt())
            .map_err(|error| wrong(&self.origin(), &error))?;
        let template = Arc::new(template);
        *compiled = Some(Compiled {
            stamp,
            template: Arc::clone(&template),
        });
        Ok(template)
    }
}

fn wrong(origin: &str, error: &dodona_template::TemplateError) -> CallError {
    CallError::new(
        ErrorCode::InvalidRequest,
        format!("the prompt in {origin} cannot be used: {error}"),
    )
    .hint("correct the file, or remove it to use the bundled prompt")
}
