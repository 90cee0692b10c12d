//! One piece, tried.

use std::sync::Arc;
use std::time::Duration;

use dodona_expr::{CallError, Error, Expr, JsonScope, Schema, Value};
use dodona_proto::{RULE_CONTEXT, RULE_TRIGGERS};
use dodona_script::{Engine, Script, ScriptError};
use dodona_template::{Template, TemplateError};
use serde_json::{Value as Json, json};

use super::context::Node;
use super::functions;

/// What a piece is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    Expr,
    Script,
    Template,
}

impl Language {
    /// The key that holds the source.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Expr => "expr",
            Self::Script => "script",
            Self::Template => "template",
        }
    }
}

/// What is the same for all pieces.
pub(crate) struct Job {
    language: Language,
    explain: bool,
    schema: Schema,
    engine: Engine,
}

impl Job {
    pub(crate) fn new(language: Language, explain: bool) -> Self {
        Self {
            language,
            explain,
            schema: Schema::parse(RULE_CONTEXT).expect("the shape of a rule's context is tested"),
            engine: Engine::new(1),
        }
    }

    /// What a piece comes to.
    pub(crate) fn answer(&self, input: &Json) -> Json {
        let key = self.language.key();
        let Some(source) = input[key].as_str() else {
            return wrong_input(&format!("`{key}` must be a text"));
        };
        let schema = match input["trigger"].as_str() {
            None => self.schema.clone(),
            Some(trigger) if RULE_TRIGGERS.contains(&trigger) => self.schema.at(trigger),
            Some(trigger) => return wrong_input(&format!("unknown trigger `{trigger}`")),
        };
        for part in ["context", "settings", "limits"] {
            if !matches!(input[part], Json::Null | Json::Object(_)) {
                return wrong_input(&format!("`{part}` must be an object"));
            }
        }
        let given = |part: &str| match &input[part] {
            Json::Null => json!({}),
            value => value.clone(),
        };
        let document =
            schema.fill(&json!({ "context": given("context"), "settings": given("settings") }));
        match self.language {
            Language::Expr => self.expr(source, &schema, &document),
            Language::Script => self.script(source, document, &input["limits"]),
            Language::Template => template(source, document),
        }
    }

    fn expr(&self, source: &str, schema: &Schema, document: &Json) -> Json {
        let expr = match Expr::compile(source, schema) {
            Ok(expr) => expr,
            Err(error) => return expr_error(&error),
        };
        let scope = JsonScope::new(schema, document).with_functions(&answer_call);
        let warnings: Vec<Json> = expr
            .warnings()
            .iter()
            .map(|warning| json!({ "message": warning.message, "span": [warning.span.start, warning.span.end] }))
            .collect();
        let explained = self.explain.then(|| expr.explain(&scope));
        let mut answer = match expr.eval(&scope) {
            Ok(value) => {
                json!({ "ok": true, "value": value.to_json(), "truthy": value.is_truthy() })
            }
            Err(error) => expr_error(&error),
        };
        if !warnings.is_empty() {
            answer["warnings"] = Json::Array(warnings);
        }
        if let Some(explained) = explained {
            answer["explain"] = explained.root.to_json();
            answer["explained"] = json!(explained.root.to_string());
        }
        answer
    }

    fn script(&self, source: &str, document: Json, limits: &Json) -> Json {
        let mut bounds = dodona_script::Limits::default();
        if let Some(ms) = limits["time_ms"].as_u64() {
            bounds.time = Duration::from_millis(ms.min(10_000));
        }
        if let Some(mb) = limits["memory_mb"].as_u64() {
            bounds.memory_bytes = usize::try_from(mb.clamp(1, 1024)).unwrap_or(1) << 20;
        }
        let host = functions::host(&document);
        let context = Node::context(document);
        let ran = Script::compile(source, "script").and_then(|script| {
            self.engine
                .run_with(&script, Arc::new(context), Arc::new(host), &bounds)
        });
        match ran {
            Ok(outcome) => json!({
                "ok": true,
                "matched": outcome.matched,
                "actions": outcome.actions,
                "value": outcome.value,
            }),
            Err(error) => script_error(&error),
        }
    }
}

fn template(source: &str, document: Json) -> Json {
    let limits = dodona_template::Limits::message();
    let rendered = Template::compile(source, &limits)
        .and_then(|template| template.render(&Node::root(document), &limits));
    match rendered {
        Ok(text) => json!({ "ok": true, "text": text }),
        Err(error) => template_error(&error),
    }
}

/// Answers a function of the context.
fn answer_call<'a>(
    document: &'a Json,
    name: &str,
    arguments: &[Value<'a>],
) -> Result<Value<'a>, CallError> {
    let arguments: Vec<Json> = arguments.iter().map(Value::to_json).collect();
    let found = functions::call(document, name, &arguments).map_err(CallError::new)?;
    Ok(plain(&found))
}

/// A number, a truth value or nothing: what functions of the context answer.
fn plain(json: &Json) -> Value<'static> {
    match json {
        Json::Bool(value) => Value::from(*value),
        Json::Number(number) => match number.as_i64() {
            Some(whole) => Value::from(whole),
            None => Value::from(number.as_f64().unwrap_or_default()),
        },
        Json::String(text) => Value::text(text.as_str()),
        _ => Value::from(None::<bool>),
    }
}

/// Something that is no piece.
pub(super) fn wrong_input(message: &str) -> Json {
    json!({ "ok": false, "error": { "kind": "input", "message": message, "span": null } })
}

fn expr_error(error: &Error) -> Json {
    let span = error.span();
    json!({ "ok": false, "error": {
        "kind": error.kind().as_str(),
        "message": error.message(),
        "span": [span.start, span.end],
        "hint": error.hint(),
    } })
}

fn template_error(error: &TemplateError) -> Json {
    let span = error
        .place
        .as_ref()
        .map(|place| [place.span.start, place.span.end]);
    let line = error.place.as_ref().map(|place| place.line);
    json!({ "ok": false, "error": {
        "kind": error.kind.as_str(),
        "message": error.message,
        "span": span,
        "line": line,
    } })
}

fn script_error(error: &ScriptError) -> Json {
    json!({ "ok": false, "error": {
        "kind": error.kind.as_str(),
        "message": error.message,
        "span": null,
        "line": error.line,
    } })
}
