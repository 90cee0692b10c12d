//! `dodona rules doctor`.

use std::fmt::Write as _;

use dodona_proto::ExitKind;
use serde_json::{Value, json};

use super::{Done, Form, answer, near, short, text};
use crate::failure::Failure;
use crate::paint::{Paint, one_line};
use crate::session::Session;

pub(super) async fn ask(session: &Session, form: Form) -> Result<Done, Failure> {
    let checkup: Value = answer(session, "rules.doctor", json!({})).await?;
    let sick = checkup["healthy"] != true;
    Ok(Done {
        text: form.text(&checkup, words),
        failure: sick.then_some(Failure::Told(ExitKind::Failed)),
    })
}

fn words(checkup: &Value, paint: Paint) -> String {
    let mut out = String::new();
    let findings = checkup["findings"].as_array().into_iter().flatten();
    for finding in findings {
        let word = match text(finding, "severity") {
            "error" => paint.bad("error  ").to_string(),
            "warning" => paint.note("warning").to_string(),
            _ => paint.dim("info   ").to_string(),
        };
        let about = match finding["rule"].as_str() {
            Some(rule) => short(rule).to_owned(),
            None => format!("{}:{}", near(text(finding, "path")), finding["line"]),
        };
        let _ = writeln!(
            out,
            "{word}  {about}: {}",
            one_line(text(finding, "message"))
        );
        if let Some(hint) = finding["hint"].as_str() {
            let _ = writeln!(out, "         {} {}", paint.code("hint:"), one_line(hint));
        }
    }
    let rules = checkup["rules"].as_u64().unwrap_or(0);
    let verdict = match checkup["healthy"] == true {
        true => "nothing wrong",
        false => "something needs a look",
    };
    let _ = writeln!(out, "{rules} rules, {verdict}");
    out
}
