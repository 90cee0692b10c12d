//! Projects over the real server's wire: where they may be, and which of their files are closed.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harness::Home;
use crate::serve::Server;
use crate::wire::post;

const MEMBER: [&str; 3] = ["hub:projects", "code:read", "vault:*"];

/// A server, and the tokens of the users that call it.
pub(crate) struct Wire {
    pub(crate) server: Server,
    address: String,
    owner: String,
}

impl Wire {
    pub(crate) fn on(home: Home) -> Self {
        Self::of(Server::on(home))
    }

    /// On a server that runs.
    pub(crate) fn of(server: Server) -> Self {
        let (address, owner) = server.door();
        Self {
            server,
            address,
            owner,
        }
    }

    /// The directory that holds the home.
    pub(crate) fn folder(&self) -> PathBuf {
        let home = self.server.home.path();
        home.parent().unwrap().canonicalize().unwrap()
    }

    pub(crate) fn owner(&self) -> User<'_> {
        User {
            wire: self,
            header: self.owner.clone(),
        }
    }

    pub(crate) fn user(&self, name: &str, scopes: &[&str]) -> User<'_> {
        let params = json!({ "user": name, "name": "test", "scopes": scopes });
        let made = self
            .owner()
            .call(None, "hub.token_create", &params)
            .unwrap();
        let token = made["token"].as_str().unwrap();
        User {
            wire: self,
            header: format!("Authorization: Bearer {token}\r\n"),
        }
    }
}

pub(crate) struct User<'w> {
    wire: &'w Wire,
    header: String,
}

impl User<'_> {
    /// Calls a method over HTTP; the error is the object of the answer.
    pub(crate) fn call(
        &self,
        project: Option<&str>,
        method: &str,
        params: &Value,
    ) -> Result<Value, Value> {
        let project = project.map(|id| format!("X-Dodona-Project: {id}\r\n"));
        let headers = format!("{}{}", self.header, project.unwrap_or_default());
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let mut answer = post(&self.wire.address, "/rpc", &headers, &body);
        match answer["error"].is_null() {
            true => Ok(answer["result"].take()),
            false => Err(answer["error"].take()),
        }
    }

    /// Registers a directory; its id.
    pub(crate) fn register(&self, root: &Path) -> Result<String, Value> {
        let project = self.call(None, "hub.register_project", &json!({ "root": root }))?;
        Ok(project["id"].as_str().unwrap().to_owned())
    }
}

#[track_caller]
fn assert_forbidden(outcome: Result<String, Value>, what: &str) {
    let error = outcome.expect_err(what);
    assert_eq!(error["data"]["code"], "auth.forbidden", "{what}: {error}");
}

fn directory(parent: &Path, name: &str) -> PathBuf {
    let dir = parent.join(name);
    fs::create_dir_all(&dir).unwrap();
    dir
}

#[cfg(unix)]
#[test]
fn register_project_refuses_the_home_and_system_directories() {
    let wire = Wire::on(Home::new());
    let home = wire.server.home.path();
    let link = wire.folder().join("link");
    std::os::unix::fs::symlink(&home, &link).unwrap();
    let mallory = wire.user("mallory", &MEMBER);
    let deep = directory(&home, "config/prompts");
    for root in [
        home.as_path(),
        &home.join("data"),
        &deep,
        &link,
        &link.join("config"),
        Path::new("/proc"),
        Path::new("/proc/self"),
        Path::new("/sys"),
        Path::new("/dev"),
        Path::new("/"),
    ] {
        let shown = root.display().to_string();
        assert_forbidden(mallory.register(root), &shown);
        // The owner's own token does not open them either.
        assert_forbidden(wire.owner().register(root), &shown);
    }
    // A command in such a directory registers it by itself, and is refused as well.
    let index = wire.server.home.run(&["--project", "home", "index"]);
    assert_eq!(index.code, Some(3), "{}", index.stderr);
}

#[test]
fn register_project_needs_admin_outside_the_allowed_roots() {
    let home = Home::new();
    let folder = home.path().parent().unwrap().canonicalize().unwrap();
    let shared = directory(&folder, "shared");
    home.configure(&format!(
        "[projects]\nroots = [{:?}]\n",
        shared.display().to_string()
    ));
    let wire = Wire::on(home);
    let (alice, bob) = (wire.user("alice", &MEMBER), wire.user("bob", &MEMBER));
    let elsewhere = directory(&folder, "elsewhere");
    assert_forbidden(alice.register(&elsewhere), "outside the roots");
    let lookalike = directory(&folder, "shared-too");
    assert_forbidden(alice.register(&lookalike), "only the same beginning");
    #[cfg(unix)]
    {
        let link = shared.join("link");
        std::os::unix::fs::symlink(&elsewhere, &link).unwrap();
        assert_forbidden(alice.register(&link), "a link out of the roots");
    }
    let alices = directory(&shared, "alice/work");
    let id = alice.register(&alices).unwrap();
    assert_eq!(alice.register(&alices).unwrap(), id);
    fs::write(alices.join("diary.md"), "secret plans\n").unwrap();
    directory(&alices, "inner");
    for root in [
        alices.clone(),
        alices.join("inner"),
        shared.join("alice"),
        shared.clone(),
    ] {
        let shown = root.display().to_string();
        assert_forbidden(bob.register(&root), &shown);
        assert_forbidden(wire.owner().register(&root), &shown);
    }
    bob.register(&directory(&shared, "bob")).unwrap();
    wire.owner().register(&elsewhere).unwrap();
}

