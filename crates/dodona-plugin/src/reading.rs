//! Reading TOML strictly: every fault with its place, and none hides another.

use std::fmt;
use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Something wrong in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// Path of the file.
    pub path: String,
    /// Where in the file, if it is about a place in it.
    pub place: Option<Place>,
    /// The problem as text.
    pub message: String,
    /// The next thing to try.
    pub hint: Option<String>,
}

/// A place in a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Place {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// How many bytes of the line are meant.
    pub width: usize,
    /// The text of the line.
    pub text: String,
}

impl Problem {
    /// A problem with a file as a whole.
    pub fn of_file(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            place: None,
            message: message.into(),
            hint: None,
        }
    }

    /// Adds the next thing to try.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The problem in one line, with the file's name but not where the file is.
    pub fn brief(&self) -> String {
        let name = self.path.rsplit(['/', '\\']).next().unwrap_or_default();
        let line = match &self.place {
            Some(place) => format!("{name}:{}", place.line),
            None => name.to_owned(),
        };
        match &self.hint {
            Some(hint) => format!("{line}: {}; {hint}", self.message),
            None => format!("{line}: {}", self.message),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)?;
        if let Some(place) = &self.place {
            write!(f, ":{}:{}", place.line, place.column)?;
        }
        write!(f, ": {}", self.message)?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

/// A file as it is read, and what was found wrong with it so far.
#[derive(Debug)]
pub struct Reading<'t> {
    path: String,
    text: &'t str,
    problems: Vec<Problem>,
}

/// A key and its value, with their places.
pub type Key<'t> = Spanned<std::borrow::Cow<'t, str>>;

impl<'t> Reading<'t> {
    /// Begins to read a text; `path` is where it comes from.
    pub fn new(path: impl Into<String>, text: &'t str) -> Self {
        Self {
            path: path.into(),
            text,
            problems: Vec::new(),
        }
    }

    /// The whole as a table; a text that is no TOML is one problem.
    pub fn parse(&mut self) -> Option<DeTable<'t>> {
        match DeTable::parse(self.text) {
            Ok(table) => Some(table.into_inner()),
            Err(error) => {
                let message = error.message().lines().next().unwrap_or_default();
                self.fault(error.span().unwrap_or(0..0), message.to_owned());
                None
            }
        }
    }

    /// As [`parse`](Self::parse), but a key that stands twice does not end it: the first of the two
    /// holds, and the places of the others are returned.
    pub fn parse_with_repeats(&mut self) -> Option<(DeTable<'t>, Vec<Range<usize>>)> {
        let (table, errors) = DeTable::parse_recoverable(self.text);
        let is_repeat = |error: &toml::de::Error| error.message() == "duplicate key";
        if !errors.iter().all(is_repeat) {
            return self.parse().map(|table| (table, Vec::new()));
        }
        let repeats = errors.iter().filter_map(toml::de::Error::span).collect();
        Some((table.into_inner(), repeats))
    }

    /// Records a problem at a position.
    pub fn fault(&mut self, span: Range<usize>, message: impl Into<String>) {
        self.note(span, message.into(), None);
    }

    /// Notes a problem, and the next thing to try.
    pub fn fault_with(
        &mut self,
        span: Range<usize>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.note(span, message.into(), Some(hint.into()));
    }

    fn note(&mut self, span: Range<usize>, message: String, hint: Option<String>) {
        let place = Some(self.place(span));
        self.problems.push(Problem {
            path: self.path.clone(),
            place,
            message,
            hint,
        });
    }

    /// Notes that a key is not one, and which was probably meant.
    pub fn unknown(&mut self, key: &Key<'_>, known: &[&str]) {
        let word = key.get_ref();
        let hint = match nearest(word, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there is {}", known.join(", ")),
        };
        self.fault_with(key.span(), format!("unknown key `{word}`"), hint);
    }

    /// A text that is not empty.
    pub fn text(&mut self, key: &str, value: &Spanned<DeValue<'_>>) -> Option<String> {
        match value.get_ref().as_str() {
            Some(text) if !text.trim().is_empty() => return Some(text.to_owned()),
            Some(_) => self.fault(value.span(), format!("`{key}` is empty")),
            None => self.expected(key, "a text", value),
        }
        None
    }

    /// `true` or `false`, and nothing that only looks like it.
    pub fn boolean(&mut self, key: &str, value: &Spanned<DeValue<'_>>) -> Option<bool> {
        if let Some(answer) = value.get_ref().as_bool() {
            return Some(answer);
        }
        match value.get_ref().as_str() {
            Some(text @ ("true" | "false")) => self.fault_with(
                value.span(),
                format!("`{key}` must be true or false, not a string"),
                format!("write `{key} = {text}` without quotes"),
            ),
            _ => self.expected(key, "true or false", value),
        }
        None
    }

    /// A list of texts, each with its place.
    pub fn texts(&mut self, key: &str, value: &Spanned<DeValue<'_>>) -> Vec<Spanned<String>> {
        let Some(array) = value.get_ref().as_array() else {
            self.expected(key, "a list of texts", value);
            return Vec::new();
        };
        let mut texts = Vec::new();
        for item in array.iter() {
            if let Some(text) = self.text(key, item) {
                texts.push(Spanned::new(item.span(), text));
            }
        }
        texts
    }

    /// The value as a table, or a problem.
    pub fn table<'v>(
        &mut self,
        key: &str,
        value: &'v Spanned<DeValue<'t>>,
    ) -> Option<&'v DeTable<'t>> {
        let table = value.get_ref().as_table();
        if table.is_none() {
            self.fault_with(
                value.span(),
                format!("`{key}` is a table, not {}", article(value.get_ref())),
                format!("write `[{key}]` and its keys below"),
            );
        }
        table
    }

    /// Notes that a value is of the wrong kind.
    pub fn expected(&mut self, key: &str, what: &str, value: &Spanned<DeValue<'_>>) {
        let found = article(value.get_ref());
        self.fault(value.span(), format!("`{key}` must be {what}, not {found}"));
    }

    /// How many problems there are so far.
    pub fn count(&self) -> usize {
        self.problems.len()
    }

    /// The problems from the one with this number on.
    pub fn since(&self, count: usize) -> &[Problem] {
        &self.problems[count.min(self.problems.len())..]
    }

    /// Everything that is wrong.
    pub fn into_problems(self) -> Vec<Problem> {
        self.problems
    }

    /// Line, column and text of a span.
    pub fn place(&self, span: Range<usize>) -> Place {
        let start = self.text.floor_char_boundary(span.start);
        let before = &self.text[..start];
        let begins = before.rfind('\n').map_or(0, |end| end + 1);
        let ends = self.text[start..]
            .find('\n')
            .map_or(self.text.len(), |length| start + length);
        let end = self.text.ceil_char_boundary(span.end).clamp(start, ends);
        Place {
            line: before.matches('\n').count() + 1,
            column: before[begins..].chars().count() + 1,
            width: end - start,
            text: self.text[begins..ends].trim_end_matches('\r').to_owned(),
        }
    }
}

