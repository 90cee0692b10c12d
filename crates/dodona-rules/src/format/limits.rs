//! Limits of a rule: cooldown, `once_per`, `on_error`.

use std::fmt;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::action::{Action, ActionKind};

/// Maximum cooldown.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Maximum cooldown in turns.
const MOST_TURNS: u64 = 100_000;

/// `[limits]` of a rule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// Minimum time or turns between two firings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cooldown: Option<Cooldown>,
    /// The rule fires at most once per query or session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub once_per: Option<OncePer>,
    /// What happens to a call if the evaluation fails.
    pub on_error: OnError,
}

impl Limits {
    /// Whether an earlier firing can suppress the rule.
    pub(crate) fn can_suppress(&self) -> bool {
        self.cooldown.is_some() || self.once_per.is_some()
    }
}

/// Minimum distance between two firings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cooldown {
    /// Number of turns of the conversation.
    Turns(u64),
    Time(Duration),
}

/// The unit in which a rule fires at most once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OncePer {
    /// One query with all its turns.
    Query,
    /// A session of a conversation: from the first message until it is idle.
    Session,
}

/// What happens to a call if the evaluation of the rule fails.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    /// The call continues without this rule.
    #[default]
    Open,
    /// The call is denied.
    Closed,
}

impl OnError {
    /// `closed` for a rule with `deny` or `require_approval`, `open` for all others.
    pub fn default_for(actions: &[Action]) -> Self {
        let is_gate = |action: &Action| {
            matches!(
                action.kind(),
                ActionKind::Deny | ActionKind::RequireApproval
            )
        };
        if actions.iter().any(is_gate) {
            Self::Closed
        } else {
            Self::Open
        }
    }
}

impl Cooldown {
    /// Parses `5 turns`, `10m`, `90 s`, `2h` or `1d`.
    ///
    /// # Errors
    ///
    /// With the expected format.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "invalid cooldown `{text}`; use `5 turns` or a duration such as `90s`, `10m`, `2h`, `1d`"
            )
        };
        let digits = text.find(|c: char| !c.is_ascii_digit());
        let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let seconds = match unit.trim() {
            "turn" | "turns" => return Self::turns(number),
            "s" => 1,
            "m" => 60,
            "h" => 3_600,
            "d" => 86_400,
            _ => return Err(wrong()),
        };
        let time = Duration::from_secs(number.saturating_mul(seconds));
        match time {
            Duration::ZERO => Err("a cooldown must be at least one second".to_owned()),
            time if time > LONGEST => Err("a cooldown must be at most 365 days".to_owned()),
            time => Ok(Self::Time(time)),
        }
    }

    fn turns(number: u64) -> Result<Self, String> {
        match number {
            0 => Err("a cooldown must be at least one turn".to_owned()),
            1..=MOST_TURNS => Ok(Self::Turns(number)),
            _ => Err(format!("a cooldown must be at most {MOST_TURNS} turns")),
        }
    }
}

impl fmt::Display for Cooldown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Turns(1) => f.write_str("1 turn"),
            Self::Turns(number) => write!(f, "{number} turns"),
            Self::Time(time) => {
                let seconds = time.as_secs();
                let units = [(86_400, "d"), (3_600, "h"), (60, "m")];
                let whole = units.iter().find(|(unit, _)| seconds % unit == 0);
                match whole {
                    Some((unit, word)) => write!(f, "{}{word}", seconds / unit),
                    None => write!(f, "{seconds}s"),
                }
            }
        }
    }
}

impl Serialize for Cooldown {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cooldown_reads_back_as_it_was_written() {
        for text in ["5 turns", "1 turn", "90s", "10m", "2h", "1d"] {
            assert_eq!(Cooldown::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Cooldown::parse("60 m").unwrap().to_string(), "1h");
    }

    #[test]
    fn what_is_no_cooldown_says_what_is() {
        for (text, why) in [
            ("", "use `5 turns`"),
            ("soon", "use `5 turns`"),
            ("5", "use `5 turns`"),
            ("-5m", "use `5 turns`"),
            ("5 weeks", "use `5 turns`"),
            ("99999999999999999999 turns", "use `5 turns`"),
            ("0 turns", "at least one turn"),
            ("0s", "at least one second"),
            ("100001 turns", "at most 100000 turns"),
            ("366d", "at most 365 days"),
        ] {
            assert!(Cooldown::parse(text).unwrap_err().contains(why), "{text}");
        }
    }
}
