//! `dodona eval`.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::harness::Home;

#[test]
fn a_piece_is_tried_against_a_context() {
    let home = Home::new();
    let context = r#"{"turn": {"token_usage": 0.9, "number": 3},
        "history": {"tools": [{"name": "code_search", "success": false}], "failures": {"code_search": 3}}}"#;
    std::fs::write(home.path().with_file_name("context.json"), context).unwrap();
    std::fs::write(
        home.path().with_file_name("check.lua"),
        "if context.history.get_failures_for_tool('code_search') < 3 then return false end\n\
         return { type = 'notify_self', message = `turn {context.turn.number}` }\n",
    )
    .unwrap();
    for arguments in [
        &[
            "eval",
            "expr",
            "context.turn.token_usage > 0.8 and tool_failed('code_search')",
        ][..],
        &[
            "eval",
            "expr",
            "context.turn.token_usage > 0.8 or context.turn.number > 9",
            "--explain",
        ],
        &["eval", "expr", "call.tool_name == 'x'"],
        &["eval", "expr", "context.turn.tokens > 1"],
        &["eval", "expr", "context.turn.number = 3"],
        &[
            "eval",
            "template",
            "At {{ (context.turn.token_usage * 100) | int }} %, {{ failure_count('code_search') }} failures",
        ],
        &["eval", "template", "{{ 'x' * 100000000 }}"],
        &["eval", "script", "--file", "check.lua"],
        &["eval", "script", "while true do end"],
        &["eval", "script", "return context.turn.number +"],
    ] {
        let arguments = [arguments, &["--context", "context.json"]].concat();
        assert_snapshot!(home.run(&arguments).shown());
    }
}

#[test]
fn a_batch_is_answered_line_by_line_in_order() {
    let home = Home::new();
    let lines = [
        r#"{"expr": "context.turn.token_usage > 0.8", "context": {"turn": {"token_usage": 0.9}}}"#,
        r#"{"expr": "1 +"}"#,
        "no json",
        "",
        r#"{"template": "x"}"#,
        r#"{"expr": "[1, 2][5]"}"#,
        r#"{"expr": "context.event is None", "context": 7}"#,
        r#"{"expr": "len(context.history.tools)"}"#,
    ];
    let outcome = home.run_with_input(&["eval", "expr", "--batch"], &lines.join("\n"));
    let answers: Vec<Value> = outcome
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        answers[0],
        json!({ "ok": true, "value": true, "truthy": true })
    );
    let kinds: Vec<&Value> = answers
        .iter()
        .map(|answer| &answer["error"]["kind"])
        .collect();
    assert_eq!(kinds[2..4], [&json!("input"), &json!("input")]);
    assert_eq!(kinds[5], &json!("input"));
    assert!(answers[1]["error"]["span"].is_array(), "{}", answers[1]);
    assert_eq!(answers[4]["ok"], false);
    assert_eq!(answers[6]["value"], 0);
    assert_eq!(answers.len(), 7);
}

#[test]
fn scripts_and_templates_come_in_batches_too() {
    let home = Home::new();
    let script = json!({ "script": "return { type = 'log' }", "context": {}, "limits": { "time_ms": 50, "memory_mb": 4 } });
    let told = home.run_with_input(&["eval", "script", "--batch"], &script.to_string());
    let answer: Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!(
        answer,
        json!({ "ok": true, "matched": true, "actions": [{ "type": "log" }], "value": { "type": "log" } })
    );
    let bomb = json!({ "script": "local t = {} while true do t[#t + 1] = string.rep('x', 1000) end", "limits": { "memory_mb": 4, "time_ms": 10000 } });
    let told = home.run_with_input(&["eval", "script", "--batch"], &bomb.to_string());
    let answer: Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!(answer["error"]["kind"], "memory", "{answer}");
    let template =
        json!({ "template": "{{ context.user.id }}!", "context": { "user": { "id": "{{ 7 }}" } } });
    let told = home.run_with_input(&["eval", "template", "--batch"], &template.to_string());
    let answer: Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!(answer, json!({ "ok": true, "text": "{{ 7 }}!" }));
}
