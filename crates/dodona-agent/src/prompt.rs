//! Prompts: files with variables; the bundled ones, the user's, or those of a trusted project.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use dodona_plugin::{CallError, ErrorCode};
use dodona_template::{Limits, Template};
use serde::Serialize;

use crate::brought::Brought;

/// A bundled prompt, and the name of the file by which the user replaces it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bundled {
    file: &'static str,
    source: &'static str,
}

/// The prompt of the main agent.
pub(crate) const ORACLE: Bundled = Bundled {
    file: "oracle.md",
    source: include_str!("../prompts/oracle.md"),
};

/// The prompt of the model that shortens conversations.
pub(crate) const SUMMARIZER: Bundled = Bundled {
    file: "summarizer.md",
    source: include_str!("../prompts/summarizer.md"),
};

/// What a prompt can name.
#[derive(Debug, Serialize)]
pub(crate) struct Variables<'a> {
    /// The agent's name.
    pub(crate) agent: &'a str,
    /// The project's name.
    pub(crate) project: Option<&'a str>,
    /// The day of the query, such as `2026-11-18`.
    pub(crate) date: String,
    /// The names at the top level of the project. Folders end with `/`.
    pub(crate) folders: Vec<String>,
    /// What the project tells agents.
    pub(crate) instructions: Option<InstructionsVariable>,
    /// What was decided in the conversation.
    pub(crate) decisions: Vec<String>,
    /// The agents that can be delegated to.
    pub(crate) agents: Vec<AgentVariable>,
}

/// The instructions of a project, as a prompt can name them.
#[derive(Debug, Serialize)]
pub(crate) struct InstructionsVariable {
    /// The file in the root of the project.
    pub(crate) path: &'static str,
    pub(crate) text: String,
}

/// An agent, as a prompt can name it.
#[derive(Debug, Serialize)]
pub(crate) struct AgentVariable {
    pub(crate) name: String,
    pub(crate) description: String,
}

/// The prompts there are. A file of the user's is read again when it changes.
pub(crate) struct Prompts {
    dir: Option<PathBuf>,
    compiled: Mutex<HashMap<&'static str, Compiled>>,
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
            compiled: Mutex::default(),
        }
    }

    /// A prompt with its variables filled in: the project's, else the user's, else the bundled one.
    pub(crate) fn render(
        &self,
        prompt: Bundled,
        project: &Brought,
        variables: &impl Serialize,
    ) -> Result<String, CallError> {
        let limits = Limits::prompt();
        let (template, origin) = match project.texts.get(prompt.file) {
            Some(text) => {
                let origin = format!("`.dodona/prompts/{}`", prompt.file);
                let template =
                    Template::compile(text, &limits).map_err(|error| wrong(&origin, &error))?;
                (Arc::new(template), origin)
            }
            None => (self.template(prompt)?, self.origin(prompt)),
        };
        let variables = serde_json::to_value(variables).unwrap_or_default();
        template
            .render(&variables, &limits)
            .map_err(|error| wrong(&origin, &error))
    }

    /// A prompt as it is written: the project's, else the user's, else the bundled one.
    pub(crate) fn source(&self, prompt: Bundled, project: &Brought) -> Result<String, CallError> {
        if let Some(text) = project.texts.get(prompt.file) {
            return Ok(text.clone());
        }
        match self.file(prompt).filter(|file| file.exists()) {
            Some(file) => read(&file),
            None => Ok(prompt.source.to_owned()),
        }
    }

    /// Where a prompt comes from.
    fn origin(&self, prompt: Bundled) -> String {
        match self.file(prompt).filter(|file| file.exists()) {
            Some(file) => file.display().to_string(),
            None => format!("the bundled {}", prompt.file),
        }
    }

    fn file(&self, prompt: Bundled) -> Option<PathBuf> {
        self.dir.as_ref().map(|dir| dir.join(prompt.file))
    }

    fn template(&self, prompt: Bundled) -> Result<Arc<Template>, CallError> {
        let file = self.file(prompt);
        let stamp: Stamp = file
            .as_ref()
            .and_then(|file| file.metadata().ok())
            .and_then(|data| Some((data.modified().ok()?, data.len())));
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        let known = compiled.get(prompt.file);
        if let Some(known) = known.filter(|known| known.stamp == stamp) {
            return Ok(Arc::clone(&known.template));
        }
        let source = match (&file, &stamp) {
            (Some(file), Some(_)) => read(file)?,
            _ => prompt.source.to_owned(),
        };
        let template = Template::compile(&source, &Limits::prompt())
            .map_err(|error| wrong(&self.origin(prompt), &error))?;
        let template = Arc::new(template);
        let made = Compiled {
            stamp,
            template: Arc::clone(&template),
        };
        compiled.insert(prompt.file, made);
        Ok(template)
    }
}

fn read(file: &Path) -> Result<String, CallError> {
    std::fs::read_to_string(file).map_err(|error| {
        let message = format!("could not read `{}`: {error}", file.display());
        CallError::new(ErrorCode::InvalidRequest, message)
    })
}

fn wrong(origin: &str, error: &dodona_template::TemplateError) -> CallError {
    CallError::new(
        ErrorCode::InvalidRequest,
        format!("the prompt in {origin} cannot be used: {error}"),
    )
    .hint("correct the file, or remove it to use the one that it replaces")
}
