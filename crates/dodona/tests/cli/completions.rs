//! `dodona completions`.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::harness::{Home, check};

fn script(shell: &str) -> String {
    let outcome = Home::new().run(&["completions", shell]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    outcome.stdout
}

/// Lets a shell that is installed read the script without running it.
fn parse(program: &str, script: &str) {
    let started = Command::new(program)
        .arg("-n")
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match started {
        Ok(child) => child,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
        Err(error) => panic!("{program}: {error}"),
    };
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(script.as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{program}: {told}");
}

#[test]
fn shells_can_read_their_scripts() {
    for shell in ["bash", "zsh", "fish"] {
        let script = script(shell);
        for word in ["doctor", "methods", "completions"] {
            assert!(script.contains(word), "{shell} does not know {word}");
        }
        parse(shell, &script);
    }
}

#[test]
fn bash_completes_commands_and_options() {
    let ask = r#"
        source /dev/stdin
        COMP_WORDS=(dodona do); COMP_CWORD=1; _dodona dodona do dodona; echo "${COMPREPLY[@]}"
        COMP_WORDS=(dodona call --t); COMP_CWORD=2; _dodona dodona --t call; echo "${COMPREPLY[@]}"
    "#;
    let mut child = Command::new("bash")
        .args(["--norc", "-c", ask])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("bash is installed wherever this is built");
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(script("bash").as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "doctor\n--timeout\n"
    );
}

#[test]
fn an_unknown_shell_is_told_what_there_is() {
    check("completions_unknown_shell", &["completions", "cmd"]);
}
