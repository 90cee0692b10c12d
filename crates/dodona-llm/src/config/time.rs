//! Times in the configuration: `"500ms"`, `"5s"`, `"1h 30m"`.

use std::time::Duration;

use jiff::SignedDuration;
use serde::{Deserialize, Deserializer, Serializer, de::Error as _};

pub(super) fn serialize<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    let signed = SignedDuration::try_from(*time).unwrap_or(SignedDuration::MAX);
    serializer.collect_str(&format_args!("{signed:#}"))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    let wrong = || {
        D::Error::custom(format!(
            "`{text}` is no time: write it as `\"500ms\"`, `\"5s\"` or `\"2m\"`"
        ))
    };
    let time: SignedDuration = text.parse().map_err(|_| wrong())?;
    let time = Duration::try_from(time).map_err(|_| wrong())?;
    // Nothing can happen in no time at all.
    if time.is_zero() {
        Err(wrong())
    } else {
        Ok(time)
    }
}
