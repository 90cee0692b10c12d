//! Spans of time in settings.

use std::time::Duration;

use serde::{Deserialize, Deserializer};

/// Reads a span of time such as `30s`, `2m` or `500ms`.
pub(crate) fn span<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    let parsed = parse_span(&text);
    parsed.ok_or_else(|| {
        serde::de::Error::custom(format!(
            "`{text}` is no time; write one such as \"30s\" or \"2m\""
        ))
    })
}

fn parse_span(text: &str) -> Option<Duration> {
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    let number: u64 = text[..end].parse().ok()?;
    let millis = match text[end..].trim() {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    let span = Duration::from_millis(number.checked_mul(millis)?);
    let longest = Duration::from_secs(24 * 3600);
    (!span.is_zero() && span <= longest).then_some(span)
}
