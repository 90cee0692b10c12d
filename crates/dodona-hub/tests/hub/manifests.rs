//! The schema of manifests that editors use, and what really reads them.

use std::path::Path;

use dodona_plugin::Manifest;
use dodona_schema::Validator;
use serde_json::Value;

const GOOD: &str = r#"
[plugin]
id = "probe"
name = "Probe"
version = "1.0.0-rc.1"
description = "Probes"
[capabilities]
requires = ["vault_search"]
uses = ["prompt", "call:vault", "events:custom.release", "events:*", "net:jira.example", "fs:notes"]
[rules]
include = ["rules/*.toml"]
[settings.most]
type = "integer"
default = 3
min = 1
max = 9
description = "How many"
[settings.way]
type = "string"
default = "a"
options = ["a", "b"]
[script]
main = "main.luau"
"#;

fn schema() -> Validator {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/manifest.schema.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    Validator::new(&schema).unwrap()
}

fn accepts(schema: &Validator, text: &str) -> bool {
    toml::from_str::<Value>(text).is_ok_and(|json| schema.is_valid(&json))
}

#[test]
fn the_schema_and_the_parser_agree_on_what_is_a_manifest() {
    let schema = schema();
    let process = GOOD.replace(
        "[script]\nmain = \"main.luau\"",
        "[process]\ncommand = \"server\"\nargs = [\"-x\"]",
    );
    let ours = GOOD.replace(
        "[script]\nmain = \"main.luau\"",
        "[process]\ncommand = \"python3\"\nprotocol = \"dodona\"\nevents = [\"custom\"]\nconcurrency = 2\n\
         [[process.methods]]\nname = \"count\"\ndoc = \"Counts.\"\n\
         [[process.hooks]]\npoint = \"PRE_TOOL_EXECUTE\"\non_error = \"closed\"",
    );
    for good in [
        GOOD,
        &process,
        &ours,
        "[plugin]\nid = \"a\"\nversion = \"0.1.0\"\n",
    ] {
        assert!(Manifest::parse("m", good).is_ok(), "{good}");
        assert!(accepts(&schema, good), "{good}");
    }
    for (was, is) in [
        ("id = \"probe\"", "id = \"../probe\""),
        ("id = \"probe\"", "id = \"Probe\""),
        ("id = \"probe\"\n", ""),
        ("version = \"1.0.0-rc.1\"", "version = \"1.0\""),
        ("version = \"1.0.0-rc.1\"\n", ""),
        ("name = \"Probe\"", "name = 3"),
        ("name = \"Probe\"", "nmae = \"Probe\""),
        ("[rules]", "[rulez]"),
        ("include = [", "includes = ["),
        ("\"prompt\"", "\"promt\""),
        ("\"call:vault\"", "\"call:Vault\""),
        ("type = \"integer\"", "type = \"number\""),
        ("default = 3\n", ""),
        ("min = 1", "min = \"1\""),
        ("[settings.way]", "[settings.Way]"),
        ("main = \"main.luau\"", "file = \"main.luau\""),
        ("main = \"main.luau\"", ""),
        (
            "requires = [\"vault_search\"]",
            "requires = \"vault_search\"",
        ),
    ] {
        let bad = GOOD.replace(was, is);
        assert_ne!(bad, GOOD, "{was}");
        assert!(Manifest::parse("m", &bad).is_err(), "the parser takes {is}");
        assert!(!accepts(&schema, &bad), "the schema takes {is}");
    }
}

/// What the parser reads, the schema does not mark as wrong.
#[test]
fn a_damaged_manifest_that_is_still_read_fits_the_schema() {
    let schema = schema();
    let mut chance = dodona_testkit::Chance::from_seed(3);
    let mut read = 0;
    for _ in 0..4_000 {
        let mut bytes = GOOD.as_bytes().to_vec();
        let at = chance.below(bytes.len() as u64) as usize;
        match chance.below(2) {
            0 => bytes[at] = b"abc01.-_\"= \n"[chance.below(12) as usize],
            _ => drop(bytes.remove(at)),
        }
        let text = String::from_utf8_lossy(&bytes);
        if Manifest::parse("m", &text).is_ok() {
            read += 1;
            assert!(accepts(&schema, &text), "{text}");
        }
    }
    assert!(read > 200, "{read}");
}
