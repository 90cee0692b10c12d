//! Any value goes in and comes out again; no manifest and no script breaks the server.

use std::path::Path;
use std::sync::Arc;

use dodona_extern::luau::LuauLoader;
use dodona_plugin::manifest::Code;
use dodona_plugin::{Loader, Manifest, Outside, OutsideSource};
use dodona_testkit::Chance;
use serde_json::{Map, Value, json};

use crate::support::{Home, ask};

/// Any JSON that a script can hold: numbers are floats, and null is nothing.
fn value(chance: &mut Chance, depth: usize) -> Value {
    let kinds = if depth == 0 { 4 } else { 6 };
    match chance.below(kinds) {
        0 => json!(chance.below(2) == 0),
        1 => json!(chance.below(1_000_000) as i64 - 500_000),
        2 => json!((2 * chance.below(1_000_000) + 1) as f64 / 128.0),
        3 => json!(text(chance)),
        4 => (0..chance.below(4))
            .map(|_| value(chance, depth - 1))
            .collect(),
        _ => {
            let fields = (0..chance.below(4)).map(|_| (text(chance), value(chance, depth - 1)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
    }
}

fn text(chance: &mut Chance) -> String {
    const LETTERS: [char; 12] = [
        'a', 'Z', '0', ' ', '\n', '"', '\\', 'é', '中', '🦀', '\u{0}', '%',
    ];
    (0..chance.below(8))
        .map(|_| LETTERS[chance.below(LETTERS.len() as u64) as usize])
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_value_comes_back_as_it_went_in() {
    let home = Home::new();
    let script = r#"dodona.method { name = "same", doc = "Gives back what it is given.", read_only = true,
        params = { type = "object", additionalProperties = true },
        run = function(ctx, p) return ctx.call("echo.say", { text = "x" }) and { value = p.value } end }"#;
    home.granted("mirror", &["call:echo"], script);
    let hub = home.start().await;
    let mut chance = Chance::from_seed(11);
    for _ in 0..300 {
        let given = json!({ "value": value(&mut chance, 4) });
        let back = ask(&hub, "mirror.same", given.clone()).await.unwrap();
        assert_eq!(back, given);
    }
    hub.stop().await;
}

/// Bytes of a good manifest, changed at random: it is read or refused, and what is read can be loaded
/// or refused.
#[test]
fn manifests_that_were_damaged_are_read_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("main.luau"), "local x = 1").unwrap();
    let good = "[plugin]\nid = \"probe\"\nversion = \"0.1.0\"\n[capabilities]\nuses = [\"call:echo\"]\n\
        [settings.word]\ntype = \"string\"\ndefault = \"x\"\n[script]\nmain = \"main.luau\"\n";
    let mut chance = Chance::from_seed(7);
    let mut read = 0;
    for _ in 0..3_000 {
        let mut bytes = good.as_bytes().to_vec();
        for _ in 0..=chance.below(3) {
            let at = chance.below(bytes.len() as u64) as usize;
            match chance.below(3) {
                0 => bytes[at] = chance.below(128) as u8,
                1 => drop(bytes.remove(at)),
                _ => bytes.insert(at, b"\"[].=/\n"[chance.below(7) as usize]),
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        let Ok(manifest) = Manifest::parse("manifest.toml", &text) else {
            continue;
        };
        read += 1;
        load(folder.path(), manifest);
    }
    assert!(read > 100, "{read} were still manifests");
}

fn load(path: &Path, manifest: Manifest) {
    let Some(code @ Code::Script { .. }) = manifest.code.clone() else {
        return;
    };
    let outside = Outside {
        name: manifest.id.clone(),
        manifest: Arc::new(manifest),
        source: OutsideSource::Directory {
            path: path.to_owned(),
            code,
        },
    };
    assert!(LuauLoader::new().load(&outside).is_some());
}
