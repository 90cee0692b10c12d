//! Times and sizes as people write them.

use std::time::Duration;

use jiff::{SignedDuration, Span, SpanRelativeTo, Timestamp};

/// A time such as `500ms`, `5s`, `1h 30m` or `90d`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let expected = || format!("`{text}` is not a time: write `500ms`, `5s`, `1h 30m` or `90d`");
    let span: Span = text.trim().parse().map_err(|_| expected())?;
    span.to_duration(SpanRelativeTo::days_are_24_hours())
        .ok()
        .and_then(|duration| Duration::try_from(duration).ok())
        .ok_or_else(expected)
}

const UNITS: &[(&str, u64)] = &[
    ("", 1),
    ("B", 1),
    ("kB", 1000),
    ("KB", 1000),
    ("MB", 1000 * 1000),
    ("GB", 1000 * 1000 * 1000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

/// A size such as `4096`, `64 KiB` or `1 GiB`.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let expected = || format!("`{text}` is not a size: write `4096`, `64 KiB` or `1 GiB`");
    let trimmed = text.trim();
    let digits = trimmed.len()
        - trimmed
            .trim_start_matches(|c: char| c.is_ascii_digit())
            .len();
    let (number, unit) = trimmed.split_at(digits);
    let unit = UNITS.iter().find(|(name, _)| *name == unit.trim_start());
    let (_, unit) = unit.ok_or_else(expected)?;
    number
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(*unit))
        .ok_or_else(expected)
}

/// A size in the largest unit that fits, to be read and not to be parsed.
pub(crate) fn show_size(bytes: u64) -> String {
    let unit = UNITS
        .iter()
        .rev()
        .find(|(name, unit)| name.ends_with("iB") && bytes >= *unit);
    match unit {
        Some((name, unit)) if bytes.is_multiple_of(*unit) => format!("{} {name}", bytes / unit),
        Some((name, unit)) => format!("{}.{} {name}", bytes / unit, bytes % unit * 10 / unit),
        None => format!("{bytes} B"),
    }
}

/// A time in the largest unit that fits, as the configuration writes it.
pub(crate) fn show_duration(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0 => format!("{}ms", time.as_millis()),
        _ if seconds.is_multiple_of(86_400) => format!("{}d", seconds / 86_400),
        _ if seconds.is_multiple_of(3600) => format!("{}h", seconds / 3600),
        _ if seconds.is_multiple_of(60) => format!("{}m", seconds / 60),
        _ => format!("{seconds}s"),
    }
}

/// How long something took, to two or three digits.
pub(crate) fn show_elapsed(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0 => format!("{} ms", time.as_millis()),
        1..60 => format!("{:.1} s", time.as_secs_f64()),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// A moment for a listing: how long ago on a terminal, `2026-11-18 12:30` for programs.
pub(crate) fn show_moment(at: Timestamp, width: Option<usize>) -> String {
    let minute = || at.strftime("%Y-%m-%d %H:%M").to_string();
    match width {
        Some(_) => show_ago(Timestamp::now().duration_since(at)).unwrap_or_else(minute),
        None => minute(),
    }
}

/// `None` for more than four weeks, and for the future.
fn show_ago(ago: SignedDuration) -> Option<String> {
    Some(match ago.as_secs() {
        // Clocks of two machines differ a little.
        -5..5 => "just now".to_owned(),
        seconds @ 5..60 => format!("{seconds} s ago"),
        seconds @ 60..3_600 => format!("{} min ago", seconds / 60),
        seconds @ 3_600..172_800 => format!("{} h ago", seconds / 3_600),
        seconds @ 172_800..2_419_200 => format!("{} days ago", seconds / 86_400),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_shown_by_their_distance() {
        let ago = |seconds| show_ago(SignedDuration::from_secs(seconds));
        assert_eq!(ago(0).as_deref(), Some("just now"));
        assert_eq!(ago(59).as_deref(), Some("59 s ago"));
        assert_eq!(ago(7_200).as_deref(), Some("2 h ago"));
        assert_eq!(ago(3 * 86_400).as_deref(), Some("3 days ago"));
        assert_eq!(ago(40 * 86_400), None);
        assert_eq!(ago(-3_600), None);
    }

    #[test]
    fn times_are_read() {
        let read = |text| duration(text).ok().map(|time| time.as_millis());
        assert_eq!(read("500ms"), Some(500));
        assert_eq!(read(" 5s "), Some(5_000));
        assert_eq!(read("1h 30m"), Some(5_400_000));
        assert_eq!(read("90d"), Some(90 * 86_400_000));
        for wrong in ["", "5", "-5s", "5 parsecs", "s", "1 month"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn sizes_are_read() {
        assert_eq!(size("4096"), Ok(4096));
        assert_eq!(size("64 KiB"), Ok(65_536));
        assert_eq!(size("1GiB"), Ok(1 << 30));
        assert_eq!(size("2 MB"), Ok(2_000_000));
        for wrong in ["", "KiB", "-1", "1.5 GiB", "1 gib", "99999999999 TiB"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_shown_can_be_read_again() {
        for time in [1, 500, 5_000, 60_000, 3_600_000, 86_400_000].map(Duration::from_millis) {
            assert_eq!(duration(&show_duration(time)), Ok(time));
        }
        for bytes in [0, 1, 1 << 10, 64 << 10, 4 << 20, 1 << 30] {
            assert_eq!(size(&show_size(bytes)), Ok(bytes));
        }
        assert_eq!(show_size(1536), "1.5 KiB");
    }
}
