//! When a provider wants to be asked again.

use std::time::Duration;

use http::HeaderMap;
use jiff::Timestamp;
use jiff::fmt::rfc2822;

/// Reads `retry-after-ms` or `Retry-After`, in seconds or as a date.
pub(crate) fn of(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = |name| headers.get(name)?.to_str().ok().map(str::trim);
    if let Some(millis) = text("retry-after-ms").and_then(seconds) {
        return Some(millis / 1000);
    }
    let asked = text("retry-after")?;
    seconds(asked).or_else(|| until(asked, now))
}

/// Fractions are no standard, and are sent all the same.
fn seconds(text: &str) -> Option<Duration> {
    let number: f64 = text.parse().ok()?;
    Duration::try_from_secs_f64(number).ok()
}

/// A date that has passed is now.
fn until(text: &str, now: Timestamp) -> Option<Duration> {
    let date = rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
    Some(Duration::try_from(date.duration_since(now)).unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(name: &'static str, value: &str) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        let now = "1994-11-06T08:49:07Z".parse().unwrap();
        of(&headers, now)
    }

    #[test]
    fn seconds_dates_and_nonsense() {
        assert_eq!(asked("retry-after", "7"), Some(Duration::from_secs(7)));
        assert_eq!(
            asked("retry-after", "0.5"),
            Some(Duration::from_millis(500))
        );
        assert_eq!(
            asked("retry-after-ms", "1500"),
            Some(Duration::from_millis(1500))
        );
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        assert_eq!(asked("retry-after", date), Some(Duration::from_secs(30)));
        let passed = "Sun, 06 Nov 1994 08:00:00 GMT";
        assert_eq!(asked("retry-after", passed), Some(Duration::ZERO));
        for nonsense in ["soon", "-3", "NaN", "1e400", ""] {
            assert_eq!(asked("retry-after", nonsense), None, "{nonsense}");
        }
    }
}
