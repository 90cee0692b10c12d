//! Servers that a plugin's directory brings: `[process]` in a manifest.

use std::path::Path;

use dodona_testkit::TestHub;
use serde_json::{Value, json};

use crate::support::{hub, is_alive, server, text, until};

/// Writes a plugin whose program is a script beside its manifest.
fn write(hub: &TestHub, name: &str, process: &str) {
    let dir = hub.config_dir().join("plugins").join(name);
    std::fs::create_dir_all(dir.join("data")).unwrap();
    let script = dir.join("server");
    let python = server("good.py");
    let run = format!("#!/bin/sh\nexec python3 -I {} \"$@\"\n", python.display());
    std::fs::write(&script, run).unwrap();
    executable(&script);
    let manifest = format!(
        "[plugin]\nid = \"{name}\"\nversion = \"1.2.0\"\ndescription = \"A server\"\n{process}\n\
         [settings.colour]\ntype = \"string\"\ndefault = \"red\"\n"
    );
    std::fs::write(dir.join("manifest.toml"), manifest).unwrap();
}

#[cfg(unix)]
fn executable(script: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(script, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[cfg(not(unix))]
fn executable(_: &Path) {}

async fn info(hub: &TestHub, name: &str) -> Value {
    hub.call("ada", "plugins.info", json!({"plugin": name}))
        .await
        .unwrap()
}

#[tokio::test]
async fn a_manifest_brings_a_server_with_its_place_and_its_variables() {
    let hub = hub().await;
    let process = "[process]\ncommand = \"./server\"\nargs = [\"--quiet\"]\ncwd = \"data\"\n\
                   env = { MODE = \"read\", TOLD = \"by the manifest\" }\n";
    write(&hub, "beside", process);
    // What the user says wins over what the manifest says, and stands beside its settings.
    let settings = "colour = \"blue\"\n[server.env]\nTOLD = \"by the user\"\n";
    std::fs::write(hub.config_dir().join("plugins/beside.toml"), settings).unwrap();
    hub.call("ada", "plugins.reload", json!({})).await.unwrap();
    let told = info(&hub, "beside").await;
    assert_eq!(
        (&told["state"], &told["version"]),
        (&json!("active"), &json!("1.2.0")),
        "{told}"
    );
    assert_eq!(
        text(&hub, "beside.say", json!({"text": "hello"})).await,
        "hello"
    );
    let seen = text(&hub, "beside.environment", json!({})).await;
    let seen: Value = serde_json::from_str(&seen).unwrap();
    assert_eq!(
        (&seen["MODE"], &seen["TOLD"]),
        (&json!("read"), &json!("by the user"))
    );
    let cwd = seen["PWD"].as_str().unwrap();
    assert!(Path::new(cwd).ends_with("plugins/beside/data"), "{cwd}");
    let pid = text(&hub, "beside.pid", json!({})).await;
    std::fs::remove_dir_all(hub.config_dir().join("plugins/beside")).unwrap();
    hub.call("ada", "plugins.reload", json!({})).await.unwrap();
    until("the end of the server", || !is_alive(&pid)).await;
    hub.stop().await;
}

#[tokio::test]
async fn a_manifest_whose_program_is_not_there_says_so() {
    let hub = hub().await;
    write(&hub, "lost", "[process]\ncommand = \"./nowhere\"\n");
    hub.call("ada", "plugins.reload", json!({})).await.unwrap();
    let told = info(&hub, "lost").await;
    assert_eq!(told["state"], "failed", "{told}");
    let reason = told["reason"].as_str().unwrap();
    assert!(reason.contains("nowhere` could not be started"), "{reason}");
    hub.stop().await;
}
