//! Definitions of agents: the bundled ones, the user's and a project's.
//!
//! [`Definitions`] finds and loads them, `read` parses one file, `check` compares the tools that it
//! names with those that exist, `write` stores and deletes the user's own.

mod check;
mod read;
mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use dodona_plugin::reading::{Problem, nearest};
use dodona_plugin::{CallError, ErrorCode};
use dodona_template::{Limits, Template};
use schemars::JsonSchema;
use serde::Serialize;

use crate::brought::Brought;
use crate::conversation::DEFAULT_AGENT;

pub(crate) use check::KnownTools;
use read::is_name;
pub(crate) use write::{NewDefinition, invalid as invalid_definition};

/// The bundled definitions and their prompts.
const BUNDLED: &[(&str, &str, &str)] = &[(
    "librarian.toml",
    include_str!("../../agents/librarian.toml"),
    include_str!("../../agents/librarian.md"),
)];

/// The scope of a tool that every agent may use.
const EVERY_AGENT: &str = "*";

/// Where a definition comes from. A later source replaces an earlier one of the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DefinitionSource {
    /// Part of the program.
    Bundled,
    /// The user's configuration.
    User,
    /// `.dodona/agents` of a trusted project.
    Project,
}

/// An agent that can be addressed and delegated to.
#[derive(Debug, Clone)]
pub(crate) struct Definition {
    pub(crate) name: String,
    pub(crate) description: String,
    /// Tools by their names on the model's side. Each also needs the agent in its scope.
    pub(crate) allowed_tools: BTreeSet<String>,
    /// Tools that it may use although their scope does not include it.
    pub(crate) extra_tools: BTreeSet<String>,
    pub(crate) max_turns: u32,
    pub(crate) model: Option<String>,
    pub(crate) token_budget: Option<u64>,
    pub(crate) source: DefinitionSource,
    /// The file it was read from.
    pub(crate) path: String,
    prompt: String,
    /// The file of the prompt, where that is a file of its own.
    pub(crate) prompt_path: Option<String>,
}

/// Whether the scope of a tool includes an agent.
pub(crate) fn in_scope(scope: &[String], agent: &str) -> bool {
    scope
        .iter()
        .any(|name| name == agent || name == EVERY_AGENT)
}

impl Definition {
    /// Whether the definition names a tool, whatever the tool's scope.
    pub(crate) fn names(&self, tool: &str) -> bool {
        self.allowed_tools.contains(tool) || self.extra_tools.contains(tool)
    }

    /// Whether the agent may use a tool with this scope.
    pub(crate) fn may_use(&self, tool: &str, scope: &[String]) -> bool {
        self.extra_tools.contains(tool)
            || (self.allowed_tools.contains(tool) && in_scope(scope, &self.name))
    }

    /// The prompt as it is written.
    pub(crate) fn prompt_text(&self) -> &str {
        &self.prompt
    }

    /// The prompt with its variables filled in.
    pub(crate) fn prompt(&self, variables: &impl Serialize) -> Result<String, CallError> {
        let limits = Limits::prompt();
        let invalid = |error: dodona_template::TemplateError| {
            let message = format!("invalid prompt of the agent `{}`: {error}", self.name);
            let file = self.prompt_path.as_ref().unwrap_or(&self.path);
            CallError::new(ErrorCode::InvalidRequest, message).hint(format!("correct {file}"))
        };
        let template = Template::compile(&self.prompt, &limits).map_err(invalid)?;
        let variables = serde_json::to_value(variables).unwrap_or_default();
        template.render(&variables, &limits).map_err(invalid)
    }
}

/// Where definitions are. Files are read when they are needed, so that a change takes effect with
/// the next query.
#[derive(Debug, Clone)]
pub(crate) struct Definitions {
    dir: Option<PathBuf>,
    /// Models from the settings, by the name of the agent. They replace `model_override`.
    models: BTreeMap<String, String>,
    /// Held while a file is written or deleted.
    writing: Arc<Mutex<()>>,
}

impl Definitions {
    pub(crate) fn new(dir: Option<PathBuf>, models: BTreeMap<String, String>) -> Self {
        Self {
            dir,
            models,
            writing: Arc::default(),
        }
    }

