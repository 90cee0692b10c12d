//! Runs the commands of `docs/tutorial.md` in one shell and compares their output with the page.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::harness::DODONA;

/// A command of the page and the output that the page shows.
struct Step {
    line: usize,
    command: String,
    expected: Vec<String>,
}

/// Reads the `console` blocks: `$ ` starts a command, `> ` continues it, the rest is its output.
fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut is_in_block = false;
    for (line, text) in (1..).zip(page.lines()) {
        if let Some(language) = text.strip_prefix("```") {
            is_in_block = !is_in_block && language == "console";
        } else if is_in_block && let Some(command) = text.strip_prefix("$ ") {
            steps.push(Step {
                line,
                command: command.to_owned(),
                expected: Vec::new(),
            });
        } else if is_in_block && let Some(step) = steps.last_mut() {
            match text.strip_prefix("> ") {
                Some(more) => step.command = format!("{}\n{more}", step.command),
                None => step.expected.push(text.to_owned()),
            }
        }
    }
    steps
}

/// Whether a line of output fits a line of the page, in which `…` stands for any text.
fn fits(output: &str, expected: &str) -> bool {
    let mut parts = expected.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = output.strip_prefix(first) else {
        return false;
    };
    let mut last = None;
    for part in parts {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
        last = Some(part);
    }
    last.map_or(rest.is_empty(), |part| {
        part.is_empty() || output.ends_with(part)
    })
}

/// Whether the output fits; a line with only `…` stands for any number of lines.
fn lines_fit(output: &[&str], expected: &[String]) -> bool {
    match expected.split_first() {
        None => output.is_empty(),
        Some((any, rest)) if any == "…" => {
            (0..=output.len()).any(|skipped| lines_fit(&output[skipped..], rest))
        }
        Some((line, rest)) => {
            output.first().is_some_and(|text| fits(text, line)) && lines_fit(&output[1..], rest)
        }
    }
}

#[test]
fn tutorial_commands_print_what_the_page_shows() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/tutorial.md")).unwrap();
    let steps = steps(&page);
    assert!(steps.len() > 10, "the page has console blocks");
    let folder = tempfile::tempdir().unwrap();
    let bin = Path::new(DODONA).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    // One shell for all commands, because `cd` must last. A mark ends the output of each.
    let script: String = steps
        .iter()
        .map(|step| format!("{}\necho '<<<end>>>'\n", step.command))
        .collect();
    let output = Command::new("sh")
        .args(["-c", &script])
        .current_dir(&folder)
        .env("PATH", path)
        .env("DODONA_HOME", folder.path().join("home"))
        .env("NO_COLOR", "1")
        .env_remove("DODONA_LOG")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let outputs: Vec<&str> = stdout.split("<<<end>>>\n").collect();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(outputs.len(), steps.len() + 1, "{stdout}\n{stderr}");
    for (step, output) in steps.iter().zip(outputs) {
        let lines: Vec<&str> = output.lines().collect();
        assert!(
            lines_fit(&lines, &step.expected),
            "docs/tutorial.md:{}: `{}` printed\n{output}\ninstead of\n{}\n{stderr}",
            step.line,
            step.command,
            step.expected.join("\n")
        );
    }
}

#[test]
fn output_is_compared_with_wildcards() {
    assert!(fits("a 12 b", "a … b"));
    assert!(fits("12 ms", "…"));
    assert!(!fits("a 12 c", "a … b"));
    assert!(!fits("ab", "a"));
    let page = ["one".to_owned(), "…".to_owned(), "end".to_owned()];
    assert!(lines_fit(&["one", "x", "y", "end"], &page));
    assert!(lines_fit(&["one", "end"], &page));
    assert!(!lines_fit(&["one", "x"], &page));
}
