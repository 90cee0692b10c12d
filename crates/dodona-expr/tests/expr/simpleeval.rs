//! The real simpleeval, asked the same question.

use dodona_expr::{Expr, JsonScope, Schema, Value};
use dodona_testkit::{Lines, Python};
use serde_json::{Value as Json, json};

const PACKAGES: [&str; 1] = ["simpleeval==1.0.8"];

/// What both are given to name.
pub(crate) const NAMES: &str = "n: any\nf: any\ns: any\nxs: any\nws: any\nd: any\nnothing: any";

pub(crate) fn names() -> Json {
    json!({
        "n": 7,
        "f": 0.41,
        "s": "Vault search",
        "xs": [3, 1, 2, 2],
        "ws": ["notes", "code", "", "Web"],
        "d": {"a": 1, "b": {"c": [1, 2]}, "format": "pdf", "items": 3, "ok": true},
        "nothing": null,
    })
}

/// What an expression became: a value, or an error.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    /// A form in which values of different types are never equal; none for an error.
    pub(crate) value: Option<Json>,
    /// How Python's `repr` writes the value, or the name of the error.
    pub(crate) text: String,
    /// What an error of ours says.
    pub(crate) message: String,
}

/// simpleeval in a process of its own.
pub(crate) struct Peer(Lines);

impl Peer {
    pub(crate) fn start() -> Self {
        let python = Python::with(&PACKAGES).unwrap();
        Self(python.lines(include_str!("peer.py")).unwrap())
    }

    pub(crate) fn eval(&mut self, expr: &str) -> Answer {
        let question = json!({"expr": expr, "names": names()});
        let answer = self.0.ask(&question).unwrap();
        let text = |key: &str| answer[key].as_str().unwrap_or_default().to_owned();
        match answer.get("error") {
            Some(_) => Answer {
                value: None,
                text: text("error"),
                message: String::new(),
            },
            None => Answer {
                value: Some(answer["value"].clone()),
                text: text("repr"),
                message: String::new(),
            },
        }
    }
}

/// Ours.
pub(crate) fn eval(source: &str) -> Answer {
    let schema = Schema::parse(NAMES).unwrap();
    let document = names();
    let failed = |error: dodona_expr::Error| Answer {
        value: None,
        text: error.kind().to_string(),
        message: error.message().to_owned(),
    };
    let expr = match Expr::compile(source, &schema) {
        Ok(expr) => expr,
        Err(error) => return failed(error),
    };
    match expr.eval(&JsonScope::new(&schema, &document)) {
        Ok(value) => Answer {
            text: value.short_repr(),
            value: Some(encode(&value)),
            message: String::new(),
        },
        Err(error) => failed(error),
    }
}

fn encode(value: &Value<'_>) -> Json {
    match value {
        Value::None => json!(["None"]),
        Value::Bool(value) => json!(["bool", value]),
        Value::Int(value) => json!(["int", value.to_string()]),
        Value::Float(_) => json!(["float", value.to_string()]),
        Value::Str(text) => json!(["str", &**text]),
        Value::List(list) => json!(["list", list.iter().map(|v| encode(&v)).collect::<Vec<_>>()]),
        Value::Tuple(list) => json!(["tuple", list.iter().map(|v| encode(&v)).collect::<Vec<_>>()]),
        Value::Set(set) => {
            let mut items: Vec<Json> = set.iter().map(encode).collect();
            items.sort_by_key(python_json);
            json!(["set", items])
        }
        Value::Dict(dict) => {
            let entries = dict
                .entries()
                .map(|(key, value)| json!([encode(&key), encode(&value)]));
            json!(["dict", entries.collect::<Vec<_>>()])
        }
    }
}

/// As Python's `json.dumps` writes it, so that both sort alike.
fn python_json(json: &Json) -> String {
    match json {
        Json::Array(items) => {
            let items: Vec<String> = items.iter().map(python_json).collect();
            format!("[{}]", items.join(", "))
        }
        Json::String(text) => {
            let mut out = String::from("\"");
            for unit in text.encode_utf16() {
                match u8::try_from(unit) {
                    Ok(byte) if (0x20..0x7f).contains(&byte) && byte != b'"' && byte != b'\\' => {
                        out.push(char::from(byte));
                    }
                    _ => out.push_str(&format!("\\u{unit:04x}")),
                }
            }
            out + "\""
        }
        other => other.to_string(),
    }
}
