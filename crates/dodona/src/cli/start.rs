//! `dodona` without a command: the project, the model that answers, and what to do next.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use super::models::Known;
use crate::failure::Failure;
use crate::paint::{Paint, harmless};
use crate::project;
use crate::shell::Shell;

/// Reads settings only: it starts nothing, and creates no home directory.
pub(super) fn run(shell: &Shell) -> Result<(), Failure> {
    let root = project::root(shell.project.as_deref())?;
    let model = Known::load()?.default;
    let text = overview(root.as_deref(), &model, Paint::of(&io::stdout()));
    super::print(&text)
}

fn overview(root: Option<&Path>, model: &str, paint: Paint) -> String {
    let mut text = format!(
        "{}: ask questions about your notes and code, get cited answers\n\n",
        paint.bold(format_args!("dodona {}", env!("CARGO_PKG_VERSION")))
    );
    let project = match root {
        Some(root) => harmless(&root.display().to_string()).into_owned(),
        None => "none here; the current directory is used".to_owned(),
    };
    let model = match model {
        "offline" => format!(
            "none configured: answers are quotations. Add one with {}",
            paint.code("dodona models set NAME --provider PROVIDER --model MODEL")
        ),
        model => harmless(model).into_owned(),
    };
    let _ = writeln!(text, "project  {project}\nmodel    {model}\n");
    for (command, about) in [
        ("dodona ask \"What is this about?\"", "ask a question"),
        ("dodona chat", "start a conversation"),
        (
            "dodona serve",
            "start the server, then `dodona open` for the page",
        ),
        ("dodona rules new NAME", "create a rule"),
        ("dodona --help", "list all commands"),
    ] {
        let command = format!("{command:34}");
        let _ = writeln!(text, "  {}{}", paint.code(command), paint.dim(about));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_where_it_is_and_which_model_answers() {
        let text = overview(Some(Path::new("/srv/shop")), "claude", Paint::plain());
        assert!(
            text.contains("project  /srv/shop\nmodel    claude\n"),
            "{text}"
        );
        let offline = overview(None, "offline", Paint::plain());
        assert!(offline.contains("dodona models set NAME"), "{offline}");
    }
}
