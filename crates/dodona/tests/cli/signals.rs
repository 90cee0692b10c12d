//! Ctrl-C.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::harness::{Home, wait_until};

fn interrupt(child: &Child) {
    kill_process(Pid::from_child(child), Signal::INT).unwrap();
}

fn rest(child: &mut Child) -> (String, ExitStatus) {
    let mut told = String::new();
    let mut stderr = child.stderr.take().unwrap();
    stderr.read_to_string(&mut told).unwrap();
    (told, child.wait().unwrap())
}

/// Waits until a command owns the home: by then it listens for signals.
fn wait_for_owner(home: &Home) {
    let note = home.data().join("owner.lock");
    wait_until("the home has an owner", || {
        fs::read_to_string(&note).is_ok_and(|text| text.ends_with('}'))
    });
}

#[test]
fn ctrl_c_cancels_a_call() {
    let home = Home::new();
    let mut child = home
        .command(&["call", "echo.slow", "ms=600000"])
        .spawn()
        .unwrap();
    wait_for_owner(&home);
    let began = Instant::now();
    interrupt(&child);
    let (told, status) = rest(&mut child);
    assert_eq!(status.code(), Some(130));
    assert!(told.starts_with("cancelled"), "{told}");
    // Ten minutes were asked for.
    assert!(began.elapsed() < Duration::from_secs(60));
}

#[test]
fn ctrl_c_cancels_a_stream_and_shows_its_terminal() {
    let home = Home::new();
    for (json, terminal) in [(false, "cancelled"), (true, r#""status":"cancelled""#)] {
        let mut arguments = vec!["call", "echo.count", "to=1000000", "delay_ms=1"];
        arguments.extend(json.then_some("--json"));
        let mut child = home.command(&arguments).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut text = String::new();
        while !text.contains(r#"{"n":1}"#) {
            assert_ne!(stdout.read_line(&mut text).unwrap(), 0, "{text}");
        }
        interrupt(&child);
        stdout.read_to_string(&mut text).unwrap();
        let (told, status) = rest(&mut child);
        assert_eq!(status.code(), Some(130));
        let end = if json { &text } else { &told };
        let last = end.lines().last().unwrap();
        assert!(last.contains(terminal), "{last}");
    }
}

#[test]
fn a_second_ctrl_c_ends_at_once() {
    let home = Home::new();
    // Nobody reads, so that it hangs while it writes.
    let mut child = home
        .command(&["call", "echo.count", "to=10000000"])
        .spawn()
        .unwrap();
    wait_for_owner(&home);
    interrupt(&child);
    wait_until("a second signal ends it", || {
        interrupt(&child);
        child.try_wait().unwrap().is_some()
    });
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn a_watched_index_takes_in_changes_until_ctrl_c() {
    let home = Home::new();
    let project = home.path().with_file_name("project");
    fs::create_dir(&project).unwrap();
    fs::write(project.join("a.md"), "# Apples\n").unwrap();
    let mut child = home
        .command(&["index", "--watch", "--project", "project"])
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert_eq!(
        line,
        "1 file · 1 note · 1 changed · 0 removed · 0 skipped\n"
    );
    fs::write(project.join("b.md"), "# Pears\n").unwrap();
    line.clear();
    stdout.read_line(&mut line).unwrap();
    assert_eq!(
        line,
        "2 files · 2 notes · 1 changed · 0 removed · 0 skipped\n"
    );
    interrupt(&child);
    let (told, status) = rest(&mut child);
    assert_eq!(status.code(), Some(0), "{told}");
}

/// The server is stopped as by Ctrl-Z: the system still accepts connections for it.
#[test]
fn a_timeout_holds_for_a_server_that_is_stopped() {
    let server = crate::serve::Server::on(Home::new());
    let pid = server.pid();
    let run = |arguments: &[&str]| server.home.run(arguments);
    assert_eq!(
        run(&["call", "echo.say", "text=x", "--timeout", "30s"]).code,
        Some(0)
    );
    kill_process(pid, Signal::STOP).unwrap();
    let called = run(&["call", "echo.say", "text=x", "--timeout", "3s"]);
    kill_process(pid, Signal::CONT).unwrap();
    assert_eq!(called.code, Some(4), "{}", called.stderr);
    let number = pid.as_raw_nonzero();
    let message = format!("error: the server (process {number}) did not respond within 3.0 s");
    assert!(called.stderr.contains(&message), "{}", called.stderr);
    assert!(
        called.stderr.contains(&format!("kill -CONT {number}")),
        "{}",
        called.stderr
    );
    assert_eq!(run(&["call", "echo.say", "text=x"]).code, Some(0));
}
