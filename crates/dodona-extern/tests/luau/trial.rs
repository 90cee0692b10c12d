//! A plugin's own tests.

use std::fs;
use std::path::Path;

use dodona_extern::luau::trial::{Verdict, inspect, test};
use dodona_plugin::Manifest;

const MANIFEST: &str = "[plugin]\nid = \"probe\"\nversion = \"0.1.0\"\n\
    [capabilities]\nuses = [\"tool_exec\", \"call:vault\"]\n[script]\nmain = \"main.luau\"\n\
    [settings.word]\ntype = \"string\"\ndefault = \"Hello\"\n";

const SCRIPT: &str = r#"
local d = dodona
d.method { name = "greet", doc = "Greets.", run = function(ctx, p)
    local n = d.state.get("n", 0) + 1
    d.state.set("n", n)
    local found = ctx.call("vault.search", { query = p.name })
    d.log.info("found", #found.hits)
    if #found.hits == 0 then error("nobody is called " .. p.name) end
    return { text = `{d.settings.word}, {p.name}!` }
end }
d.hook("PRE_TOOL_EXECUTE", function(call)
    if call.tool_name == "vault_delete" then return d.deny("no") end
end)
"#;

const TESTS: &str = r#"
[[tests]]
name = "greets who is there"
method = "greet"
params = { name = "Ada" }
settings = { word = "Hi" }
state = { n = 1 }
calls = [{ method = "vault.search", params = { query = "Ada" }, result = { hits = [1] } }]
expect = { result = { text = "Hi, Ada!" }, state = { n = 2 }, log = "found 1" }

[[tests]]
name = "and nobody else"
method = "greet"
params = { name = "Bob" }
calls = [{ method = "vault.search", result = { hits = [] } }]
expect = { error = "nobody is called Bob" }

[[tests]]
name = "keeps notes"
hook = "PRE_TOOL_EXECUTE"
payload = { tool_name = "vault_delete" }
expect = { edit = { deny = "no" }, effects = [] }

[[tests]]
name = "lets others be"
hook = "PRE_TOOL_EXECUTE"
payload = { tool_name = "vault_read" }
expect = { edit = false }
"#;

const WRONG: &str = r#"
[[tests]]
name = "wrong result"
method = "greet"
params = { name = "Ada" }
calls = [{ method = "vault.search", result = { hits = [1] } }, { method = "vault.read" }]
expect = { result = { text = "Bye" } }

[[tests]]
name = "no such method"
method = "great"
expect = {}

[[tests]]
name = "an unexpected call"
method = "greet"
params = { name = "Ada" }
expect = { result = {} }
"#;

fn directory(script: &str, tests: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("tests")).unwrap();
    fs::write(folder.path().join("main.luau"), script).unwrap();
    fs::write(folder.path().join("tests/all.toml"), tests).unwrap();
    folder
}

fn manifest() -> Manifest {
    Manifest::parse("manifest.toml", MANIFEST).unwrap()
}

async fn run(path: &Path) -> Vec<(String, Verdict)> {
    let (tested, problems) = test(path, &manifest()).await.unwrap();
    assert!(problems.is_empty(), "{problems:?}");
    tested
        .into_iter()
        .map(|one| (one.name, one.verdict))
        .collect()
}

#[tokio::test]
async fn tests_pass_where_everything_is_as_expected() {
    let folder = directory(SCRIPT, TESTS);
    let tested = run(folder.path()).await;
    assert_eq!(tested.len(), 4);
    for (name, verdict) in tested {
        assert_eq!(verdict, Verdict::Passed, "{name}");
    }
}

#[tokio::test]
async fn a_test_that_fails_says_what_is_different() {
    let folder = directory(SCRIPT, WRONG);
    let tested = run(folder.path()).await;
    let why = |index: usize| match &tested[index].1 {
        Verdict::Failed { why } => why.join("\n"),
        Verdict::Passed => panic!("{} passed", tested[index].0),
    };
    assert!(why(0).contains("expected {\"text\":\"Bye\"}, got {\"text\":\"Hello, Ada!\"}"));
    assert!(why(0).contains("`vault.read` was not called"));
    assert!(why(1).contains("declares no method `great`"));
    assert!(why(2).contains("no call is expected"));
}

#[tokio::test]
async fn a_file_of_tests_that_cannot_be_read_is_told() {
    let folder = directory(SCRIPT, "[[tests]]\nname = 'x'\nmethd = 'y'\n");
    let (tested, problems) = test(folder.path(), &manifest()).await.unwrap();
    assert!(tested.is_empty());
    assert!(problems[0].message.contains("methd"), "{problems:?}");
}

#[test]
fn inspecting_tells_what_is_declared_and_what_is_wrong() {
    let folder = directory(SCRIPT, "");
    let declared = inspect(folder.path(), &manifest()).unwrap();
    assert_eq!(declared.methods[0].name.as_str(), "probe.greet");
    assert_eq!(declared.hooks.len(), 1);
    let wrong = "dodona.hook('SESSION_END', function() end)\ndodona.method { name = 'X', doc = 'x', run = print }";
    let folder = directory(wrong, "");
    let problems = inspect(folder.path(), &manifest()).unwrap_err();
    let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert!(
        told[0].contains("main.luau:1: a hook at SESSION_END needs the capability"),
        "{told:?}"
    );
    assert!(told[1].contains("main.luau:2:"), "{told:?}");
}
