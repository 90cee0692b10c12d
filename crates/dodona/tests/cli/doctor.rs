//! `dodona doctor`.

use std::fs;
use std::io::{Seek, SeekFrom, Write};

use serde_json::Value;

use crate::harness::{Home, Outcome, assert_shown, wait_until};

/// A home that has been used.
fn used() -> Home {
    let home = Home::new();
    assert_eq!(home.run(&["call", "echo.tally"]).code, Some(0));
    home
}

/// Overwrites the beginning of a database.
fn damage(home: &Home, database: &str) {
    let path = home.data().join(database);
    let mut file = fs::File::options().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start(0)).unwrap();
    file.write_all(&[b'x'; 4096]).unwrap();
}

fn examine(home: &Home) -> Outcome {
    home.run(&["doctor"])
}

#[test]
fn a_healthy_home_is_all_right() {
    assert_shown("doctor_healthy", &examine(&used()));
}

#[test]
fn a_home_that_was_never_used_is_all_right() {
    let outcome = examine(&Home::new());
    assert_eq!(outcome.code, Some(0), "{}", outcome.stdout);
}

#[test]
fn a_damaged_plugin_database_is_reported_and_the_rest_checked() {
    let home = used();
    damage(&home, "plugins/echo/echo.db");
    assert_shown("doctor_damaged_plugin", &examine(&home));
    assert_shown("call_damaged_plugin", &home.run(&["call", "echo.tally"]));
    let others = home.run(&["call", "hub.health"]);
    assert_eq!(others.code, Some(0), "{}", others.stderr);
}

#[test]
fn a_damaged_journal_is_reported_and_the_rest_checked() {
    let home = used();
    damage(&home, "journal.db");
    assert_shown("doctor_damaged_journal", &examine(&home));
    assert_shown(
        "call_damaged_journal",
        &home.run(&["call", "echo.say", "text=x"]),
    );
}

#[test]
fn settings_with_faults_are_reported_and_the_rest_checked() {
    let home = used();
    home.configure("[journal]\nmax_sise = \"1 GiB\"\nmax_age = \"for ever\"\n");
    assert_shown("doctor_wrong_settings", &examine(&home));
}

