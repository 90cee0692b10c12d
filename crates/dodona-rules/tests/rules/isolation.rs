//! One bad file, one bad rule, one bad evaluation is its own affair.

use dodona_testkit::model_server::Reply;
use serde_json::json;

use crate::rig::{Rig, calls_echo, notice, rule};

#[tokio::test]
async fn a_thousand_rules_with_ten_broken_ones_run_and_each_broken_one_is_named() {
    let rig = Rig::with(&[]).await;
    for number in 0..1_000 {
        let name = format!("r{number:04}");
        let mut text = rule(
            &name,
            "on_tool_call",
            "True",
            "type = \"log\"\nmessage = \"ran\"",
        );
        if number % 100 == 7 {
            text = text.replace("True", "context.turn.nimber == 1");
        }
        rig.put(&format!("{name}.toml"), &text);
    }
    rig.reload().await;
    rig.echo("x").await.unwrap();
    assert_eq!(rig.log().await.len(), 990);
    let problems = rig.problems().await;
    assert_eq!(problems.len(), 10, "{problems:#?}");
    for (problem, number) in problems.iter().zip((7..1_000).step_by(100)) {
        let place = format!("r{number:04}.toml:6:30  error: `context.turn` has no field `nimber`");
        assert!(problem.contains(&place), "{problem}");
        assert!(
            problem.contains("did you mean `context.turn.number`?"),
            "{problem}"
        );
    }
}

#[tokio::test]
async fn a_rule_that_always_throws_keeps_no_other_from_running() {
    let throws = "[rule]\nid = \"throws\"\npriority = 900\ntrigger = \"on_turn_start\"\n\
        [condition]\nscript = \"throws.lua\"\n[action]\ntype = \"log\"\n";
    let divides = rule(
        "divides",
        "on_turn_start",
        "1 / (context.turn.number - context.turn.number) > 0",
        "type = \"log\"",
    )
    .replace("trigger", "priority = 800\ntrigger");
    let renders = notice(
        "renders",
        "on_turn_start",
        "True",
        "{{ context.turn.number.x.y }}",
    )
    .replace("trigger", "priority = 700\ntrigger");
    let fine = notice("fine", "on_turn_start", "True", "still here");
    let rig = Rig::with(&[
        ("a.toml", throws),
        ("throws.lua", "error('again')"),
        ("b.toml", &divides),
        ("c.toml", &renders),
        ("d.toml", &fine),
    ])
    .await;
    rig.ask([Reply::text("Done.")]).await;
    assert!(rig.sent()[0].contains("still here"));
    let log = rig.log().await;
    let shown: Vec<_> = log
        .iter()
        .map(|one| (one["rule"].as_str().unwrap(), one["error"].is_string()))
        .collect();
    assert_eq!(
        shown,
        [
            ("rules/throws", true),
            ("rules/divides", true),
            ("rules/renders", true),
            ("rules/fine", false),
        ]
    );
    let alive = rig.listed("rules/throws").await.unwrap()["liveness"].clone();
    assert_eq!(alive["failed"], 1);
    assert!(alive["last_error"].as_str().unwrap().contains("again"));
}

#[tokio::test]
async fn of_several_actions_one_that_fails_keeps_no_other_from_being_done() {
    let text = r#"
        [rule]
        id = "several"
        trigger = "on_tool_call"
        surfaces = ["cli", "rpc", "web", "mcp", "internal"]
        [condition]
        expression = "True"
        [[actions]]
        type = "log"
        message = "{{ context.nothing.at.all }}"
        [[actions]]
        type = "log"
        message = "second"
    "#;
    let rig = Rig::with(&[("a.toml", text)]).await;
    rig.echo("x").await.unwrap();
    let log = rig.log().await;
    assert_eq!(
        log[0]["decisions"],
        json!([{"type": "log", "level": "info", "message": "second"}])
    );
    assert!(log[0]["error"].as_str().unwrap().starts_with("action 1:"));
}

#[tokio::test]
async fn a_script_that_never_ends_is_stopped_and_the_turn_goes_on() {
    let text = "[rule]\nid = \"endless\"\ntrigger = \"on_tool_complete\"\nsurfaces = [\"cli\", \"rpc\", \"web\", \"mcp\", \"internal\"]\n\
        [condition]\nscript = \"endless.lua\"\n[action]\ntype = \"log\"\n";
    let endless = "while true do pcall(function() while true do end end) end";
    let hungry = "[rule]\nid = \"hungry\"\ntrigger = \"on_tool_complete\"\nsurfaces = [\"cli\", \"rpc\", \"web\", \"mcp\", \"internal\"]\n\
        [condition]\nscript = \"hungry.lua\"\n[action]\ntype = \"log\"\n";
    let eats = "local t = {} while true do t[#t + 1] = string.rep('x', 100000) end";
    let rig = Rig::with(&[
        ("a.toml", text),
        ("endless.lua", endless),
        ("b.toml", hungry),
        ("hungry.lua", eats),
    ])
    .await;
    let answer = rig.ask([calls_echo("c1", "x"), Reply::text("Done.")]).await;
    assert_eq!(answer.endings(), ["success"]);
    let log = rig.log().await;
    assert_eq!(log.len(), 2);
    assert!(
        log.iter()
            .all(|one| one["error"].is_string() && one["fired"] == false)
    );
}

#[tokio::test]
async fn what_tools_and_notes_say_is_never_rendered_nor_run() {
    let text = notice(
        "quote",
        "on_tool_complete",
        "True",
        "It said: {{ context.result.result.text }}",
    );
    let rig = Rig::with(&[("a.toml", &text)]).await;
    let attack = "{{ 7 * 191 }}{% for x in range(9) %}{{ context.user.id }}{% endfor %}";
    rig.ask([calls_echo("c1", attack), Reply::text("Done.")])
        .await;
    let log = rig.log().await;
    assert_eq!(
        log[0]["decisions"][0]["message"],
        format!("It said: {attack}")
    );
    assert!(!rig.sent()[1].contains("1337"));
}
