//! Lost and damaged databases, backups, and the lock on the home.

use std::fs;
use std::io::{Seek, SeekFrom, Write};

use dodona_testkit::model_server::Reply;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::harness::{Home, wait_until};
use crate::model::Model;
use crate::projects::Wire;
use crate::serve::Server;

fn used() -> Home {
    let home = Home::new();
    assert_eq!(home.run(&["call", "echo.tally"]).code, Some(0));
    home
}

fn tally(home: &Home) -> u64 {
    let outcome = home.run(&["call", "echo.tally", "--json"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let value: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let count = value.as_object().unwrap().values().find_map(Value::as_u64);
    count.unwrap()
}

#[test]
fn a_missing_or_empty_database_is_not_created_again_without_consent() {
    for (file, is_core) in [
        ("hub.db", true),
        ("journal.db", true),
        ("plugins/echo/echo.db", false),
    ] {
        for emptied in [false, true] {
            let home = used();
            let path = home.data().join(file);
            match emptied {
                true => fs::write(&path, "").unwrap(),
                false => fs::remove_file(&path).unwrap(),
            }
            let call = home.run(&["call", "echo.tally"]);
            assert_ne!(call.code, Some(0), "{file}: {}", call.stdout);
            if is_core {
                let told = call.stderr.contains("--accept-data-loss");
                assert!(
                    told && call.stderr.contains(file),
                    "{file}: {}",
                    call.stderr
                );
            }
            let doctor = home.run(&["doctor"]);
            assert_eq!(doctor.code, Some(1), "{file}: {}", doctor.stdout);
            let told = doctor.stdout.contains("there is no backup");
            assert!(told && doctor.stdout.contains(file), "{}", doctor.stdout);
            let call = home.run(&["--accept-data-loss", "call", "echo.tally"]);
            assert_eq!(call.code, Some(0), "{file}: {}", call.stderr);
            assert_eq!(home.run(&["doctor"]).code, Some(0), "{file}");
        }
    }
}

#[test]
fn a_backup_of_a_running_server_restores_everything() {
    let server = Server::on(used());
    let home = &server.home;
    assert_eq!(tally(home), 2);
    let made = home.run(&["backup", "copy"]);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    assert!(made.stdout.contains("journal.db"), "{}", made.stdout);
    assert_eq!(
        home.run(&["backup", "copy"]).code,
        Some(2),
        "it was written over"
    );
    let refused = home.run(&["restore", "copy"]);
    assert_eq!(refused.code, Some(5), "restored under a server");
    assert_eq!(tally(home), 3);
    let home = server.end();
    fs::remove_file(home.data().join("plugins/echo/echo.db")).unwrap();
    fs::write(home.data().join("hub.db"), "").unwrap();
    let restored = home.run(&["restore", "copy"]);
    assert_eq!(restored.code, Some(0), "{}", restored.stderr);
    assert_eq!(tally(&home), 3, "the tally goes on from the backup");
    let doctor = home.run(&["doctor"]);
    assert_eq!(doctor.code, Some(0), "{}", doctor.stdout);
}

#[test]
fn a_damaged_backup_is_refused_and_changes_nothing() {
    let home = used();
    assert_eq!(home.run(&["backup", "copy"]).code, Some(0));
    let copy = home.path().with_file_name("copy").join("hub.db");
    let mut file = fs::File::options().write(true).open(copy).unwrap();
    file.seek(SeekFrom::Start(5000)).unwrap();
    file.write_all(b"damage").unwrap();
    let before = fs::read(home.data().join("hub.db")).unwrap();
    let refused = home.run(&["restore", "copy"]);
    assert_eq!(refused.code, Some(5), "{}", refused.stderr);
    assert!(refused.stderr.contains("hub.db"), "{}", refused.stderr);
    assert_eq!(fs::read(home.data().join("hub.db")).unwrap(), before);
    assert_eq!(
        home.run(&["restore", "home"]).code,
        Some(2),
        "no backup at all"
    );
}

#[test]
fn doctor_names_the_backup_that_exists() {
    let home = used();
    assert_eq!(home.run(&["backup"]).code, Some(0));
    fs::remove_file(home.data().join("hub.db")).unwrap();
    let doctor = home.run(&["doctor"]).stdout;
    let named = doctor
        .split("dodona restore '")
        .nth(1)
        .and_then(|rest| rest.split('\'').next())
        .expect("a backup is named");
    let restored = home.run(&["restore", named]);
    assert_eq!(restored.code, Some(0), "{}", restored.stderr);
    assert_eq!(home.run(&["doctor"]).code, Some(0));
}

#[test]
fn a_damaged_index_is_rebuilt_and_notes_stay_readable() {
    let wire = Wire::on(Home::new());
    let root = wire.folder().join("project");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("note.md"), "# Note\n\nneedle\n").unwrap();
    let find = |wire: &Wire| {
        let id = wire.owner().register(&root).unwrap();
        let read = json!({ "path": "note.md" });
        wire.owner().call(Some(&id), "vault.read", &read).unwrap();
        let query = json!({ "query": "needle" });
        let found = wire.owner().call(Some(&id), "vault.search", &query);
        let found = found.unwrap();
        assert!(found.to_string().contains("note.md"), "{found}");
    };
    find(&wire);
    let mut home = wire.server.end();
    let search = home.data().join("plugins/search/search.db");
    for damage in ["header", "empty", "missing", "pages"] {
        match damage {
            "header" => fs::write(&search, [b'x'; 8192]).unwrap(),
            "empty" => fs::write(&search, "").unwrap(),
            "missing" => fs::remove_file(&search).unwrap(),
            _ => {
                let size = fs::metadata(&search).unwrap().len() as usize;
                let mut file = fs::File::options().write(true).open(&search).unwrap();
                file.seek(SeekFrom::Start(4096)).unwrap();
                file.write_all(&vec![0x5a; size - 4096]).unwrap();
                // The server finds the damage in the background and marks the database.
                let wire = Wire::on(home);
                let mark = search.with_file_name("search.db.damaged");
                wait_until("the damage is noticed", || mark.exists());
                home = wire.server.end();
            }
        }
        let wire = Wire::on(home);
        find(&wire);
        home = wire.server.end();
        assert_eq!(home.run(&["doctor"]).code, Some(0), "{damage}");
    }
}

#[cfg(unix)]
#[test]
fn removing_the_lock_file_does_not_let_a_second_server_start() {
    let server = Server::on(used());
    fs::remove_file(server.home.data().join("owner.lock")).unwrap();
    let second = server.home.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(second.code, Some(5), "{}", second.stderr);
}

const DENY: &str = "[rule]\nid = \"gate\"\ntrigger = \"on_tool_call\"\n[condition]\nexpression = \"context.call.tool_name == 'echo_say'\"\n[action]\ntype = \"deny\"\nmessage = \"no\"\n";

#[test]
fn doctor_shows_a_broken_rule_file_and_what_is_in_force() {
    let home = Home::new();
    home.configure("");
    let rules = home.path().join("config/rules");
    fs::create_dir_all(&rules).unwrap();
    fs::write(rules.join("gate.toml"), DENY).unwrap();
    let say = ["call", "echo.say", "text=x"];
    assert_eq!(home.run(&say).code, Some(3));
    let healthy = home.run(&["doctor"]);
    assert_eq!(healthy.code, Some(0), "{}", healthy.stdout);
    assert!(
        healthy.stdout.contains("rules, no broken file"),
        "{}",
        healthy.stdout
    );
    fs::write(
        rules.join("gate.toml"),
        DENY.replace("echo_say'", "echo_say"),
    )
    .unwrap();
    fs::write(rules.join("new.toml"), "[rule]\nid = ").unwrap();
    let theirs = home.path().with_file_name("project");
    fs::create_dir_all(theirs.join(".dodona/rules")).unwrap();
    fs::write(
        theirs.join(".dodona/rules/theirs.toml"),
        "[rule]\nid = \"theirs\"\n",
    )
    .unwrap();
    let registered = home.run(&["--project", "project", "index"]);
    assert_eq!(registered.code, Some(0), "{}", registered.stderr);
    let doctor = home.run(&["doctor", "--json"]);
    assert_eq!(doctor.code, Some(1), "{}", doctor.stdout);
    let found: Value = serde_json::from_str(&doctor.stdout).unwrap();
    let checks = found["checks"].as_array().unwrap().iter();
    let wrong: Vec<&Value> = checks.filter(|check| check["verdict"] == "wrong").collect();
    assert_eq!(wrong.len(), 3, "{wrong:#?}");
    for (file, state) in [
        (
            "gate.toml:5:",
            "the last valid version of `rules/gate` is in force",
        ),
        ("new.toml:2:", "no version of this file is in force"),
        ("theirs.toml", "no version of this file is in force"),
    ] {
        let message = wrong.iter().map(|check| check["message"].as_str().unwrap());
        let message = message.clone().find(|message| message.contains(file));
        let message = message.unwrap_or_else(|| panic!("{file}: {wrong:#?}"));
        assert!(message.ends_with(state), "{message}");
    }
    // And it is: the gate still denies.
    assert_eq!(home.run(&say).code, Some(3));
    for file in [
        rules.join("new.toml"),
        theirs.join(".dodona/rules/theirs.toml"),
    ] {
        fs::remove_file(file).unwrap();
    }
    fs::write(rules.join("gate.toml"), DENY).unwrap();
    assert_eq!(home.run(&["doctor"]).code, Some(0));
}

/// Damage in the middle of a file is not met by what a start reads; a check in the background finds it.
#[test]
fn a_server_reports_damage_when_it_starts() {
    let home = Home::new();
    let counted = home.run(&["call", "echo.count", "to=5000", "--json"]);
    assert_eq!(counted.code, Some(0), "{}", counted.stderr);
    let path = home.data().join("journal.db");
    let mut file = fs::File::options().write(true).open(&path).unwrap();
    let pages = file.metadata().unwrap().len() / 4096;
    assert!(pages > 60, "{pages} pages");
    file.seek(SeekFrom::Start(pages / 2 * 4096)).unwrap();
    file.write_all(&[b'x'; 2 * 4096]).unwrap();
    drop(file);
    let server = Server::with_env(home, &[("DODONA_LOG", "warn")]);
    wait_until("the damage is reported", || {
        let log = server.log();
        log.contains("database is damaged; run `dodona doctor`") && log.contains("journal.db")
    });
    let home = server.end();
    let doctor = home.run(&["doctor"]);
    assert_eq!(doctor.code, Some(1), "{}", doctor.stdout);
    assert!(doctor.stdout.contains("journal.db"), "{}", doctor.stdout);
}

/// Without the plugin `rules` nothing says what a tool must not do.
#[test]
fn no_tool_runs_while_the_plugin_rules_is_not_active() {
    let home = Home::new();
    let model = Model::of(&home);
    let root = home.path().with_file_name("project");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("note.md"), "# Note\n\nThe code word is heron.\n").unwrap();
    let read = |id: &str| Reply::stream().tool_call(id, "vault_read", &[r#"{"path":"note.md"}"#]);
    let ask = ["--project", "project", "ask", "Read it", "--json"];
    let results = |model: &Model| {
        let body = model.requests().pop().unwrap();
        let messages = body["messages"].as_array().unwrap().clone();
        let told = messages
            .into_iter()
            .filter(|message| message["role"] == "tool");
        told.map(|message| message["content"].to_string())
            .collect::<Vec<_>>()
    };
    model.says(read("a"));
    model.says(Reply::text("Done."));
    let asked = home.run(&ask);
    assert_eq!(asked.code, Some(0), "{}", asked.stderr);
    assert!(
        results(&model).concat().contains("heron"),
        "{:?}",
        results(&model)
    );
    fs::write(
        home.data().join("plugins/rules/rules.db"),
        "this is no database",
    )
    .unwrap();
    // A command by itself, with and without an agent, and a server.
    let say = home.run(&["call", "echo.say", "text=x"]);
    assert_eq!(say.code, Some(3), "{}", say.shown());
    assert!(
        say.stderr
            .contains("tools are disabled while rules are not enforced"),
        "{}",
        say.stderr
    );
    assert!(
        say.stderr.contains("plugin `rules` is not active"),
        "{}",
        say.stderr
    );
    model.says(read("b"));
    model.says(Reply::text("Sorry."));
    let asked = home.run(&ask);
    let told = results(&model).pop().unwrap();
    assert!(
        told.contains("tools are disabled while rules are not enforced"),
        "{told}"
    );
    assert!(!told.contains("heron"), "{told}: {}", asked.stdout);
    let wire = Wire::on(home);
    let params = json!({ "text": "x" });
    let error = wire.owner().call(None, "echo.say", &params).unwrap_err();
    assert_eq!(error["data"]["code"], "policy.denied", "{error}");
    // What is no tool still works, so that it can be corrected.
    wire.owner().call(None, "plugins.list", &json!({})).unwrap();
    let home = wire.server.end();
    fs::remove_file(home.data().join("plugins/rules/rules.db")).unwrap();
    let again = home.run(&["--accept-data-loss", "call", "echo.say", "text=x"]);
    assert_eq!(again.code, Some(0), "{}", again.stderr);
}

/// `faketime` shows the server a clock that is 400 days ahead, as a machine whose battery is empty
/// may. The journal keeps entries for 90 days.
#[cfg(target_os = "linux")]
#[test]
fn a_start_with_a_clock_that_is_400_days_ahead_deletes_nothing() {
    let wire = Wire::on(Home::new());
    let params = json!({ "to": 3 });
    let begun = wire.owner().call(None, "echo.count", &params).unwrap();
    let stream = json!({ "stream_id": begun["stream_id"] });
    let ended = |wire: &Wire| {
        let items = wire.owner().call(None, "hub.stream", &stream);
        items.map(|items| items.to_string())
    };
    wait_until("the stream has ended", || {
        ended(&wire).is_ok_and(|items| items.contains("\"complete\""))
    });
    let before = ended(&wire).unwrap();
    let home = wire.server.end();
    let ahead = [
        // `ld.so` replaces `$LIB`.
        ("LD_PRELOAD", "/usr/$LIB/faketime/libfaketime.so.1"),
        ("FAKETIME", "+400d"),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ("DODONA_LOG", "warn"),
    ];
    let wire = Wire::of(Server::with_env(home, &ahead));
    wire.owner()
        .call(None, "echo.say", &json!({ "text": "x" }))
        .unwrap();
    let recent = json!({ "type": "", "limit": 1 });
    let recent = wire.owner().call(None, "events.recent", &recent).unwrap();
    let at: Timestamp = recent["events"][0]["timestamp"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    let ahead = at.duration_since(Timestamp::now()).as_hours() / 24;
    assert!(
        (398..=400).contains(&ahead),
        "the server's clock is {ahead} days ahead"
    );
    // The journal is pruned when a server starts, and says why it deletes nothing.
    wait_until("the journal was pruned", || {
        wire.server
            .log()
            .contains("the system clock is ahead of the last run")
    });
    assert_eq!(ended(&wire).unwrap(), before);
    let home = wire.server.end();
    let wire = Wire::on(home);
    assert_eq!(ended(&wire).unwrap(), before);
}