#[test]
fn findings_are_json_for_programs() {
    let home = used();
    damage(&home, "plugins/echo/echo.db");
    let outcome = home.run(&["doctor", "--json"]);
    assert_eq!(outcome.code, Some(1));
    let found: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(found["ok"], false);
    let wrong: Vec<&str> = found["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|check| check["verdict"] == "wrong")
        .map(|check| check["check"].as_str().unwrap())
        .collect();
    assert_eq!(wrong, ["database", "plugin"]);
}

#[test]
fn a_home_that_another_command_uses_is_checked_as_far_as_it_can_be() {
    let home = used();
    let mut holder = home
        .command(&["call", "echo.slow", "ms=600000"])
        .spawn()
        .unwrap();
    let note = home.data().join("owner.lock");
    wait_until("the home has an owner", || {
        fs::read_to_string(&note).is_ok_and(|text| text.ends_with('}'))
    });
    let outcome = examine(&home);
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert_shown("doctor_while_a_command_runs", &outcome);
    // The one that was killed left nothing that would have to be removed.
    assert_shown("doctor_healthy", &examine(&home));
}

#[test]
fn a_server_is_asked_how_it_is() {
    let home = used();
    let mut server = home
        .command(&["serve", "--listen", "127.0.0.1:0", "--ready-file", "ready"])
        .spawn()
        .unwrap();
    let ready = home.path().with_file_name("ready");
    wait_until("the server is ready", || ready.exists());
    let outcome = examine(&home);
    server.kill().unwrap();
    server.wait().unwrap();
    assert_shown("doctor_while_a_server_runs", &outcome);
}

/// Runs a command for which every write to a database fails as on a full disk.
#[cfg(target_os = "linux")]
fn on_a_full_disk(home: &Home, arguments: &[&str]) -> Outcome {
    let plain = home.command(arguments);
    let mut command = std::process::Command::new("strace");
    command
        .args(["--follow-forks", "--quiet=all", "--output=/dev/null"])
        .arg("--inject=pwrite64,ftruncate,fallocate:error=ENOSPC")
        .arg(crate::harness::DODONA)
        .args(arguments)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .envs(
            plain
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .current_dir(plain.get_current_dir().unwrap());
    let output = command
        .output()
        .expect("strace is installed by `cargo xtask test`");
    home.outcome(arguments, output)
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_not_blamed_on_the_databases() {
    let home = used();
    let called = on_a_full_disk(&home, &["call", "echo.tally"]);
    assert_eq!(called.code, Some(5), "{}", called.stderr);
    assert!(called.stderr.starts_with("error: "), "{}", called.stderr);
    let examined = on_a_full_disk(&home, &["doctor"]);
    assert_eq!(examined.code, Some(1), "{}", examined.stdout);
    let databases = [
        "hub.db",
        "journal.db",
        "plugins/agent/agent.db",
        "plugins/echo/echo.db",
        "plugins/rules/rules.db",
        "plugins/search/search.db",
        "plugins/thread/thread.db",
        "plugins/vault/vault.db",
        "plugins/web/web.db",
    ];
    for database in databases {
        let line = format!("✗ database      {database}\n");
        assert!(examined.stdout.contains(&line), "{}", examined.stdout);
    }
    let advice = "→ the file itself may be sound";
    assert_eq!(
        examined.stdout.matches(advice).count(),
        databases.len(),
        "{}",
        examined.stdout
    );
    assert!(!examined.stdout.contains("aside"), "{}", examined.stdout);
    // Once there is room, nothing is wrong.
    let tallied = home.run(&["call", "echo.tally", "--json"]);
    assert_eq!(tallied.stdout, "{\"count\":2}\n");
    assert_shown("doctor_healthy", &examine(&home));
}

#[cfg(unix)]
mod permissions {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, chown};
    use std::os::unix::process::CommandExt;
    use std::path::Path;
    use std::process::Command;

    /// A user who may do nothing in particular.
    const NOBODY: u32 = 65_534;

    #[test]
    fn a_home_that_others_may_read_is_reported() {
        let home = used();
        fs::set_permissions(home.data(), fs::Permissions::from_mode(0o755)).unwrap();
        assert_shown("doctor_open_to_others", &examine(&home));
    }

    #[test]
    fn a_read_only_home_is_reported() {
        let home = used();
        let outcome = |name: &str, arguments: &[&str]| {
            let output = as_a_plain_user(&home, arguments).output().unwrap();
            assert_shown(name, &home.outcome(arguments, output));
        };
        forbid_writing(&home.path());
        outcome("call_read_only", &["call", "echo.say", "text=x"]);
        outcome("doctor_read_only", &["doctor"]);
        allow_writing(&home.path());
    }

    fn walk(path: &Path, change: &dyn Fn(&Path)) {
        if path.is_dir() {
            for entry in fs::read_dir(path).unwrap() {
                walk(&entry.unwrap().path(), change);
            }
        }
        change(path);
    }

    fn forbid_writing(path: &Path) {
        walk(path, &|path| {
            if root() {
                chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
            }
            let mode = if path.is_dir() { 0o500 } else { 0o400 };
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        });
    }

    /// So that the temporary folder can be removed.
    fn allow_writing(path: &Path) {
        let writable = fs::Permissions::from_mode(0o700);
        fs::set_permissions(path, writable.clone()).unwrap();
        if path.is_dir() {
            for entry in fs::read_dir(path).unwrap() {
                allow_writing(&entry.unwrap().path());
            }
        }
    }

    fn root() -> bool {
        rustix::process::geteuid().is_root()
    }

    /// The same command as somebody for whom permissions count; they do not for root.
    fn as_a_plain_user(home: &Home, arguments: &[&str]) -> Command {
        let mut command = home.command(arguments);
        if root() {
            let folder = home.path().parent().unwrap().to_owned();
            fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
            // The build folder may be closed to others, so they get a copy.
            let copy = folder.join("dodona");
            fs::copy(crate::harness::DODONA, &copy).unwrap();
            let mut other = Command::new(copy);
            other
                .args(arguments)
                .env_clear()
                .envs(
                    command
                        .get_envs()
                        .filter_map(|(name, value)| Some((name, value?))),
                )
                .current_dir(folder)
                .uid(NOBODY)
                .gid(NOBODY);
            command = other;
        }
        command
    }
}
