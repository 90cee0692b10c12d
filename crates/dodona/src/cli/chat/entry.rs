//! What somebody types: questions, which may have several lines, and commands.

use crate::nearest::nearest;

/// Every command: how it is written, and what it does.
pub(super) const COMMANDS: &[(&str, &str, &str)] = &[
    ("help", "", "this list"),
    ("model", "[NAME]", "ask another model from now on"),
    ("agent", "[NAME]", "ask another agent from now on"),
    ("context", "[NAME]", "continue in a different conversation"),
    ("new", "[NAME]", "start a conversation"),
    ("contexts", "", "the conversations of the project"),
    (
        "usage",
        "",
        "what models used and cost in this conversation",
    ),
    ("prompt", "", "what a model would be sent now"),
    ("quit", "", "end; so does Ctrl-D"),
];

/// What was typed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// Nothing.
    Empty,
    /// A question.
    Question(String),
    /// Something to do.
    Command(Command),
    /// Something that looks like a command, and what may have been meant.
    Unknown {
        word: String,
        meant: Option<&'static str>,
    },
}

/// Something to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Command {
    Help,
    Model(Option<String>),
    Agent(Option<String>),
    Context(Option<String>),
    New(Option<String>),
    Contexts,
    Usage,
    Prompt,
    Quit,
}

/// Whether something typed is complete: its last line does not end in a backslash, and no block
/// between lines of three backticks is open.
pub(super) fn is_complete(text: &str) -> bool {
    let fences = text.lines().filter(|line| line.starts_with("```")).count();
    fences.is_multiple_of(2) && !text.ends_with('\\')
}

/// The text that was meant: a backslash at the end of a line only told that there is another one.
fn joined(text: &str) -> String {
    text.replace("\\\n", "\n")
}

impl Entry {
    pub(super) fn read(text: &str) -> Self {
        let text = joined(text);
        let text = text.trim().trim_end_matches('\\').trim_end();
        if text.is_empty() {
            return Self::Empty;
        }
        match command_word(text) {
            Some((word, rest)) => Self::command(word, rest),
            None => Self::Question(text.to_owned()),
        }
    }

    fn command(word: &str, rest: &str) -> Self {
        let name = Some(rest.trim())
            .filter(|name| !name.is_empty())
            .map(str::to_owned);
        Self::Command(match word {
            "help" => Command::Help,
            "model" => Command::Model(name),
            "agent" => Command::Agent(name),
            "context" => Command::Context(name),
            "new" => Command::New(name),
            "contexts" => Command::Contexts,
            "usage" => Command::Usage,
            "prompt" => Command::Prompt,
            "quit" | "exit" => Command::Quit,
            word => {
                return Self::Unknown {
                    word: word.to_owned(),
                    meant: nearest(word, COMMANDS.iter().map(|(name, ..)| *name)),
                };
            }
        })
    }
}

/// The word after a slash, and what follows; a path such as `/etc/hosts` is none.
fn command_word(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix('/')?;
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    let is_word = !word.is_empty() && word.chars().all(|c| c.is_ascii_alphabetic());
    is_word.then_some((word, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(text: &str) -> Entry {
        Entry::Question(text.to_owned())
    }

    #[test]
    fn lines_go_on_after_a_backslash_and_within_a_block() {
        assert!(is_complete("one line"));
        assert!(!is_complete("and \\"));
        assert!(is_complete("and \\\nmore"));
        assert!(!is_complete("look:\n```rust\nfn main() {}"));
        assert!(is_complete("look:\n```rust\nfn main() {}\n```"));
        assert_eq!(Entry::read("and \\\nmore"), question("and \nmore"));
        assert_eq!(
            Entry::read("the input ended \\"),
            question("the input ended")
        );
    }

    #[test]
    fn a_slash_begins_a_command_and_a_path_does_not() {
        let model = Command::Model(Some("small".into()));
        assert_eq!(Entry::read("/model  small "), Entry::Command(model));
        assert_eq!(Entry::read(" /new"), Entry::Command(Command::New(None)));
        for text in ["/etc/hosts: what is it?", "/", "/ what?", "a /help"] {
            assert_eq!(Entry::read(text), question(text));
        }
        assert_eq!(Entry::read(" \n"), Entry::Empty);
        let meant = Some("context");
        let word = "contxt".to_owned();
        assert_eq!(Entry::read("/contxt login"), Entry::Unknown { word, meant });
    }

    #[test]
    fn every_command_of_the_list_is_known() {
        for (name, ..) in COMMANDS {
            let entry = Entry::read(&format!("/{name}"));
            assert!(matches!(entry, Entry::Command(_)), "{name}");
        }
    }
}
