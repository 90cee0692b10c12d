//! Agents that can be delegated to, as files define them.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use dodona_plugin::reading::{Problem, Reading, table_to_json};
use dodona_plugin::{CallError, ErrorCode};
use dodona_proto::PluginName;
use dodona_template::{Limits, Template};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::brought::Brought;
use crate::conversation::{DEFAULT_AGENT, TOKEN_BUDGETS};

/// The bundled ones: the definition and its prompt.
const BUNDLED: &[(&str, &str, &str)] = &[(
    "librarian.toml",
    include_str!("../agents/librarian.toml"),
    include_str!("../agents/librarian.md"),
)];

/// The largest prompt that is read, in bytes.
const LARGEST: u64 = 256 * 1024;

/// The most turns that one may take.
const MOST_TURNS: u32 = 100;

/// An agent that can be delegated to.
#[derive(Debug, Clone)]
pub(crate) struct Definition {
    pub(crate) name: String,
    pub(crate) description: String,
    /// Its tools, by their names on the model's side.
    pub(crate) allowed_tools: BTreeSet<String>,
    pub(crate) max_turns: u32,
    pub(crate) model: Option<String>,
    pub(crate) token_budget: Option<u64>,
    prompt: String,
    /// The file it is from.
    origin: String,
}

/// A definition as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    #[serde(default)]
    description: String,
    system_prompt_path: String,
    allowed_tools: Vec<String>,
    #[serde(default = "ten")]
    max_turns: u32,
    model_override: Option<String>,
    token_budget: Option<u64>,
}

fn ten() -> u32 {
    10
}

/// The agents there are: the bundled ones, over them the user's, and over them those of the project
/// that a call is about, if somebody trusts it. Files are read when they are asked for, so that what
/// is changed counts at once.
#[derive(Debug, Clone)]
pub(crate) struct Definitions {
    dir: Option<PathBuf>,
}

impl Definitions {
    pub(crate) fn new(dir: Option<PathBuf>) -> Self {
        Self { dir }
    }

    /// All of them by name, and what is wrong with those that cannot be used.
    pub(crate) fn load(&self, project: &Brought) -> (BTreeMap<String, Definition>, Vec<Problem>) {
        let (mut found, mut problems) = (BTreeMap::new(), Vec::new());
        let mut keep = |read: Result<Definition, Problem>| match read {
            Ok(definition) => drop(found.insert(definition.name.clone(), definition)),
            Err(problem) => problems.push(problem),
        };
        for (file, text, prompt) in BUNDLED {
            keep(read(file, text, |_| Ok((*prompt).to_owned())));
        }
        for file in self.files() {
            keep(read_file(&file));
        }
        for (file, text) in &project.texts {
            if file.ends_with(".toml") && !file.contains('/') {
                let shown = format!(".dodona/agents/{file}");
                keep(read(&shown, text, |prompt| below(project, prompt)));
            }
        }
        (found, problems)
    }

