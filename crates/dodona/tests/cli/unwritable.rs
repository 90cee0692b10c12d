//! A server whose log cannot be written keeps answering.

use std::fs::{File, OpenOptions};
use std::process::{Child, Stdio};

use serde_json::json;

use crate::harness::{Home, wait_until};
use crate::wire::post;

/// A server with a standard error of its own; killed when dropped.
struct Mute(Child, Home);

impl Mute {
    fn start(stderr: Stdio, level: Option<&str>) -> Self {
        let home = Home::new();
        let arguments = ["serve", "--listen", "127.0.0.1:0", "--ready-file", "ready"];
        let mut command = home.command(&arguments);
        command.stdout(Stdio::null()).stderr(stderr);
        if let Some(level) = level {
            command.env("DODONA_LOG", level);
        }
        let mut process = command.spawn().unwrap();
        let ready = home.path().with_file_name("ready");
        wait_until("the server is ready", || {
            assert!(process.try_wait().unwrap().is_none(), "the server ended");
            ready.exists()
        });
        Self(process, home)
    }

    /// Calls what logs the most, and then something that must still work.
    fn assert_survives(&mut self) {
        let ready = std::fs::read(self.1.path().with_file_name("ready")).unwrap();
        let ready: serde_json::Value = serde_json::from_slice(&ready).unwrap();
        let address = ready["url"]
            .as_str()
            .unwrap()
            .strip_prefix("http://")
            .unwrap();
        let token = std::fs::read_to_string(self.1.path().join("token")).unwrap();
        let header = format!("Authorization: Bearer {}\r\n", token.trim());
        let call = |method: &str, params: serde_json::Value| {
            let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
            post(address, "/rpc", &header, &body)
        };
        for _ in 0..20 {
            assert!(!call("echo.panic", json!({}))["error"].is_null());
            assert!(!call("echo.fail", json!({}))["error"].is_null());
            let said = call("echo.say", json!({ "text": "still here" }));
            assert_eq!(said["result"]["text"], "still here");
        }
        assert!(self.0.try_wait().unwrap().is_none(), "the server ended");
    }
}

impl Drop for Mute {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn full_disk() -> Stdio {
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    full.into()
}

/// A pipe whose reader is gone.
fn broken_pipe() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

#[test]
fn a_full_disk_under_the_log_does_not_end_the_server() {
    for level in [None, Some("debug"), Some("trace")] {
        Mute::start(full_disk(), level).assert_survives();
    }
}

#[test]
fn a_closed_standard_error_does_not_end_the_server() {
    for level in [None, Some("debug")] {
        Mute::start(broken_pipe(), level).assert_survives();
        let read_only = File::open("/dev/null").unwrap();
        Mute::start(read_only.into(), level).assert_survives();
    }
}
