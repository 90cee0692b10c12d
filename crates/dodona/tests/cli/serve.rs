//! `dodona serve`, and the commands that use it.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::Duration;

use serde_json::Value;

use crate::harness::{Home, wait_until};

/// A server on a home of its own; killed when dropped.
pub(crate) struct Server {
    pub(crate) home: Home,
    process: Process,
}

/// Killed when dropped.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Server {
    fn start() -> Self {
        Self::on(Home::new())
    }

    /// On a home that has settings already.
    pub(crate) fn on(home: Home) -> Self {
        let process = Self::spawn(&home, "127.0.0.1:0");
        Self { home, process }
    }

    /// With more variables in its environment, and its log in a file.
    pub(crate) fn with_env(home: Home, env: &[(&str, &str)]) -> Self {
        let log = fs::File::create(Self::log_file(&home)).unwrap();
        let mut command = Self::command(&home, "127.0.0.1:0");
        command.envs(env.iter().copied()).stderr(log);
        let process = Self::spawn_as(&home, command);
        Self { home, process }
    }

    /// What a server that was started with [`Self::with_env`] has logged.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(Self::log_file(&self.home)).unwrap()
    }

    fn log_file(home: &Home) -> PathBuf {
        home.path().with_file_name("log")
    }

    fn spawn(home: &Home, listen: &str) -> Process {
        Self::spawn_as(home, Self::command(home, listen))
    }

    fn command(home: &Home, listen: &str) -> Command {
        home.command(&["serve", "--listen", listen, "--ready-file", "ready"])
    }

    fn spawn_as(home: &Home, mut command: Command) -> Process {
        let ready = Self::ready_file(home);
        let _ = fs::remove_file(&ready);
        let process = command.spawn().unwrap();
        wait_until("the server is ready", || ready.exists());
        Process(process)
    }

    /// Its process.
    #[cfg(unix)]
    pub(crate) fn pid(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_child(&self.process.0)
    }

    /// Kills it; its home stays.
    pub(crate) fn end(self) -> Home {
        drop(self.process);
        self.home
    }

    fn ready_file(home: &Home) -> PathBuf {
        home.path().with_file_name("ready")
    }

    /// `kill -9`, and a new one on the same home and port.
    pub(crate) fn restart(&mut self) {
        let ready: Value =
            serde_json::from_slice(&fs::read(Self::ready_file(&self.home)).unwrap()).unwrap();
        let address = ready["url"]
            .as_str()
            .unwrap()
            .strip_prefix("http://")
            .unwrap();
        self.process.0.kill().unwrap();
        self.process.0.wait().unwrap();
        self.process = Self::spawn(&self.home, address);
    }

    /// The ids of the running calls of a method. Other commands' own calls come and go.
    fn running(&self, method: &str) -> Vec<String> {
        let calls = self.json(&["calls", "--json"]);
        let of_method = calls
            .as_array()
            .unwrap()
            .iter()
            .filter(|call| call["method"] == method);
        of_method
            .map(|call| call["call_id"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Where it listens, and the header that lets one in.
    pub(crate) fn door(&self) -> (String, String) {
        let ready = fs::read(Self::ready_file(&self.home)).unwrap();
        let ready: Value = serde_json::from_slice(&ready).unwrap();
        let url = ready["url"].as_str().unwrap();
        let token = fs::read_to_string(self.home.path().join("token")).unwrap();
        let address = url.strip_prefix("http://").unwrap().to_owned();
        (
            address,
            format!("Authorization: Bearer {}\r\n", token.trim()),
        )
    }

    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let outcome = self.home.run(arguments);
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        serde_json::from_str(&outcome.stdout).unwrap()
    }
}

#[test]
fn running_calls_are_listed_as_a_tree_and_a_path_stops_a_part_of_it() {
    let server = Server::start();
    let call = ["call", "echo.nest", "depth=1", "width=2", "delay_ms=60000"];
    let mut caller = server.home.command(&call).spawn().unwrap();
    let running = || server.running("echo.nest").len();
    wait_until("all three calls run", || running() == 3);
    let tree = server.home.run(&["calls"]).stdout;
    let branches: Vec<&str> = tree
        .lines()
        .map(|line| line.split("   ").next().unwrap())
        .collect();
    assert_eq!(
        branches,
        ["echo.nest", "├ echo.nest", "└ echo.nest"],
        "{tree}"
    );
    let stopped = server.home.run(&["cancel", "echo.echo"]);
    assert_eq!(stopped.stdout, "stopped 2 calls: echo.echo, echo.echo\n");
    wait_until("nothing runs", || running() == 0);
    assert_eq!(caller.wait().unwrap().code(), Some(130));
    assert_eq!(server.home.run(&["calls"]).stdout, "nothing is running\n");
}

#[test]
fn the_first_digits_of_an_id_stop_a_call() {
    let server = Server::start();
    let mut caller = server
        .home
        .command(&["call", "echo.slow", "ms=60000"])
        .spawn()
        .unwrap();
    wait_until("the call runs", || server.running("echo.slow").len() == 1);
    let id = server.running("echo.slow")[0][..8].to_owned();
    assert_eq!(
        server.home.run(&["cancel", &id]).stdout,
        "stopped 1 call: echo\n"
    );
    assert_eq!(caller.wait().unwrap().code(), Some(130));
    let unknown = server.home.run(&["cancel", "ffffffff"]);
    assert_eq!(unknown.stdout, "nothing of that name is running\n");
}

#[test]
fn tokens_are_made_listed_and_revoked() {
    let server = Server::start();
    let created = server.json(&[
        "token",
        "create",
        "--user",
        "bob",
        "--scope",
        "echo:*",
        "--expires",
        "1h",
        "--json",
    ]);
    assert!(created["token"].as_str().unwrap().starts_with("dod_"));
    let id = created["info"]["id"].as_str().unwrap();
    let listed = server.home.run(&["token", "list"]);
    assert!(
        listed.stdout.contains(id) && listed.stdout.contains("echo:*"),
        "{}",
        listed.stdout
    );
    assert!(!listed.stdout.contains(created["token"].as_str().unwrap()));
    let again = server
        .home
        .run(&["token", "create", "--user", "bob", "--scope", "echo:*"]);
    assert_eq!(again.code, Some(2), "two tokens have one name");
    assert_eq!(server.home.run(&["token", "revoke", id]).code, Some(0));
    assert_eq!(server.home.run(&["token", "revoke", id]).code, Some(2));
}

#[test]
fn a_link_for_the_browser_needs_a_server() {
    let link = Server::start().home.run(&["open"]).stdout;
    assert!(
        link.starts_with("http://127.0.0.1:") && link.contains("/login?code="),
        "{link}"
    );
    let without = Home::new().run(&["open"]);
    assert_eq!(without.code, Some(1));
    assert!(
        without
            .stderr
            .contains("hint: start one with `dodona serve`"),
        "{}",
        without.stderr
    );
}

#[test]
fn a_second_server_on_the_home_is_told_where_the_first_is() {
    let server = Server::start();
    let second = server.home.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(second.code, Some(5), "{}", second.stderr);
    assert!(
        second.stderr.contains("it serves at http://127.0.0.1:"),
        "{}",
        second.stderr
    );
}

#[test]
fn a_stream_goes_on_over_a_killed_and_restarted_server() {
    let mut server = Server::start();
    let call = ["call", "echo.count", "to=1000", "delay_ms=5", "--json"];
    let caller = server.home.command(&call).spawn().unwrap();
    wait_until("the call runs", || server.running("echo.count").len() == 1);
    std::thread::sleep(Duration::from_millis(100));
    server.restart();
    let outcome = caller.wait_with_output().unwrap();
    let text = String::from_utf8(outcome.stdout).unwrap();
    let items: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let numbers: Vec<u64> = items
        .iter()
        .map(|item| item["seq"].as_u64().unwrap())
        .collect();
    assert_eq!(
        numbers,
        (1..=numbers.len() as u64).collect::<Vec<_>>(),
        "no hole, no repetition"
    );
    let last = items.last().unwrap();
    assert_eq!(
        (last["status"].as_str(), last["reason"].as_str()),
        (Some("failed"), Some("interrupted"))
    );
}

#[cfg(unix)]
#[test]
fn a_server_that_is_told_to_end_lets_go_of_everything() {
    let mut server = Server::start();
    let pid = server.process.0.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-TERM", &pid])
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(server.process.0.wait().unwrap().code(), Some(0));
    assert!(
        !Server::ready_file(&server.home).exists(),
        "the ready file names a server that is gone"
    );
    assert_eq!(
        server
            .home
            .run(&["call", "echo.say", "text=x", "--json"])
            .stdout,
        "{\"text\":\"x\"}\n"
    );
}