    /// One by its name.
    pub(crate) fn get(&self, name: &str, project: &Brought) -> Result<Definition, CallError> {
        let (mut all, problems) = self.load(project);
        all.remove(name).ok_or_else(|| {
            let known: Vec<&str> = all.keys().map(String::as_str).collect();
            let wrong = problems.iter().find(|problem| names(problem, name));
            let message = format!("there is no agent `{name}`");
            let error = CallError::new(ErrorCode::InvalidParams, message);
            match (wrong, &project.refused) {
                (Some(problem), _) => error.hint(problem.brief()),
                (None, Some(refused)) => error.hint(refused.clone()),
                (None, None) => error.hint(format!("there is {}", known.join(", "))),
            }
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

fn names(problem: &Problem, name: &str) -> bool {
    Path::new(&problem.path)
        .file_stem()
        .is_some_and(|stem| stem == name)
}

fn read_file(file: &Path) -> Result<Definition, Problem> {
    let shown = file.display().to_string();
    let fault =
        |error: std::io::Error| Problem::of_file(&shown, format!("cannot be read: {error}"));
    let text = read_text(file).map_err(fault)?;
    let dir = file.parent().unwrap_or(Path::new("")).to_owned();
    read(&shown, &text, |prompt| read_text(&dir.join(prompt)))
}

/// A prompt among what a project brings. Its path has plain parts alone.
fn below(project: &Brought, prompt: &Path) -> std::io::Result<String> {
    let parts: Vec<_> = prompt.iter().map(OsStr::to_string_lossy).collect();
    let found = project.texts.get(&parts.join("/"));
    found
        .cloned()
        .ok_or_else(|| std::io::ErrorKind::NotFound.into())
}

fn read_text(file: &Path) -> std::io::Result<String> {
    if file.metadata()?.len() > LARGEST {
        let message = format!("it is larger than {LARGEST} bytes");
        return Err(std::io::Error::new(
            std::io::ErrorKind::FileTooLarge,
            message,
        ));
    }
    std::fs::read_to_string(file)
}

/// Reads a definition. Its prompt is beside it, or below.
fn read(
    file: &str,
    text: &str,
    prompt: impl FnOnce(&Path) -> std::io::Result<String>,
) -> Result<Definition, Problem> {
    let fault = |message: String| Problem::of_file(file, message);
    let written = parse(file, text)?;
    let stem = Path::new(file).file_stem().and_then(|stem| stem.to_str());
    if stem != Some(&written.name) || PluginName::new(&written.name).is_err() {
        let message = "`name` must be the file's name without `.toml`, in small letters";
        return Err(fault(message.to_owned()));
    }
    if written.name == DEFAULT_AGENT {
        return Err(fault(format!("`{DEFAULT_AGENT}` is the main agent")));
    }
    if !(1..=MOST_TURNS).contains(&written.max_turns) {
        return Err(fault(format!("`max_turns` must be from 1 to {MOST_TURNS}")));
    }
    if written
        .token_budget
        .is_some_and(|budget| !TOKEN_BUDGETS.contains(&budget))
    {
        return Err(fault(
            "`token_budget` must be from 4000 to 128000".to_owned(),
        ));
    }
    let path = Path::new(&written.system_prompt_path);
    if !path
        .components()
        .all(|part| matches!(part, Component::Normal(_)))
    {
        return Err(fault(
            "`system_prompt_path` must lead to a file beside it".to_owned(),
        ));
    }
    let prompt = prompt(path).map_err(|error| fault(format!("`system_prompt_path`: {error}")))?;
    Ok(Definition {
        name: written.name,
        description: written.description,
        allowed_tools: written
            .allowed_tools
            .iter()
            .map(|name| name.replace('.', "_"))
            .collect(),
        max_turns: written.max_turns,
        model: written.model_override,
        token_budget: written.token_budget,
        prompt,
        origin: file.to_owned(),
    })
}

fn parse(file: &str, text: &str) -> Result<Written, Problem> {
    let mut reader = Reading::new(file, text);
    let Some(table) = reader.parse() else {
        let first = reader.into_problems().into_iter().next();
        return Err(first.unwrap_or_else(|| Problem::of_file(file, "is no TOML")));
    };
    let fault = |message: String| Problem::of_file(file, message);
    let fields = table_to_json(&table).map_err(fault)?;
    serde_json::from_value(Value::Object(fields)).map_err(|error| fault(error.to_string()))
}

impl Definition {
    /// Its prompt with the variables filled in.
    pub(crate) fn prompt(&self, variables: &impl Serialize) -> Result<String, CallError> {
        let wrong = |error: dodona_template::TemplateError| {
            let message = format!("the prompt of {} cannot be used: {error}", self.origin);
            CallError::new(ErrorCode::InvalidRequest, message).hint("correct the file")
        };
        let limits = Limits::prompt();
        let template = Template::compile(&self.prompt, &limits).map_err(wrong)?;
        let variables = serde_json::to_value(variables).unwrap_or_default();
        template.render(&variables, &limits).map_err(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> Result<Definition, Problem> {
        read("agents/scout.toml", text, |path| {
            Ok(format!("prompt {}", path.display()))
        })
    }

    #[test]
    fn the_bundled_ones_are_in_order() {
        let (all, problems) = Definitions::new(None).load(&Brought::default());
        assert!(problems.is_empty(), "{problems:?}");
        assert_eq!(all.keys().collect::<Vec<_>>(), ["librarian"]);
        let variables = serde_json::json!({ "agent": "librarian", "project": "shop" });
        let prompt = all["librarian"].prompt(&variables).unwrap();
        assert!(prompt.starts_with("You are librarian, who keeps the notes of the project `shop`"));
    }

    #[test]
    fn a_definition_has_defaults_and_names_tools_either_way() {
        let text = "name = \"scout\"\nsystem_prompt_path = \"p/scout.md\"\n\
                    allowed_tools = [\"vault.read\", \"code_search\"]";
        let scout = written(text).unwrap();
        assert_eq!(
            (scout.max_turns, scout.model, scout.token_budget),
            (10, None, None)
        );
        let tools: Vec<&String> = scout.allowed_tools.iter().collect();
        assert_eq!(tools, ["code_search", "vault_read"]);
    }

    #[test]
    fn what_is_wrong_is_told_with_the_file() {
        let cases = [
            ("name = \"other\"", "`name` must be the file's name"),
            ("max_turns = 0", "`max_turns` must be from 1 to 100"),
            ("token_budget = 10", "`token_budget` must be"),
            (
                "system_prompt_path = \"../secret\"",
                "must lead to a file beside it",
            ),
            (
                "system_prompt_path = \"/etc/passwd\"",
                "must lead to a file beside it",
            ),
            ("allowed_tools = 5", "invalid type"),
            ("colour = \"red\"", "unknown field `colour`"),
            ("name = ", "scout.toml"),
        ];
        for (line, expected) in cases {
            let mut lines = vec![
                "name = \"scout\"",
                "system_prompt_path = \"scout.md\"",
                "allowed_tools = []",
            ];
            let key = line.split(' ').next().unwrap();
            lines.retain(|known| !known.starts_with(key));
            lines.push(line);
            let problem = written(&lines.join("\n")).unwrap_err();
            assert!(problem.to_string().contains(expected), "{problem}");
        }
    }
}
