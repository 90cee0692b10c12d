//! Reading the file of a definition: every fault with its place, and none hides another.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::path::{Component, Path};

use dodona_plugin::reading::{Key, Problem, Reading};
use dodona_template::{Limits, Template};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Definition, DefinitionSource};
use crate::brought::Brought;
use crate::conversation::{DEFAULT_AGENT, TOKEN_BUDGETS};

/// The largest file that is read, in bytes.
const MAX_FILE_BYTES: usize = 256 * 1024;

/// The highest `max_turns`.
const MAX_TURNS: u32 = 100;

/// The most tools that a definition may name.
const MAX_TOOLS: usize = 1_000;

/// The longest name of an agent, in bytes.
const MAX_NAME_BYTES: usize = 50;

/// The keys of a definition.
const KEYS: &[&str] = &[
    "name",
    "description",
    "system_prompt_path",
    "system_prompt",
    "allowed_tools",
    "extra_tools",
    "max_turns",
    "model_override",
    "token_budget",
];

/// Whether a text can be the name of an agent: lower-case letters, digits, `_` and `-`, starting
/// with a letter or a digit. It is a file name, a word on the command line and part of a path.
pub(super) fn is_name(text: &str) -> bool {
    let fits = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-');
    (1..=MAX_NAME_BYTES).contains(&text.len())
        && text.bytes().all(fits)
        && text.starts_with(|first: char| first.is_ascii_alphanumeric())
}

/// Reads a definition of the user.
pub(super) fn file(file: &Path) -> Result<Definition, Vec<Problem>> {
    let shown = file.display().to_string();
    let text = match read_text(file) {
        Ok(text) => text,
        Err(error) => {
            let problem = Problem::of_file(shown, format!("could not be read: {error}"));
            return Err(vec![problem]);
        }
    };
    let dir = file.parent().unwrap_or(Path::new("")).to_owned();
    definition(&shown, &text, DefinitionSource::User, |prompt| {
        read_text(&dir.join(prompt))
    })
}

/// Reads a definition of a trusted project.
pub(super) fn of_project(
    project: &Brought,
    file: &str,
    text: &str,
) -> Result<Definition, Vec<Problem>> {
    let shown = format!(".dodona/agents/{file}");
    definition(&shown, text, DefinitionSource::Project, |prompt| {
        let parts: Vec<_> = prompt.iter().map(OsStr::to_string_lossy).collect();
        let found = project.texts.get(&parts.join("/"));
        found
            .cloned()
            .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    })
}

