//! `dodona man`.

use std::fs;
use std::path::PathBuf;

use clap::{Arg, Args, Command, CommandFactory};
use dodona_proto::ExitKind;

use super::Cli;
use crate::failure::Failure;

/// Write manual pages to a directory, one for each command
///
/// Packages contain these pages. They are generated from the definition of the command line, so that
/// they match `--help`.
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct Man {
    /// The directory; it is created if it is missing
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

impl Man {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let mut root = Cli::command();
        // Gives subcommands their full names and the global options.
        root.build();
        let mut pages = Vec::new();
        collect(&root, None, &mut pages);
        let failed = |error| {
            let shown = self.directory.display();
            Failure::new(
                ExitKind::Failed,
                format!("could not write manual pages to `{shown}`: {error}"),
            )
        };
        fs::create_dir_all(&self.directory).map_err(failed)?;
        for (name, text) in pages {
            fs::write(self.directory.join(format!("{name}.1")), text).map_err(failed)?;
        }
        Ok(())
    }
}

/// Adds the page of a command and those of its subcommands, each as a name and roff source.
fn collect(command: &Command, parent: Option<&str>, pages: &mut Vec<(String, String)>) {
    let name = command.get_display_name().unwrap_or(command.get_name());
    pages.push((name.to_owned(), page(command, name, parent)));
    for child in shown(command) {
        collect(child, Some(name), pages);
    }
}

/// Subcommands with a page. clap adds `help`, which has nothing of its own to document.
fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command
        .get_subcommands()
        .filter(|child| !child.is_hide_set() && child.get_name() != "help")
}

fn page(command: &Command, name: &str, parent: Option<&str>) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let about = command.get_about().map(ToString::to_string);
    let mut text = format!(
        ".TH \"{}\" 1 \"\" \"Dodona {version}\" \"Dodona Manual\"\n.SH NAME\n{} \\- {}\n",
        escape(&name.to_uppercase()),
        escape(name),
        escape(about.as_deref().unwrap_or_default())
    );
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim();
    text.push_str(&format!(".SH SYNOPSIS\n{}", preformatted(usage)));
    if let Some(long) = command.get_long_about().map(ToString::to_string) {
        text.push_str(".SH DESCRIPTION\n");
        for paragraph in long.split("\n\n") {
            text.push_str(&format!(".PP\n{}\n", escape(paragraph)));
        }
    }
    text.push_str(&options(command));
    let children = shown(command).map(|child| {
        let name = child.get_display_name().unwrap_or(child.get_name());
        let about = child.get_about().map(ToString::to_string);
        let about = about.unwrap_or_default();
        format!(".TP\n\\fB{}\\fR(1)\n{}\n", escape(name), escape(&about))
    });
    text.push_str(&section("COMMANDS", &children.collect::<String>()));
    if let Some(notes) = command.get_after_help().map(ToString::to_string) {
        text.push_str(&sections(&notes));
    }
    if let Some(parent) = parent {
        let parent = format!("\\fB{}\\fR(1)\n", escape(parent));
        text.push_str(&section("SEE ALSO", &parent));
    }
    text
}

fn options(command: &Command) -> String {
    let visible = |arg: &&Arg| !arg.is_hide_set();
    let positionals = command.get_positionals().filter(visible);
    let options = command
        .get_arguments()
        .filter(|arg| !arg.is_positional())
        .filter(visible);
    let entries = positionals.chain(options).map(entry);
    section("OPTIONS", &entries.collect::<String>())
}

fn entry(arg: &Arg) -> String {
    let mut names = Vec::new();
    if let Some(short) = arg.get_short() {
        names.push(format!("\\fB\\-{short}\\fR"));
    }
    if let Some(long) = arg.get_long() {
        names.push(format!("\\fB\\-\\-{}\\fR", escape(long)));
    }
    let mut title = names.join(", ");
    if arg.get_action().takes_values() {
        let values = arg.get_value_names().unwrap_or_default();
        let values = values.iter().map(|value| escape(value));
        let values = values.collect::<Vec<_>>().join(" ");
        let space = if title.is_empty() { "" } else { " " };
        title.push_str(&format!("{space}\\fI{values}\\fR"));
    }
    let help = arg.get_long_help().or(arg.get_help());
    let mut body = help.map(ToString::to_string).unwrap_or_default();
    let mut add = |label: &str, values: Vec<String>| {
        if !values.is_empty() {
            body.push_str(&format!(" [{label}: {}]", values.join(", ")));
        }
    };
    let possible = arg.get_possible_values();
    if arg.get_action().takes_values() && !arg.is_hide_possible_values_set() {
        let visible = possible.iter().filter(|value| !value.is_hide_set());
        let names = visible.map(|value| value.get_name().to_owned());
        add("possible values", names.collect());
    }
    let defaults = arg.get_default_values().iter();
    if arg.get_action().takes_values() && !arg.is_hide_default_value_set() {
        let defaults = defaults.map(|value| value.to_string_lossy().into_owned());
        add("default", defaults.collect());
    }
    if let Some(variable) = arg.get_env() {
        add("env", vec![variable.to_string_lossy().into_owned()]);
    }
    format!(".TP\n{title}\n{}\n", escape(body.trim()))
}

/// A section, or nothing if its body is empty.
fn section(title: &str, body: &str) -> String {
    if body.is_empty() {
        return String::new();
    }
    format!(".SH {title}\n{body}")
}

/// The text after the options: an unindented line with a colon starts a section, the rest is kept as it is
/// laid out.
fn sections(notes: &str) -> String {
    let mut text = String::new();
    let mut title = "NOTES".to_owned();
    let mut body = String::new();
    let mut finish = |title: &str, body: &mut String| {
        if !body.trim().is_empty() {
            let body = preformatted(body.trim_matches('\n'));
            text.push_str(&section(title, &body));
        }
        body.clear();
    };
    for line in notes.lines() {
        match line.strip_suffix(':') {
            Some(heading) if !line.starts_with(' ') => {
                finish(&title, &mut body);
                title = heading.to_uppercase();
            }
            _ => body.push_str(&format!("{line}\n")),
        }
    }
    finish(&title, &mut body);
    text
}

fn preformatted(text: &str) -> String {
    format!(".nf\n{}\n.fi\n", escape(text))
}

/// Text as roff prints it: a line that starts with a dot or a quote would be a request.
fn escape(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let line = line.replace('\\', "\\e").replace('-', "\\-");
        match line.starts_with(['.', '\'']) {
            true => format!("\\&{line}"),
            false => line,
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_requests_and_hyphens() {
        assert_eq!(escape(".git\n--x \\n"), "\\&.git\n\\-\\-x \\en");
    }

    #[test]
    fn notes_become_sections() {
        let text = sections("Examples:\n  dodona ask\n\nEnvironment:\n  A  b\n");
        let expected = ".SH EXAMPLES\n.nf\n  dodona ask\n.fi\n.SH ENVIRONMENT\n.nf\n  A  b\n.fi\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn every_visible_command_has_a_page() {
        let mut root = Cli::command();
        root.build();
        let mut pages = Vec::new();
        collect(&root, None, &mut pages);
        let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
        for name in ["dodona", "dodona-ask", "dodona-rules-explain"] {
            assert!(names.contains(&name), "{names:?}");
        }
        assert!(!names.contains(&"dodona-man"), "{names:?}");
    }
}
