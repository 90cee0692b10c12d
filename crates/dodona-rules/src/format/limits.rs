//! How often a rule may fire, and what its failure means.

use std::fmt;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::action::{Action, ActionKind};

/// The longest cooldown.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The most turns of a cooldown.
const MOST_TURNS: u64 = 100_000;

/// `[limits]` of a rule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// How long it stays silent after it fired.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cooldown: Option<Cooldown>,
    /// In what it fires once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub once_per: Option<OncePer>,
    /// What its failure means for a call.
    pub on_error: OnError,
}

impl Limits {
    /// Whether what the rule did before may keep it from acting.
    pub(crate) fn keep_from_acting(&self) -> bool {
        self.cooldown.is_some() || self.once_per.is_some()
    }
}

/// How long a rule stays silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cooldown {
    /// For so many turns of the conversation.
    Turns(u64),
    /// For so long.
    Time(Duration),
}

/// In what a rule fires once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OncePer {
    /// One question and all its turns.
    Query,
    /// A conversation from when something is said until it rests.
    Session,
}

/// What the failure of a gate means for the call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    /// It goes on.
    #[default]
    Open,
    /// It is denied.
    Closed,
}

impl OnError {
    /// `closed` for a rule that refuses calls or asks a person, `open` for any other.
    pub fn default_for(actions: &[Action]) -> Self {
        let is_gate = |action: &Action| {
            matches!(
                action.kind(),
                ActionKind::Deny | ActionKind::RequireApproval
            )
        };
        match actions.iter().any(is_gate) {
            true => Self::Closed,
            false => Self::Open,
        }
    }
}

impl Cooldown {
    /// Reads `5 turns`, `10m`, `90 s`, `2h` or `1d`.
    ///
    /// # Errors
    ///
    /// With what would have been right.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is no cooldown; write `5 turns`, or a time like `90s`, `10m`, `2h`, `1d`"
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
            Duration::ZERO => Err("a cooldown is at least a second".to_owned()),
            time if time > LONGEST => Err("a cooldown is at most 365 days".to_owned()),
            time => Ok(Self::Time(time)),
        }
    }

    fn turns(number: u64) -> Result<Self, String> {
        match number {
            0 => Err("a cooldown is at least one turn".to_owned()),
            1..=MOST_TURNS => Ok(Self::Turns(number)),
            _ => Err(format!("a cooldown is at most {MOST_TURNS} turns")),
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
            ("", "write `5 turns`"),
            ("soon", "write `5 turns`"),
            ("5", "write `5 turns`"),
            ("-5m", "write `5 turns`"),
            ("5 weeks", "write `5 turns`"),
            ("99999999999999999999 turns", "write `5 turns`"),
            ("0 turns", "at least one turn"),
            ("0s", "at least a second"),
            ("100001 turns", "at most 100000 turns"),
            ("366d", "at most 365 days"),
        ] {
            assert!(Cooldown::parse(text).unwrap_err().contains(why), "{text}");
        }
    }
}
