//! `dodona plugins logs`.

use std::fmt::Write as _;

use dodona_plugin::{LogLevel, LogLine};
use serde::{Deserialize, Serialize};

use crate::paint::{Paint, one_line};

#[derive(Serialize, Deserialize)]
pub(super) struct Logs {
    lines: Vec<LogLine>,
}

pub(super) fn words(logs: &Logs, paint: Paint) -> String {
    if logs.lines.is_empty() {
        return "it has said nothing since the server was started\n".to_owned();
    }
    let mut text = String::new();
    for line in &logs.lines {
        let level = match line.level {
            LogLevel::Error => paint.bad("error  ").to_string(),
            LogLevel::Warning => "warning".to_owned(),
            LogLevel::Info => "info   ".to_owned(),
            LogLevel::Debug => paint.dim("debug  ").to_string(),
        };
        let at = line.at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string();
        let _ = writeln!(
            text,
            "{}  {level}  {}: {}",
            paint.dim(at),
            one_line(&line.part),
            one_line(&line.text)
        );
    }
    text
}