/// A kind of value with its article.
fn article(value: &DeValue<'_>) -> String {
    let kind = value.type_str();
    if kind.starts_with(['a', 'e', 'i', 'o', 'u']) {
        format!("an {kind}")
    } else {
        format!("a {kind}")
    }
}

/// A value as JSON. Times become texts; numbers that JSON does not have are refused.
pub fn to_json(value: &DeValue<'_>) -> Result<Value, String> {
    Ok(match value {
        DeValue::String(text) => Value::String(text.clone().into_owned()),
        DeValue::Boolean(truth) => Value::Bool(*truth),
        DeValue::Datetime(time) => Value::String(time.to_string()),
        DeValue::Integer(number) => {
            let parsed = i64::from_str_radix(number.as_str(), number.radix());
            Value::from(parsed.map_err(|_| format!("{} is too large", number.as_str()))?)
        }
        DeValue::Float(number) => {
            let parsed = number.as_str().parse().ok().and_then(Number::from_f64);
            Value::Number(parsed.ok_or_else(|| format!("{} is not finite", number.as_str()))?)
        }
        DeValue::Array(items) => {
            let items = items.iter().map(|item| to_json(item.get_ref()));
            Value::Array(items.collect::<Result<_, _>>()?)
        }
        DeValue::Table(table) => Value::Object(table_to_json(table)?),
    })
}

/// A table as JSON, see [`to_json`].
pub fn table_to_json(table: &DeTable<'_>) -> Result<Map<String, Value>, String> {
    let pairs = table
        .iter()
        .map(|(key, value)| Ok((key.get_ref().to_string(), to_json(value.get_ref())?)));
    pairs.collect()
}

/// The candidate that a misspelt word most likely meant, if any is near enough.
pub fn nearest<T: AsRef<str>>(word: &str, candidates: impl IntoIterator<Item = T>) -> Option<T> {
    let word: String = word.chars().take(128).collect();
    candidates
        .into_iter()
        .map(|candidate| {
            let distance = strsim::damerau_levenshtein(&word, candidate.as_ref());
            (distance, candidate)
        })
        .filter(|(distance, candidate)| *distance <= 1 + candidate.as_ref().len() / 4)
        .min_by(|a, b| (a.0, a.1.as_ref()).cmp(&(b.0, b.1.as_ref())))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_knows_its_line_and_its_column() {
        let text = "a = 1\nb = \"ü\" \n";
        let mut reading = Reading::new("conf/x.toml", text);
        let table = reading.parse().unwrap();
        let (key, value) = table.iter().nth(1).unwrap();
        reading.boolean("b", value);
        reading.unknown(key, &["bo", "colour"]);
        let problems = reading.into_problems();
        assert_eq!(
            problems[0].to_string(),
            "conf/x.toml:2:5: `b` must be true or false, not a string"
        );
        assert_eq!(
            problems[1].brief(),
            "x.toml:2: unknown key `b`; did you mean `bo`?"
        );
        let place = problems[0].place.as_ref().unwrap();
        assert_eq!((place.text.as_str(), place.width), ("b = \"ü\" ", 4));
    }

    #[test]
    fn a_text_that_is_no_toml_is_one_problem_with_a_place() {
        let mut reading = Reading::new("x.toml", "[plugin\nx = ");
        assert!(reading.parse().is_none());
        assert_eq!(reading.count(), 1);
        assert!(reading.into_problems()[0].place.is_some());
    }

    #[test]
    fn values_become_json_or_say_why_not() {
        let text = "a = 0x10\nb = 1.5\nc = 1979-05-27\nd = [true, {e = 'x'}]\n";
        let table = Reading::new("x", text).parse().unwrap();
        let json = Value::Object(table_to_json(&table).unwrap());
        let expected = r#"{"a":16,"b":1.5,"c":"1979-05-27","d":[true,{"e":"x"}]}"#;
        assert_eq!(json.to_string(), expected);
        let table = Reading::new("x", "a = inf").parse().unwrap();
        assert_eq!(table_to_json(&table).unwrap_err(), "inf is not finite");
    }
}
