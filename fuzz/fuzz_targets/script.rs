//! Any text as a script: the thread is free again, and the next run finds nothing of it.

#![no_main]

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use dodona_fuzz::DOCUMENT;
use dodona_script::{Engine, Limits, Object, Script};
use libfuzzer_sys::fuzz_target;
use serde_json::json;

static ENGINE: LazyLock<Engine> = LazyLock::new(|| Engine::new(1));
static CONTEXT: LazyLock<Arc<dyn Object>> = LazyLock::new(|| Arc::new(DOCUMENT["context"].clone()));
/// Finds what a run before may have left behind.
static PROBE: LazyLock<Script> = LazyLock::new(|| {
    let source = "return { kept = x ~= nil or leak ~= nil, number = context.turn.number,
        same = ('a'):rep(2) .. table.concat({ 1, 2 }) .. tostring(math.floor(1.5)) }";
    Script::compile(source, "probe.lua").expect("the probe is a script")
});

fuzz_target!(|source: &str| {
    let Ok(script) = Script::compile(source, "fuzz.lua") else {
        return;
    };
    let limits = Limits {
        time: Duration::from_millis(50),
        memory_bytes: 4 << 20,
        ..Limits::default()
    };
    let _ = ENGINE.run(&script, Arc::clone(&CONTEXT), &limits);
    // Its own limits: a busy machine is no finding.
    let patient = Limits {
        time: Duration::from_secs(20),
        ..Limits::default()
    };
    let after = ENGINE.evaluate(&PROBE, Arc::clone(&CONTEXT), Arc::default(), &patient);
    let expected = json!({"kept": false, "number": 3, "same": "aa121"});
    assert_eq!(after, Ok(expected), "{source:?}");
});
