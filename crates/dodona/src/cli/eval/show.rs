//! What a piece came to, for people.

use std::io;

use dodona_proto::ExitKind;
use serde_json::Value;

use crate::excerpt::{self, Fault};
use crate::failure::Failure;
use crate::paint::{Paint, harmless};

pub(super) fn success(answer: &Value) -> String {
    if let Some(text) = answer["text"].as_str() {
        return format!("{}\n", harmless(text));
    }
    if let Some(explained) = answer["explained"].as_str() {
        return harmless(explained).into_owned();
    }
    let mut text = format!("{}\n", answer["value"]);
    if let Some(matched) = answer["matched"].as_bool() {
        text = match matched {
            true => format!("matched\n{text}"),
            false => "not matched\n".to_owned(),
        };
    }
    for warning in answer["warnings"].as_array().into_iter().flatten() {
        let message = warning["message"].as_str().unwrap_or_default();
        text.push_str(&format!("warning: {}\n", harmless(message)));
    }
    text
}

/// The fault, drawn where it is if that is known.
pub(super) fn failure(answer: &Value, name: Option<&str>, source: &str) -> Failure {
    let error = &answer["error"];
    let message = error["message"].as_str().unwrap_or("it failed").to_owned();
    let number = |value: &Value| {
        value
            .as_u64()
            .and_then(|number| usize::try_from(number).ok())
    };
    let span = match (&error["span"], number(&error["line"])) {
        (Value::Array(ends), _) => {
            let end = |index: usize| ends.get(index).and_then(number);
            end(0).zip(end(1)).map(|(from, to)| from..to)
        }
        (_, Some(line)) => {
            let start = excerpt::offset(source, line, 1);
            let length = source[start..].lines().next().map_or(0, str::len);
            Some(start..start + length)
        }
        _ => None,
    };
    let Some(span) = span else {
        return Failure::new(ExitKind::Failed, message);
    };
    let hint = error["hint"].as_str().map(str::to_owned);
    let fault = Fault {
        span,
        message,
        hint,
    };
    let paint = Paint::of(&io::stderr());
    let text = excerpt::draw(name.unwrap_or("<argument>"), source, &[fault], paint);
    Failure::Drawn {
        text,
        exit: ExitKind::Failed,
    }
}
