//! The JSON Schema of a rule's file, and the reader: what the one says, the other says too.

use std::path::Path;

use dodona_rules::format::parse;
use dodona_rules::schema::rule_schema;
use dodona_schema::Validator;
use serde_json::Value;

const RULE: &str = "[rule]\nid = \"x\"\ntrigger = \"on_turn_start\"\n";
const CONDITION: &str = "[condition]\nexpression = \"True\"\n";
const ACTION: &str = "[action]\ntype = \"log\"\n";

/// Whether reader and schema take a text.
fn both(text: &str) -> (bool, bool) {
    let json: Value = toml::from_str(text).unwrap();
    let validator = Validator::new(&rule_schema()).unwrap();
    (parse("x.toml", text).0.is_some(), validator.is_valid(&json))
}

#[test]
fn the_published_schema_is_the_one_of_the_program() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/rule.schema.json");
    let text = format!("{:#}\n", rule_schema());
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let published = std::fs::read_to_string(&path).unwrap();
    assert_eq!(published, text, "run the test with UPDATE=1");
}

#[test]
fn the_schema_takes_every_rule_that_we_show() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut count = 0;
    for directory in ["rules", "docs/examples/rules"] {
        for entry in std::fs::read_dir(root.join(directory)).unwrap() {
            let path = entry.unwrap().path();
            if path
                .extension()
                .is_some_and(|extension| extension == "toml")
            {
                let text = std::fs::read_to_string(&path).unwrap();
                assert_eq!(both(&text), (true, true), "{}", path.display());
                count += 1;
            }
        }
    }
    assert_eq!(count, 18);
}

#[test]
fn what_one_takes_the_other_takes() {
    let rest = format!("{CONDITION}{ACTION}");
    let with = |line: &str| format!("{RULE}{line}\n{rest}");
    let doing = |action: &str| format!("{RULE}{CONDITION}[action]\n{action}\n");
    let limited = |limits: &str| format!("{RULE}{rest}[limits]\n{limits}\n");
    let tested = |test: &str| format!("{RULE}{rest}[[tests]]\n{test}\n");
    let at_call = RULE.replace("on_turn_start", "on_tool_call");
    for text in [
        with(""),
        with("priority = 1"),
        with("priority = 1000"),
        with("version = \"1.2.3-rc.1+b\""),
        with("description = \"\""),
        with("plugin_id = \"my-plugin\""),
        with("core = true"),
        with("enabled = false"),
        doing(
            "type = \"notify_self\"\nmessage = \"m\"\ncategory = \"reminder\"\npriority = \"low\"\ndeliver_at = \"immediate\"",
        ),
        doing("type = \"set_state\"\nkey = \"k\""),
        doing("type = \"set_state\"\nkey = \"k\"\nvalue = [1, 2.5, true]"),
        doing("type = \"emit_event\"\nevent_type = \"custom.a.b_c-d\"\npayload = { a = 1 }"),
        format!(
            "{at_call}{CONDITION}[action]\ntype = \"deny\"\nmessage = \"no\"\n[limits]\non_error = \"closed\"\n"
        ),
        format!(
            "{at_call}{CONDITION}[[actions]]\ntype = \"require_approval\"\nmessage = \"m\"\n[[actions]]\ntype = \"log\"\n"
        ),
        limited("cooldown = \"5 turns\""),
        limited("cooldown = \"10m\"\nonce_per = \"session\""),
        tested(
            "expect = { fired = true, message = \"m\", event = \"custom.x\", state = { a = 1 } }",
        ),
        tested(
            "name = \"n\"\ncontext = { turn = { number = 1 } }\nsettings = { a = 1 }\nexpect = { fired = false }",
        ),
    ] {
        assert_eq!(both(&text), (true, true), "{text}");
    }
}

#[test]
fn what_one_refuses_the_other_refuses() {
    let rest = format!("{CONDITION}{ACTION}");
    let with = |line: &str| format!("{RULE}{line}\n{rest}");
    let doing = |action: &str| format!("{RULE}{CONDITION}[action]\n{action}\n");
    let limited = |limits: &str| format!("{RULE}{rest}[limits]\n{limits}\n");
    let tested = |test: &str| format!("{RULE}{rest}[[tests]]\n{test}\n");
    for text in [
        rest.clone(),
        format!("{RULE}{ACTION}"),
        format!("{RULE}{CONDITION}"),
        format!("{RULE}{rest}[other]\n"),
        format!("[rule]\ntrigger = \"on_turn_start\"\n{rest}"),
        format!("[rule]\nid = \"x\"\n{rest}"),
        with("").replace("id = \"x\"", "id = \"Not Kebab\""),
        with("").replace("id = \"x\"", "id = \"\""),
        with("").replace("id = \"x\"", "id = 7"),
        with("").replace("on_turn_start", "on_turn"),
        with("priority = 0"),
        with("priority = 1001"),
        with("priority = \"high\""),
        with("priority = 1.5"),
        with("version = \"one\""),
        with("enabled = \"false\""),
        with("core = 1"),
        with("core = true\nenabled = false"),
        with("plugin_id = \"Not A Name\""),
        with("color = \"red\""),
        with("name = \"\""),
        format!("{RULE}[condition]\n{ACTION}"),
        format!("{RULE}[condition]\nexpression = \"True\"\nscript = \"a.lua\"\n{ACTION}"),
        format!("{RULE}[condition]\nexpression = 1\n{ACTION}"),
        format!("{RULE}[condition]\nexpression = \"\"\n{ACTION}"),
        format!("{RULE}{CONDITION}{ACTION}[[actions]]\ntype = \"log\"\n"),
        format!("actions = []\n{RULE}{CONDITION}"),
        doing(""),
        doing("type = \"shout\""),
        doing("type = \"notify_self\""),
        doing("type = \"notify_self\"\nmessage = \"m\"\ncategory = \"loud\""),
        doing("type = \"notify_self\"\nmessage = \"m\"\nlevel = \"info\""),
        doing("type = \"log\"\nlevel = \"loud\""),
        doing("type = \"set_state\"\nvalue = 1"),
        doing("type = \"set_state\"\nkey = \" \""),
        doing("type = \"emit_event\"\nevent_type = \"tool.call\""),
        doing("type = \"emit_event\"\nevent_type = \"custom.\""),
        doing("type = \"emit_event\"\nevent_type = \"custom.x\"\npayload = [1]"),
        doing("type = \"deny\"\nmessage = \"not at a turn\""),
        limited("cooldown = \"soon\""),
        limited("cooldown = \"0 turns\""),
        limited("once_per = \"day\""),
        limited("on_error = \"closed\""),
        limited("most = 3"),
        tested("name = \"expects nothing\""),
        tested("expect = { fired = \"yes\" }"),
        tested("expect = { message = \"m\" }"),
        tested("expect = { fired = false, message = \"m\" }"),
        tested("expect = { fired = true, colour = \"red\" }"),
        tested("context = 1\nexpect = { fired = true }"),
    ] {
        assert_eq!(both(&text), (false, false), "{text}");
    }
}
