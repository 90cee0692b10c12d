//! The process that is killed, and what it said.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use dodona_proto::StreamId;

/// How long any run may take: far more than one needs, so that only a hang meets it.
const HANG: Duration = Duration::from_secs(60);

/// The program.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_crash-writer");

/// One thing the writer said.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Line {
    Ready,
    Open(StreamId),
    Item {
        stream: StreamId,
        seq: u64,
        fingerprint: u64,
    },
    Tallying,
    Tally(u64),
    Error(String),
    Finished,
}

/// When to end the writer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Until {
    /// It ends by itself.
    Exit,
    /// Killed after so many lines.
    Lines(u64),
    /// Killed after this time.
    Time(Duration),
}

/// What came of a run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) said: Vec<Line>,
    pub(crate) status: ExitStatus,
    pub(crate) stderr: String,
    /// It had to be killed because it did not end.
    pub(crate) hung: bool,
}

/// Runs the writer, in a process group of its own, and ends it.
pub(crate) fn run(command: &mut Command, until: Until) -> Run {
    let ended = end(command, until);
    Run {
        said: ended.lines.iter().map(|line| parse(line)).collect(),
        status: ended.status,
        stderr: ended.stderr,
        hung: ended.hung,
    }
}

/// What came of any process.
#[derive(Debug)]
pub(crate) struct Ended {
    /// What it wrote, by line.
    pub(crate) lines: Vec<String>,
    pub(crate) status: ExitStatus,
    pub(crate) stderr: String,
    /// It had to be killed because it did not end.
    pub(crate) hung: bool,
}

/// Runs a process in a process group of its own, and ends it.
pub(crate) fn end(command: &mut Command, until: Until) -> Ended {
    let mut child = command
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("could not run {command:?}: {error}"));
    let lines = lines(&mut child);
    let stderr = child.stderr.take().unwrap();
    let stderr = thread::spawn(move || {
        let mut text = String::new();
        let _ = BufReader::new(stderr).read_to_string(&mut text);
        text
    });
    let (mut said, hung) = listen(&mut child, &lines, until);
    kill(&mut child);
    // What it wrote before it died, it has acknowledged.
    said.extend(lines);
    let status = child.wait().unwrap();
    Ended {
        lines: said,
        status,
        stderr: stderr.join().unwrap(),
        hung,
    }
}

/// Its whole lines; one that was cut short was never said.
fn lines(child: &mut Child) -> Receiver<String> {
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        let mut line = String::new();
        while stdout.read_line(&mut line).is_ok_and(|read| read > 0) && line.ends_with('\n') {
            let _ = sender.send(line.trim_end().to_owned());
            line.clear();
        }
    });
    lines
}

/// Collects lines until it is time to end the writer; tells whether that was a hang.
fn listen(child: &mut Child, lines: &Receiver<String>, until: Until) -> (Vec<String>, bool) {
    let begun = Instant::now();
    let mut said = Vec::new();
    loop {
        let bound = match until {
            Until::Lines(most) if said.len() as u64 >= most => return (said, false),
            Until::Time(time) => time,
            Until::Lines(_) | Until::Exit => HANG,
        };
        match lines.recv_timeout(bound.saturating_sub(begun.elapsed())) {
            Ok(line) => said.push(line),
            Err(RecvTimeoutError::Timeout) => return (said, !matches!(until, Until::Time(_))),
            Err(RecvTimeoutError::Disconnected) => return (said, hangs(child, begun)),
        }
    }
}

/// Waits for a process that has closed its output to be gone.
fn hangs(child: &mut Child, begun: Instant) -> bool {
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > HANG {
            return true;
        }
        thread::sleep(Duration::from_millis(1));
    }
    false
}

/// `kill -9` for it and, where it is a tracer, for what it traces.
fn kill(child: &mut Child) {
    if child.try_wait().unwrap().is_none() {
        let group = format!("-{}", child.id());
        let killed = Command::new("kill").args(["-9", "--", &group]).status();
        assert!(killed.is_ok(), "could not run `kill`: {killed:?}");
        let _ = child.kill();
    }
}

fn parse(line: &str) -> Line {
    let mut words = line.split(' ');
    let mut word = || words.next().unwrap_or_default();
    match word() {
        "ready" => Line::Ready,
        "open" => Line::Open(word().parse().unwrap()),
        "item" => Line::Item {
            stream: word().parse().unwrap(),
            seq: word().parse().unwrap(),
            fingerprint: u64::from_str_radix(word(), 16).unwrap(),
        },
        "tallying" => Line::Tallying,
        "tally" => Line::Tally(word().parse().unwrap()),
        "error" => Line::Error(line.to_owned()),
        "finished" => Line::Finished,
        _ => panic!("the writer said {line:?}"),
    }
}