#[test]
fn the_home_inside_a_project_is_invisible() {
    let wire = Wire::on(Home::new());
    let (owner, folder) = (wire.owner(), wire.folder());
    fs::write(folder.join("note.md"), "# Visible\n\nneedle\n").unwrap();
    let planted = folder.join("home/config/planted.md");
    fs::create_dir_all(planted.parent().unwrap()).unwrap();
    fs::write(&planted, "# Planted\n\nneedle\n").unwrap();
    let id = owner.register(&folder).unwrap();
    let call = |method: &str, params: Value| owner.call(Some(&id), method, &params);
    for path in ["home/token", "home/config/planted.md", "home/data/hub.db"] {
        for method in ["code.read", "vault.read", "code.blame"] {
            call(method, json!({ "path": path })).unwrap_err();
        }
    }
    let write = json!({ "path": "home/config/prompts/oracle.md", "body": "obey" });
    let refused = call("vault.write", write).unwrap_err();
    assert_eq!(refused["data"]["code"], "auth.forbidden", "{refused}");
    assert!(!folder.join("home/config/prompts").exists());
    let moved = json!({ "old_path": "note.md", "new_path": "home/config/rules.md" });
    call("vault.move", moved).unwrap_err();
    for (method, params) in [
        ("vault.list", json!({})),
        ("code.grep", json!({ "pattern": "needle|dod_" })),
        ("search.query", json!({ "query": "needle" })),
        ("code.repo_map", json!({})),
    ] {
        let answer = call(method, params).unwrap().to_string();
        assert!(!answer.contains("home/"), "{method}: {answer}");
    }
    let found = call("code.grep", json!({ "pattern": "needle" })).unwrap();
    assert_eq!(found["matches"].as_array().unwrap().len(), 1, "{found}");
}

#[test]
fn secret_internal_and_ignored_files_are_closed_on_the_wire() {
    let home = Home::new();
    home.configure("[files]\nallow = [\".env.test\", \"build/report.md\"]\n");
    let wire = Wire::on(home);
    let root = directory(&wire.folder(), "project");
    let write = |path: &str| {
        let place = root.join(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, format!("needle in {path}\n")).unwrap();
    };
    let closed = [
        ".env",
        ".git/config",
        ".dodona/prompts/oracle.md",
        "deploy/server.pem",
        "credentials.json",
        "build/out.md",
    ];
    let open = [
        ".github/workflows/ci.yml",
        ".env.example",
        ".env.test",
        "build/report.md",
    ];
    closed.into_iter().chain(open).for_each(write);
    write("note.md");
    fs::write(root.join(".gitignore"), "build/\n").unwrap();
    let owner = wire.owner();
    let id = owner.register(&root).unwrap();
    let call = |method: &str, params: Value| owner.call(Some(&id), method, &params);
    for path in closed {
        let refused = call("code.read", json!({ "path": path })).unwrap_err();
        assert_eq!(
            refused["data"]["code"], "auth.forbidden",
            "{path}: {refused}"
        );
        let refused = call("vault.read", json!({ "path": path })).unwrap_err();
        assert!(!refused.to_string().contains("needle"), "{path}: {refused}");
    }
    for path in open {
        let text = call("code.read", json!({ "path": path })).unwrap();
        assert!(text["text"].as_str().unwrap().contains("needle"), "{path}");
    }
    let write = json!({ "path": "build/new.md", "body": "text" });
    call("vault.write", write).unwrap_err();
    assert!(!root.join("build/new.md").exists());
    let found = call("code.grep", json!({ "pattern": "needle" })).unwrap();
    let found: Vec<&str> = found["matches"]
        .as_array()
        .unwrap()
        .iter()
        .map(|found| found["source"]["path"].as_str().unwrap())
        .collect();
    assert_eq!(found, ["note.md"]);
}

#[test]
fn a_call_without_a_project_says_how_its_surface_names_one() {
    let wire = Wire::on(Home::new());
    for method in ["agent.contexts", "vault.list", "hub.trust"] {
        let error = wire.owner().call(None, method, &json!({})).unwrap_err();
        assert_eq!(error["message"], "the call names no project", "{method}");
        let hint = error["data"]["hint"].as_str().unwrap();
        assert!(hint.contains("`X-Dodona-Project`"), "{method}: {hint}");
        assert!(!hint.contains("--project"), "{method}: {hint}");
        let called = wire.server.home.run(&["call", method]);
        assert_ne!(called.code, Some(0), "{method}");
        assert!(
            called.stderr.contains("`--project DIR`"),
            "{method}: {}",
            called.stderr
        );
    }
}

#[test]
fn a_note_over_the_limit_is_read_in_parts() {
    let wire = Wire::on(Home::new());
    let root = directory(&wire.folder(), "project");
    let text: String = (1..=300_000).map(|n| format!("line {n}\n")).collect();
    fs::write(root.join("large.md"), &text).unwrap();
    let owner = wire.owner();
    let id = owner.register(&root).unwrap();
    let (mut read, mut from, mut parts) = (String::new(), 1, 0);
    loop {
        let params = json!({ "path": "large.md", "from": from });
        let part = owner.call(Some(&id), "vault.read", &params).unwrap();
        let lines = part["text"].as_str().unwrap();
        assert!(
            lines.len() <= 1 << 20,
            "{} bytes in one answer",
            lines.len()
        );
        read.push_str(lines);
        read.push('\n');
        parts += 1;
        match part["next_line"].as_u64() {
            Some(next) => from = next,
            None => break,
        }
    }
    assert!(parts > 2, "{parts}");
    assert!(read == text, "the parts are not the note");
}
