//! The form of a rule's file as a JSON Schema, for editors.
//!
//! It is written by hand beside the reader and compared with it in a test: what the one accepts or
//! refuses, the other does too, as far as a form can say. What a condition or a template says is
//! beyond it.

use dodona_proto::RULE_TRIGGERS;
use serde_json::{Map, Value, json};

use crate::format::{ActionKind, ID_LENGTH};

/// The schema, ready to be written to a file.
pub fn rule_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Dodona rule",
        "description": "When something happens and a condition holds, do something.",
        "type": "object",
        "additionalProperties": false,
        "required": ["rule", "condition"],
        "properties": {
            "rule": rule(),
            "condition": condition(),
            "action": { "$ref": "#/$defs/action", "description": "What it does." },
            "actions": {
                "type": "array",
                "minItems": 1,
                "maxItems": 16,
                "items": { "$ref": "#/$defs/action" },
                "description": "Several things that it does, in this order.",
            },
            "limits": limits(),
            "tests": { "type": "array", "items": test(), "description": "What it promises of itself." },
        },
        "oneOf": [{ "required": ["action"] }, { "required": ["actions"] }],
        "if": { "not": at_tool_call() },
        "then": without_gates(),
        "$defs": { "action": action() },
    })
}

fn text(description: &str) -> Value {
    json!({ "type": "string", "minLength": 1, "description": description })
}

fn rule() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["id", "trigger"],
        "not": { "properties": { "core": { "const": true }, "enabled": { "const": false } }, "required": ["core", "enabled"] },
        "properties": {
            "id": {
                "type": "string", "pattern": "^[a-z0-9-]+$", "maxLength": ID_LENGTH,
                "description": "Unique within its plugin; the file is named after it.",
            },
            "name": text("For people; the id without it."),
            "description": { "type": "string", "description": "What it is for." },
            "version": {
                "type": "string",
                "pattern": r"^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$",
                "default": "1.0.0", "description": "Semantic.",
            },
            "trigger": { "enum": RULE_TRIGGERS, "description": "When the rule is evaluated." },
            "priority": {
                "type": "integer", "minimum": 1, "maximum": 1000, "default": 100,
                "description": "Rules with a higher priority are evaluated first.",
            },
            "enabled": { "type": "boolean", "default": true, "description": "When false, the rule is loaded and validated but never evaluated." },
            "core": {
                "type": "boolean", "default": false,
                "description": "Whether nobody can switch it off. Counts in bundled rules and in your own.",
            },
            "plugin_id": {
                "type": "string", "pattern": "^[a-z][a-z0-9_-]{0,63}$",
                "description": "The plugin that the rule belongs to. The rule uses the state and settings of this plugin.",
            },
            "surfaces": {
                "type": "array",
                "items": { "enum": ["cli", "rpc", "web", "mcp", "internal"] },
                "description": "From which surfaces it also covers calls of tools outside of a query.",
            },
        },
    })
}

fn condition() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "expression": text("A Python expression over `context`; the rule fires if it is true."),
            "script": text("The path of a Luau script, relative to this file."),
        },
        "oneOf": [{ "required": ["expression"] }, { "required": ["script"] }],
        "description": "When it fires.",
    })
}

fn limits() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "cooldown": {
                "type": "string", "pattern": "^0*[1-9][0-9]* *(turns?|s|m|h|d)$",
                "description": "How long it stays silent after it fired: `5 turns`, `90s`, `10m`, `2h`, `1d`.",
            },
            "once_per": { "enum": ["query", "session"], "description": "It fires once in each." },
            "on_error": {
                "enum": ["open", "closed"], "default": "open",
                "description": "At `on_tool_call`: whether the call may go on when the rule fails.",
            },
        },
    })
}

fn test() -> Value {
    let expect = json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["fired"],
        "properties": {
            "fired": { "type": "boolean", "description": "Whether it fires." },
            "message": text("What one of its messages contains."),
            "event": text("The type of an event that it emits."),
            "state": { "type": "object", "description": "What it sets, by key." },
        },
        "if": { "properties": { "fired": { "const": false } }, "required": ["fired"] },
        "then": { "maxProperties": 1 },
    });
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["expect"],
        "properties": {
            "name": text("What it shows."),
            "context": { "type": "object", "description": "What is under `context.`; the rest has its default." },
            "settings": { "type": "object", "description": "Settings of the rule's plugin." },
            "expect": expect,
        },
    })
}

fn action() -> Value {
    let kinds = ActionKind::ALL.map(|(name, kind)| {
        let (required, mut properties) = fields(kind);
        properties.insert("type".to_owned(), json!({ "const": name }));
        let needed = ["type"].iter().chain(required).collect::<Vec<_>>();
        json!({
            "type": "object",
            "additionalProperties": false,
            "required": needed,
            "properties": properties,
        })
    });
    json!({ "oneOf": kinds })
}

/// The fields of an action beside `type`, and which of them it needs.
fn fields(kind: ActionKind) -> (&'static [&'static str], Map<String, Value>) {
    let (required, properties): (&[&str], Value) = match kind {
        ActionKind::NotifySelf => (
            &["message"],
            json!({
                "message": text("The message for the model; a template."),
                "category": { "enum": ["info", "warning", "error", "reminder"], "default": "info" },
                "priority": { "enum": ["low", "normal", "high", "critical"], "default": "normal" },
                "deliver_at": { "enum": ["turn_start", "after_tool", "immediate"], "default": "turn_start" },
            }),
        ),
        ActionKind::Log => (
            &[],
            json!({
                "message": text("The line; a template."),
                "level": { "enum": ["debug", "info", "warning", "error"], "default": "info" },
            }),
        ),
        ActionKind::SetState => (
            &["key"],
            json!({
                "key": { "type": "string", "minLength": 1, "maxLength": 256, "pattern": r"\S", "description": "Its name." },
                "value": { "description": "Any value; a text that is one `{{ expression }}` keeps its type." },
            }),
        ),
        ActionKind::EmitEvent => (
            &["event_type"],
            json!({
                "event_type": {
                    "type": "string", "maxLength": 256,
                    "pattern": r"^custom(\.[a-z0-9_-]+)+$",
                    "description": "What happened; begins with `custom.`.",
                },
                "payload": { "type": "object", "description": "Particulars; its texts are templates." },
            }),
        ),
        ActionKind::Deny => (
            &["message"],
            json!({ "message": text("Why, for whoever called the tool; a template.") }),
        ),
        ActionKind::RequireApproval => (
            &["message"],
            json!({ "message": text("What a person is to agree to; a template.") }),
        ),
    };
    let properties = match properties {
        Value::Object(properties) => properties,
        _ => Map::new(),
    };
    (required, properties)
}

fn at_tool_call() -> Value {
    json!({ "properties": { "rule": { "properties": { "trigger": { "const": "on_tool_call" } } } } })
}

/// What decides over a call, or says what its failure means for one, has no place at other triggers.
fn without_gates() -> Value {
    let gates = ActionKind::ALL
        .iter()
        .filter(|(_, kind)| kind.is_gate())
        .map(|(name, _)| *name)
        .collect::<Vec<_>>();
    let other = json!({ "properties": { "type": { "not": { "enum": gates } } } });
    let limits = json!({ "not": { "required": ["on_error"] } });
    json!({ "properties": { "action": other, "actions": { "items": other }, "limits": limits } })
}