fn read_text(file: &Path) -> io::Result<String> {
    if file.metadata()?.len() > MAX_FILE_BYTES as u64 {
        let message = format!("it is larger than {MAX_FILE_BYTES} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    std::fs::read_to_string(file)
}

/// Reads a definition. `prompt` reads the file that `system_prompt_path` names.
pub(super) fn definition(
    file: &str,
    text: &str,
    source: DefinitionSource,
    prompt: impl FnOnce(&Path) -> io::Result<String>,
) -> Result<Definition, Vec<Problem>> {
    let mut reading = Reading::new(file, text);
    let Some(table) = reading.parse() else {
        return Err(reading.into_problems());
    };
    let mut draft = Draft::new(file, source);
    for (key, value) in &table {
        draft.read(&mut reading, key, value);
    }
    draft.finish(&mut reading, &table, prompt);
    match reading.count() {
        0 => Ok(draft.definition),
        _ => Err(reading.into_problems()),
    }
}

/// A definition as far as it is read.
struct Draft {
    definition: Definition,
    has_inline_prompt: bool,
}

impl Draft {
    fn new(file: &str, source: DefinitionSource) -> Self {
        Self {
            definition: Definition {
                name: String::new(),
                description: String::new(),
                allowed_tools: BTreeSet::new(),
                extra_tools: BTreeSet::new(),
                max_turns: 10,
                model: None,
                token_budget: None,
                source,
                path: file.to_owned(),
                prompt: String::new(),
                prompt_path: None,
            },
            has_inline_prompt: false,
        }
    }

    fn read(&mut self, reading: &mut Reading<'_>, key: &Key<'_>, value: &Spanned<DeValue<'_>>) {
        let definition = &mut self.definition;
        match key.get_ref().as_ref() {
            "name" => definition.name = reading.text("name", value).unwrap_or_default(),
            "description" => match value.get_ref().as_str() {
                Some(text) => definition.description = text.to_owned(),
                None => reading.expected("description", "a text", value),
            },
            "system_prompt_path" => {
                definition.prompt_path = reading.text("system_prompt_path", value);
            }
            "system_prompt" => {
                self.has_inline_prompt = true;
                definition.prompt = reading.text("system_prompt", value).unwrap_or_default();
            }
            "allowed_tools" => definition.allowed_tools = tools(reading, "allowed_tools", value),
            "extra_tools" if definition.source == DefinitionSource::Project => {
                let message = "`extra_tools` cannot be set by a project";
                let hint = "define the agent in your own configuration to give it these tools";
                reading.fault_with(key.span(), message, hint);
            }
            "extra_tools" => definition.extra_tools = tools(reading, "extra_tools", value),
            "max_turns" => {
                let range = 1..=u64::from(MAX_TURNS);
                if let Some(turns) = number(reading, "max_turns", value, range) {
                    definition.max_turns = u32::try_from(turns).unwrap_or(MAX_TURNS);
                }
            }
            "model_override" => definition.model = reading.text("model_override", value),
            "token_budget" => {
                definition.token_budget = number(reading, "token_budget", value, TOKEN_BUDGETS);
            }
            _ => reading.unknown(key, KEYS),
        }
    }

    /// What concerns the whole: required keys, the name, the prompt.
    fn finish(
        &mut self,
        reading: &mut Reading<'_>,
        table: &DeTable<'_>,
        prompt: impl FnOnce(&Path) -> io::Result<String>,
    ) {
        let span = |key: &str| table.get(key).map_or(0..0, Spanned::span);
        for key in ["name", "allowed_tools"] {
            if !table.contains_key(key) {
                reading.fault(0..0, format!("`{key}` is missing"));
            }
        }
        let definition = &mut self.definition;
        let stem = Path::new(&definition.path).file_stem();
        let stem = stem.and_then(OsStr::to_str).unwrap_or_default();
        if table.contains_key("name") {
            if definition.name != stem {
                let message = format!("`name` must be `{stem}`, the file name without `.toml`");
                reading.fault(span("name"), message);
            } else if !is_name(stem) {
                let message = format!("invalid agent name `{stem}`");
                reading.fault_with(span("name"), message, NAME_HINT);
            } else if stem == DEFAULT_AGENT {
                let message = format!("`{DEFAULT_AGENT}` is the main agent and cannot be defined");
                let hint = "replace its prompt with `prompts/oracle.md` instead";
                reading.fault_with(span("name"), message, hint);
            }
        }
        match (definition.prompt_path.clone(), self.has_inline_prompt) {
            (Some(_), true) => {
                let message = "`system_prompt` and `system_prompt_path` exclude each other";
                reading.fault(span("system_prompt"), message);
            }
            (None, false) if !table.contains_key("system_prompt_path") => {
                let message = "`system_prompt_path` is missing";
                let hint = "name a file with the prompt, or write the prompt as `system_prompt`";
                reading.fault_with(0..0, message, hint);
            }
            (None, _) => {}
            (Some(path), false) => {
                definition.prompt = prompt_of(reading, &path, span("system_prompt_path"), prompt)
                    .unwrap_or_default();
            }
        }
        if let Err(error) = Template::compile(&definition.prompt, &Limits::prompt()) {
            let key = match self.has_inline_prompt {
                true => "system_prompt",
                false => "system_prompt_path",
            };
            reading.fault(span(key), format!("`{key}`: invalid template: {error}"));
        }
    }
}

/// How the name of an agent is written.
pub(super) const NAME_HINT: &str =
    "use up to 50 lower-case letters, digits, `_` and `-`, starting with a letter or a digit";

fn prompt_of(
    reading: &mut Reading<'_>,
    path: &str,
    span: std::ops::Range<usize>,
    prompt: impl FnOnce(&Path) -> io::Result<String>,
) -> Option<String> {
    let path = Path::new(path);
    let is_plain = |part| matches!(part, Component::Normal(_));
    if !path.components().all(is_plain) {
        let message = "`system_prompt_path` must be a relative path without `..`";
        reading.fault(span, message);
        return None;
    }
    match prompt(path) {
        Ok(text) if text.trim().is_empty() => {
            let message = format!("the prompt file `{}` is empty", path.display());
            reading.fault(span, message);
            None
        }
        Ok(text) => Some(text),
        Err(error) => {
            let message = format!("could not read the prompt `{}`: {error}", path.display());
            let hint = "the path is relative to the definition's directory";
            reading.fault_with(span, message, hint);
            None
        }
    }
}

/// Names of tools, on the model's side (`vault_read`) or as methods (`vault.read`).
fn tools(reading: &mut Reading<'_>, key: &str, value: &Spanned<DeValue<'_>>) -> BTreeSet<String> {
    let names = reading.texts(key, value);
    if names.len() > MAX_TOOLS {
        let message = format!("`{key}` names more than {MAX_TOOLS} tools");
        reading.fault(value.span(), message);
    }
    names
        .iter()
        .map(|name| name.get_ref().replace('.', "_"))
        .collect()
}

fn number(
    reading: &mut Reading<'_>,
    key: &str,
    value: &Spanned<DeValue<'_>>,
    range: std::ops::RangeInclusive<u64>,
) -> Option<u64> {
    let parsed = value
        .get_ref()
        .as_integer()
        .and_then(|number| u64::from_str_radix(number.as_str(), number.radix()).ok());
    let fits = parsed.filter(|number| range.contains(number));
    if fits.is_none() {
        let (least, most) = (range.start(), range.end());
        let what = format!("a whole number from {least} to {most}");
        match value.get_ref().as_integer() {
            Some(number) => {
                let found = number.as_str();
                reading.fault(value.span(), format!("`{key}` must be {what}, not {found}"));
            }
            None => reading.expected(key, &what, value),
        }
    }
    fits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Definition, Vec<Problem>> {
        let source = DefinitionSource::User;
        definition("agents/scout.toml", text, source, |path| {
            match path.to_str() {
                Some("broken.md") => Ok("You are {% if %}".to_owned()),
                Some("empty.md") => Ok(" \n".to_owned()),
                Some("missing.md") => Err(io::ErrorKind::NotFound.into()),
                _ => Ok(format!("prompt {}", path.display())),
            }
        })
    }

    #[test]
    fn a_definition_has_defaults_and_names_tools_either_way() {
        let text = "name = \"scout\"\nsystem_prompt_path = \"p/scout.md\"\n\
                    allowed_tools = [\"vault.read\", \"code_search\"]";
        let scout = parse(text).unwrap();
        assert_eq!(
            (scout.max_turns, scout.model.as_deref(), scout.token_budget),
            (10, None, None)
        );
        let tools: Vec<&String> = scout.allowed_tools.iter().collect();
        assert_eq!(tools, ["code_search", "vault_read"]);
        assert_eq!(scout.prompt_text(), "prompt p/scout.md");
    }

    #[test]
    fn a_prompt_can_stand_in_the_definition() {
        let text = "name = \"scout\"\nallowed_tools = []\n\
                    system_prompt = \"\"\"\nYou are {{ agent }}.\n\"\"\"";
        let scout = parse(text).unwrap();
        assert_eq!(scout.prompt_text(), "You are {{ agent }}.\n");
    }

    #[test]
    fn faults_are_reported_with_file_and_line() {
        let cases = [
            ("name = \"other\"", "4:8: `name` must be `scout`"),
            ("max_turns = 0", "from 1 to 100, not 0"),
            ("max_turns = 101", "from 1 to 100, not 101"),
            ("max_turns = -1", "from 1 to 100, not -1"),
            ("max_turns = \"10\"", "from 1 to 100, not a string"),
            ("token_budget = 10", "from 4000 to 128000, not 10"),
            ("system_prompt_path = \"../secret\"", "without `..`"),
            ("system_prompt_path = \"/etc/passwd\"", "without `..`"),
            ("system_prompt_path = \"broken.md\"", "invalid template"),
            ("system_prompt_path = \"empty.md\"", "is empty"),
            ("system_prompt_path = \"missing.md\"", "could not read"),
            ("system_prompt = \"too\"", "exclude each other"),
            ("allowed_tools = 5", "`allowed_tools` must be a list"),
            ("allowed_tools = [5]", "`allowed_tools` must be a text"),
            ("colour = \"red\"", "4:1: unknown key `colour`"),
            ("max_turn = 3", "did you mean `max_turns`?"),
            ("name = ", "scout.toml"),
        ];
        for (line, expected) in cases {
            let mut lines = vec![
                "name = \"scout\"",
                "system_prompt_path = \"scout.md\"",
                "allowed_tools = []",
                "",
            ];
            let key = line.split(' ').next().unwrap();
            for known in &mut lines {
                if known.split(' ').next() == Some(key) {
                    *known = "";
                }
            }
            lines[3] = line;
            let problems = parse(&lines.join("\n")).unwrap_err();
            let shown = problems[0].to_string();
            assert!(shown.contains(expected), "{line}: {shown}");
        }
        let missing = parse("").unwrap_err();
        let missing: Vec<&str> = missing.iter().map(|fault| fault.message.as_str()).collect();
        assert_eq!(
            missing,
            [
                "`name` is missing",
                "`allowed_tools` is missing",
                "`system_prompt_path` is missing"
            ]
        );
    }

    #[test]
    fn a_project_cannot_give_an_agent_extra_tools() {
        let text = "name = \"scout\"\nsystem_prompt = \"p\"\nallowed_tools = []\n\
                    extra_tools = [\"web_fetch\"]";
        let source = DefinitionSource::Project;
        let problems = definition("scout.toml", text, source, |_| unreachable!()).unwrap_err();
        assert_eq!(
            problems[0].message,
            "`extra_tools` cannot be set by a project"
        );
    }

    #[test]
    fn names_are_short_lower_case_words() {
        for name in ["scout", "123", "a", "note-keeper_2"] {
            assert!(is_name(name), "{name}");
        }
        for name in [
            "",
            "Scout",
            "-a",
            "_a",
            "a b",
            "ä",
            "a/b",
            "..",
            &"x".repeat(51),
        ] {
            assert!(!is_name(name), "{name}");
        }
    }
}