    /// All definitions by name, and the problems of files that cannot be used.
    pub(crate) fn load(&self, project: &Brought) -> (BTreeMap<String, Definition>, Vec<Problem>) {
        let (mut found, mut problems) = (BTreeMap::new(), Vec::new());
        let mut add = |file: &Path, read: Result<Definition, Vec<Problem>>| match read {
            Ok(definition) => drop(found.insert(definition.name.clone(), definition)),
            Err(faults) => {
                // Not the definition that this one replaces: it may have more tools.
                let name = file.file_stem().and_then(OsStr::to_str);
                found.remove(name.unwrap_or_default());
                problems.extend(faults);
            }
        };
        for (file, text, prompt) in BUNDLED {
            let prompt = |_: &Path| Ok((*prompt).to_owned());
            let read = read::definition(file, text, DefinitionSource::Bundled, prompt);
            add(Path::new(file), read);
        }
        for file in self.files() {
            add(&file, read::file(&file));
        }
        for (file, text) in &project.texts {
            if file.ends_with(".toml") && !file.contains('/') {
                add(Path::new(file), read::of_project(project, file, text));
            }
        }
        for definition in found.values_mut() {
            if let Some(model) = self.models.get(&definition.name) {
                definition.model = Some(model.clone());
            }
        }
        (found, problems)
    }

    /// One definition by its name.
    pub(crate) fn get(&self, name: &str, project: &Brought) -> Result<Definition, CallError> {
        let (mut all, problems) = self.load(project);
        if let Some(definition) = all.remove(name) {
            return Ok(definition);
        }
        let error = CallError::new(
            ErrorCode::InvalidParams,
            format!("there is no agent `{name}`"),
        );
        let broken = problems.iter().find(|problem| is_about(problem, name));
        Err(match (broken, &project.refused) {
            (Some(problem), _) => error.hint(problem.brief()),
            (None, Some(refused)) => error.hint(refused.clone()),
            (None, None) => error.hint(known_agents(name, all.keys())),
        })
    }

    fn files(&self) -> Vec<PathBuf> {
        let Some(entries) = self.dir.as_ref().and_then(|dir| dir.read_dir().ok()) else {
            return Vec::new();
        };
        let mut files: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
            .collect();
        files.sort();
        files
    }
}

/// Names the agent that was probably meant, or all of them.
fn known_agents<'n>(name: &str, defined: impl Iterator<Item = &'n String>) -> String {
    let known: Vec<&str> = std::iter::once(DEFAULT_AGENT)
        .chain(defined.map(String::as_str))
        .collect();
    match nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!(
            "defined agents: {}; add one with `dodona agents define`",
            known.join(", ")
        ),
    }
}

fn is_about(problem: &Problem, name: &str) -> bool {
    Path::new(&problem.path)
        .file_stem()
        .is_some_and(|stem| stem == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bundled_definitions_are_valid() {
        let definitions = Definitions::new(None, BTreeMap::new());
        let (all, problems) = definitions.load(&Brought::default());
        assert!(problems.is_empty(), "{problems:?}");
        assert_eq!(all.keys().collect::<Vec<_>>(), ["librarian"]);
        let variables = serde_json::json!({ "agent": "librarian", "project": "shop" });
        let prompt = all["librarian"].prompt(&variables).unwrap();
        assert!(prompt.starts_with("You are librarian. You keep the notes of the project `shop`"));
        assert_eq!(all["librarian"].max_turns, 10, "as the seed has it");
    }

    #[test]
    fn a_model_from_the_settings_replaces_that_of_the_definition() {
        let models = BTreeMap::from([("librarian".to_owned(), "small".to_owned())]);
        let definitions = Definitions::new(None, models);
        let (all, _) = definitions.load(&Brought::default());
        assert_eq!(all["librarian"].model.as_deref(), Some("small"));
    }

    #[test]
    fn an_unknown_agent_is_reported_with_the_nearest_name() {
        let definitions = Definitions::new(None, BTreeMap::new());
        let project = Brought::default();
        let error = definitions.get("libarian", &project).unwrap_err();
        assert_eq!(error.message, "there is no agent `libarian`");
        assert_eq!(error.hint_text().unwrap(), "did you mean `librarian`?");
        let error = definitions.get("x", &project).unwrap_err();
        let expected = "defined agents: oracle, librarian; add one with `dodona agents define`";
        assert_eq!(error.hint_text().unwrap(), expected);
    }

    #[test]
    fn a_tool_needs_both_the_definition_and_the_scope() {
        let text = "name = \"scout\"\nsystem_prompt = \"p\"\n\
                    allowed_tools = [\"a_x\", \"b_x\"]\nextra_tools = [\"c.x\"]";
        let source = DefinitionSource::User;
        let scout = read::definition("scout.toml", text, source, |_| unreachable!()).unwrap();
        let scope = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let cases: [(&str, Vec<String>, bool); 6] = [
            ("a_x", scope(&["*"]), true),
            ("a_x", scope(&["oracle", "scout"]), true),
            ("a_x", scope(&["oracle", "librarian"]), false),
            ("a_x", scope(&[]), false),
            ("c_x", scope(&["oracle"]), true),
            ("d_x", scope(&["*", "scout"]), false),
        ];
        for (tool, scope, allowed) in cases {
            assert_eq!(scout.may_use(tool, &scope), allowed, "{tool} {scope:?}");
        }
    }
}
