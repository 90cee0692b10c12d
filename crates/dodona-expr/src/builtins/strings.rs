//! The methods of texts. Places count characters, as in Python.

use super::functions::Items;
use super::{Method, unicode};
use crate::error::Fault;
use crate::limits::Meter;
use crate::value::{Text, Value};

/// A part of a text, by bytes: borrowed from one that is.
pub(super) fn part<'a>(text: &Text<'a>, start: usize, end: usize) -> Value<'a> {
    match text {
        Text::Borrowed(text) => Value::str(text.get(start..end).unwrap_or_default()),
        Text::Shared(text) => Value::text(text.get(start..end).unwrap_or_default()),
    }
}

/// A text that was made, paid for.
fn made<'a>(text: String, meter: &mut Meter) -> Result<Value<'a>, Fault> {
    if text.len() > meter.max_length() {
        meter.length(text.chars().count())?;
    }
    meter.text(text.len())?;
    Ok(Value::text(text))
}

/// A part that may have to be made.
fn cut<'a>(
    text: &Text<'a>,
    start: usize,
    end: usize,
    meter: &mut Meter,
) -> Result<Value<'a>, Fault> {
    if let Text::Shared(_) = text {
        meter.text(end.saturating_sub(start))?;
    }
    Ok(part(text, start, end))
}

/// Calls a method of a text; none if texts have no such method.
pub(super) fn call<'a>(
    method: Method,
    text: &Text<'a>,
    arguments: &Arguments<'_, 'a>,
    meter: &mut Meter,
) -> Result<Option<Value<'a>>, Fault> {
    meter.read(text)?;
    let value = match method {
        Method::Capitalize
        | Method::Casefold
        | Method::Lower
        | Method::SwapCase
        | Method::Title
        | Method::Upper => made(recased(method, text), meter)?,
        Method::Center | Method::LJust | Method::RJust | Method::ZFill => {
            padded(method, text, arguments, meter)?
        }
        Method::Count | Method::Find | Method::Index | Method::RFind | Method::RIndex => {
            search(method, text, arguments)?
        }
        Method::StartsWith | Method::EndsWith => affix(method, text, arguments)?,
        Method::RemovePrefix | Method::RemoveSuffix => remove(method, text, arguments, meter)?,
        Method::Strip | Method::LStrip | Method::RStrip => strip(method, text, arguments, meter)?,
        Method::Partition | Method::RPartition => partition(method, text, arguments, meter)?,
        Method::Split | Method::RSplit => split(method, text, arguments, meter)?,
        Method::SplitLines => split_lines(text, arguments, meter)?,
        Method::Join => join(text, arguments, meter)?,
        Method::Replace => replace(text, arguments, meter)?,
        Method::ExpandTabs => expand_tabs(text, arguments, meter)?,
        other => return Ok(test(other, text).map(Value::Bool)),
    };
    Ok(Some(value))
}

/// The arguments of a method, with its name for messages.
pub(super) struct Arguments<'r, 'a> {
    pub(super) method: Method,
    pub(super) values: &'r [Option<Value<'a>>],
}

impl<'a> Arguments<'_, 'a> {
    /// An argument; none if it was left out.
    pub(super) fn get(&self, at: usize) -> Option<&Value<'a>> {
        self.values.get(at).and_then(Option::as_ref)
    }

    pub(super) fn need(&self, at: usize) -> Result<&Value<'a>, Fault> {
        self.get(at)
            .ok_or_else(|| Fault::type_error(format!("`{}` lacks an argument", self.method.name())))
    }

    fn text(&self, at: usize) -> Result<&Text<'a>, Fault> {
        match self.need(at)? {
            Value::Str(text) => Ok(text),
            other => Err(self.wrong("a text", other)),
        }
    }

    fn int(&self, at: usize) -> Result<i64, Fault> {
        let value = self.need(at)?;
        value.as_int().ok_or_else(|| self.wrong("an int", value))
    }

    /// An optional argument for which `None` is as good as nothing.
    fn given(&self, at: usize) -> Option<&Value<'a>> {
        self.get(at).filter(|value| !matches!(value, Value::None))
    }

    fn wrong(&self, wanted: &str, got: &Value<'_>) -> Fault {
        Fault::type_error(format!(
            "`{}` wants {wanted}, not {}",
            self.method.name(),
            got.a_type()
        ))
    }
}

fn recased(method: Method, text: &str) -> String {
    match method {
        Method::Lower => text.to_lowercase(),
        Method::Upper => text.to_uppercase(),
        Method::Casefold => unicode::fold(text),
        Method::Capitalize => {
            let mut characters = text.chars();
            let first = characters.next().map_or_else(String::new, unicode::titled);
            first + &characters.as_str().to_lowercase()
        }
        Method::SwapCase => text.chars().map(swapped).collect(),
        _ => titled(text),
    }
}

fn swapped(character: char) -> String {
    if character.is_uppercase() {
        character.to_lowercase().collect()
    } else if character.is_lowercase() {
        character.to_uppercase().collect()
    } else {
        character.into()
    }
}

fn titled(text: &str) -> String {
    let mut titled = String::with_capacity(text.len());
    let mut inside = false;
    for character in text.chars() {
        if inside {
            titled.extend(character.to_lowercase());
        } else {
            titled.push_str(&unicode::titled(character));
        }
        inside = unicode::is_cased(character);
    }
    titled
}

fn padded<'a>(
    method: Method,
    text: &Text<'a>,
    arguments: &Arguments<'_, 'a>,
    meter: &mut Meter,
) -> Result<Value<'a>, Fault> {
    let length = text.chars().count();
    let width = usize::try_from(arguments.int(0)?.max(0)).unwrap_or(usize::MAX);
    let fill = match arguments.get(1) {
        None => ' ',
        Some(_) => single(arguments, 1)?,
    };
    let Some(missing) = width.checked_sub(length).filter(|missing| *missing > 0) else {
        return Ok(Value::Str(text.clone()));
    };
    meter.length(width)?;
    let (sign, body, fill, before) = match method {
        Method::ZFill => {
            let signed = text.starts_with(['+', '-']);
            let (sign, body) = text.split_at(usize::from(signed));
            (sign, body, '0', missing)
        }
        Method::LJust => ("", &**text, fill, 0),
        Method::RJust => ("", &**text, fill, missing),
        // The odd one goes right, unless text and width are both odd in their way: Python's rule.
        _ => ("", &**text, fill, missing / 2 + (missing & width & 1)),
    };
    let mut out = String::with_capacity(text.len() + missing * fill.len_utf8());
    out.push_str(sign);
    out.extend(std::iter::repeat_n(fill, before));
    out.push_str(body);
    out.extend(std::iter::repeat_n(fill, missing - before));
    made(out, meter)
}

fn single(arguments: &Arguments<'_, '_>, at: usize) -> Result<char, Fault> {
    let text = arguments.text(at)?;
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        (Some(character), None) => Ok(character),
        _ => Err(Fault::type_error("the fill is one character")),
    }
}

/// A range of characters, as bytes.
struct Window {
    start: usize,
    end: usize,
    /// Characters before it.
    before: usize,
}

/// The window that the optional second and third argument name; none if it starts beyond the end.
fn window(text: &str, arguments: &Arguments<'_, '_>) -> Result<Option<Window>, Fault> {
    let index = |at: usize| match arguments.given(at) {
        None => Ok(None),
        Some(_) => arguments.int(at).map(Some),
    };
    let (start, end) = (index(1)?, index(2)?);
    if start.is_none() && end.is_none() {
        return Ok(Some(Window {
            start: 0,
            end: text.len(),
            before: 0,
        }));
    }
    let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    let clamp = |place: i64| {
        let place = if place < 0 {
            place.saturating_add(length).max(0)
        } else {
            place
        };
        usize::try_from(place).unwrap_or(usize::MAX)
    };
    let start = clamp(start.unwrap_or(0));
    let end = clamp(end.unwrap_or(length).min(length));
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if start > length || start > end {
        return Ok(None);
    }
    Ok(Some(Window {
        start: byte_of(text, start),
        end: byte_of(text, end),
        before: start,
    }))
}

/// The byte at which a character starts.
pub(crate) fn byte_of(text: &str, place: usize) -> usize {
    text.char_indices()
        .nth(place)
        .map_or(text.len(), |(at, _)| at)
}

fn search<'a>(
    method: Method,
    text: &Text<'a>,
    arguments: &Arguments<'_, 'a>,
) -> Result<Value<'a>, Fault> {
    let needle = arguments.text(0)?;
    let window = window(text, arguments)?;
    if method == Method::Count {
        let count = window.map_or(0, |w| count(&text[w.start..w.end], needle));
        return Ok(Value::Int(i64::try_from(count).unwrap_or(i64::MAX)));
    }
    let last = matches!(method, Method::RFind | Method::RIndex);
    let place = window.and_then(|w| {
        let within = &text[w.start..w.end];
        let at = if last {
            within.rfind(&**needle)
        } else {
            within.find(&**needle)
        }?;
        i64::try_from(w.before + within[..at].chars().count()).ok()
    });
    match (place, method) {
        (Some(place), _) => Ok(Value::Int(place)),
        (None, Method::Find | Method::RFind) => Ok(Value::Int(-1)),
        (None, _) => Err(Fault::value_error(format!(
            "the text has no {}",
            Value::str(needle).short_repr()
        ))),
    }
}

fn count(text: &str, needle: &str) -> usize {
    if needle.is_empty() {
        return text.chars().count() + 1;
    }
    text.matches(needle).count()
}

fn affix<'a>(
    method: Method,
    text: &Text<'a>,
    arguments: &Arguments<'_, 'a>,
) -> Result<Value<'a>, Fault> {
    let window = window(text, arguments)?;
    let fits = |affix: &str| {
        window.as_ref().is_some_and(|w| {
            let within = &text[w.start..w.end];
            if method == Method::StartsWith {
                within.starts_with(affix)
            } else {
                within.ends_with(affix)
            }
        })
    };
    let found = match arguments.need(0)? {
        Value::Str(affix) => fits(affix),
        Value::Tuple(affixes) => {
            let mut found = false;
            for affix in affixes.iter() {
                match &affix {
                    Value::Str(affix) if fits(affix) => {
                        found = true;
                        break;
                    }
                    Value::Str(_) => {}
                    other => return Err(arguments.wrong("texts", other)),
                }
            }
            found
        }
        other => return Err(arguments.wrong("a text or a tuple of texts", other)),
    };
    Ok(Value::Bool(found))
}

fn remove<'a>(
    method: Method,
    text: &Text<'a>,
    arguments: &Arguments<'_, 'a>,
    meter: &mut Meter,
) -> Result<Value<'a>, Fault> {
    let affix = arguments.text(0)?;
    if method == Method::RemovePrefix && text.starts_with(&**affix) {
        return cut(text, affix.len(), text.len(), meter);
    }
    if method == Method::RemoveSuffix && text.ends_with(&**affix) {
        return cut(text, 0, text.len() - affix.len(), meter);
    }
    Ok(Value::Str(text.clone()))
}

fn strip<'a>(
    method: Method,
    text: &Text<'a>,
    arguments: &Arguments<'_, 'a>,
    meter: &mut Meter,
) -> Result<Value<'a>, Fault> {
    let chosen: Option<Vec<char>> = match arguments.given(0) {
        None => None,
        Some(_) => {
            let chosen = arguments.text(0)?;
            meter.work(chosen.len())?;
            Some(chosen.chars().collect())
        }
    };
    if let Some(chosen) = &chosen {
        // Each character may be compared with each of those to strip.
        meter.work((text.len() / 32).saturating_mul(chosen.len()))?;
    }
    let unwanted = |c: char| match &chosen {
        None => unicode::is_space(c),
        Some(chosen) => chosen.contains(&c),
    };
    let mut kept: &str = text;
    let mut start = 0;
    if method != Method::RStrip {
        let trimmed = kept.trim_start_matches(unwanted);
        start = kept.len() - trimmed.len();
        kept = trimmed;
    }
    if method != Method::LStrip {
        kept = kept.trim_end_matches(unwanted);
    }
    cut(text, start, start + kept.len(), meter)
}

fn partition<'a>(
    method: Method,
    text: &Text<'a>,
    arguments: &Arguments<'_, 'a>,
    meter: &mut Meter,
) -> Result<Value<'a>, Fault> {
    let separator = arguments.text(0)?;
    if separator.is_empty() {
        return Err(Fault::value_error("the separator is empty"));
    }
    let last = method == Method::RPartition;
    let at = if last {
        text.rfind(&**separator)
    } else {
        text.find(&**separator)
    };
    meter.elements(3)?;
    let whole = Value::Str(text.clone());
    let parts = match at {
        Some(at) => vec![
            cut(text, 0, at, meter)?,
            Value::Str(separator.clone()),
            cut(text, at + separator.len(), text.len(), meter)?,
        ],
        None if last => vec![Value::str(""), Value::str(""), whole],
        None => vec![whole, Value::str(""), Value::str("")],
    };
    Ok(Value::tuple(parts))
}

/// Byte ranges of the parts.
type Ranges = Vec<(usize, usize)>;

fn split<'a>(
    method: Method,
    text: &Text<'a>,
    arguments: &Arguments<'_, 'a>,
    meter: &mut Meter,
) -> Result<Value<'a>, Fault> {
    let most = match arguments.get(1) {
        None => usize::MAX,
        Some(_) => usize::try_from(arguments.int(1)?).unwrap_or(usize::MAX),
    };
    let last = method == Method::RSplit;
    let ranges = match arguments.given(0) {
        None => split_spaces(text, most, last, meter)?,
        Some(_) => {
            let separator = arguments.text(0)?;
            if separator.is_empty() {
                return Err(Fault::value_error("the separator is empty"));
            }
            split_by(text, separator, most, last, meter)?
        }
    };
    parts(text, &ranges, meter)
}

fn parts<'a>(text: &Text<'a>, ranges: &Ranges, meter: &mut Meter) -> Result<Value<'a>, Fault> {
    let items: Result<Vec<Value<'a>>, Fault> = ranges
        .iter()
        .map(|&(start, end)| cut(text, start, end, meter))
        .collect();
    Ok(Value::list(items?))
}

fn split_by(
    text: &str,
    separator: &str,
    most: usize,
    last: bool,
    meter: &mut Meter,
) -> Result<Ranges, Fault> {
    let mut cuts: Vec<usize> = if last {
        text.rmatch_indices(separator)
            .take(most)
            .map(|(at, _)| at)
            .collect()
    } else {
        text.match_indices(separator)
            .take(most)
            .map(|(at, _)| at)
            .collect()
    };
    if last {
        cuts.reverse();
    }
    meter.elements(cuts.len() + 1)?;
    let mut ranges = Ranges::with_capacity(cuts.len() + 1);
    let mut start = 0;
    for at in cuts {
        ranges.push((start, at));
        start = at + separator.len();
    }
    ranges.push((start, text.len()));
    Ok(ranges)
}

/// Splits at runs of space; the part that is not split any more keeps its inner space.
fn split_spaces(text: &str, most: usize, last: bool, meter: &mut Meter) -> Result<Ranges, Fault> {
    let words: Ranges = words(text);
    meter.elements(words.len())?;
    if words.len() <= most {
        return Ok(words);
    }
    if last {
        // What stays in one piece keeps the space before it.
        let kept = words.len() - most;
        let mut ranges = vec![(0, words[kept - 1].1)];
        ranges.extend_from_slice(&words[kept..]);
        return Ok(ranges);
    }
    // What stays in one piece keeps the space after it.
    let mut ranges = words[..most].to_vec();
    ranges.push((words[most].0, text.len()));
    Ok(ranges)
}

fn words(text: &str) -> Ranges {
    let mut words = Ranges::new();
    let mut start = None;
    for (at, character) in text.char_indices() {
        match (unicode::is_space(character), start) {
            (false, None) => start = Some(at),
            (true, Some(begun)) => {
                words.push((begun, at));
                start = None;
            }
            _ => {}
        }
    }
    words.extend(start.map(|begun| (begun, text.len())));
    words
}

fn split_lines<'a>(
    text: &Text<'a>,
    arguments: &Arguments<'_, 'a>,
    meter: &mut Meter,
) -> Result<Value<'a>, Fault> {
    let keep = arguments.get(0).is_some_and(Value::is_truthy);
    let mut ranges = Ranges::new();
    let mut start = 0;
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        if !is_line_break(character) {
            continue;
        }
        let mut end = at + character.len_utf8();
        if character == '\r' && characters.next_if(|(_, next)| *next == '\n').is_some() {
            end += 1;
        }
        ranges.push((start, if keep { end } else { at }));
        start = end;
    }
    if start < text.len() {
        ranges.push((start, text.len()));
    }
    meter.elements(ranges.len())?;
    parts(text, &ranges, meter)
}

fn is_line_break(character: char) -> bool {
    matches!(
        character,
        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

fn join<'a>(
    text: &Text<'a>,
    arguments: &Arguments<'_, 'a>,
    meter: &mut Meter,
) -> Result<Value<'a>, Fault> {
    let mut out = String::new();
    for (index, item) in Items::of(arguments.need(0)?)?.enumerate() {
        let Value::Str(item) = &item else {
            return Err(arguments.wrong("texts", &item));
        };
        meter.work(1)?;
        meter.length((out.len() + text.len() + item.len()) / 4)?;
        if index > 0 {
            out.push_str(text);
        }
        out.push_str(item);
    }
    made(out, meter)
}

fn replace<'a>(
    text: &Text<'a>,
    arguments: &Arguments<'_, 'a>,
    meter: &mut Meter,
) -> Result<Value<'a>, Fault> {
    let (old, new) = (arguments.text(0)?, arguments.text(1)?);
    let most = match arguments.get(2) {
        None => usize::MAX,
        Some(_) => usize::try_from(arguments.int(2)?).unwrap_or(usize::MAX),
    };
    let found = count(text, old).min(most);
    if found == 0 {
        return Ok(Value::Str(text.clone()));
    }
    let grown = found.saturating_mul(new.len().saturating_sub(old.len()));
    meter.length(text.len().saturating_add(grown) / 4)?;
    made(text.replacen(&**old, new, found), meter)
}

fn expand_tabs<'a>(
    text: &Text<'a>,
    arguments: &Arguments<'_, 'a>,
    meter: &mut Meter,
) -> Result<Value<'a>, Fault> {
    let size = match arguments.get(0) {
        None => 8,
        Some(_) => usize::try_from(arguments.int(0)?.max(0)).unwrap_or(usize::MAX),
    };
    let mut out = String::with_capacity(text.len());
    let mut column = 0;
    for character in text.chars() {
        match character {
            '\t' if size == 0 => {}
            '\t' => {
                let spaces = size - column % size;
                meter.length(out.len().saturating_add(spaces) / 4)?;
                out.extend(std::iter::repeat_n(' ', spaces));
                column += spaces;
            }
            '\n' | '\r' => {
                out.push(character);
                column = 0;
            }
            other => {
                out.push(other);
                column += 1;
            }
        }
    }
    made(out, meter)
}

/// The methods that ask whether a text is something; none if this is no such method.
fn test(method: Method, text: &str) -> Option<bool> {
    let all = |test: fn(char) -> bool| !text.is_empty() && text.chars().all(test);
    Some(match method {
        Method::IsAlnum => all(char::is_alphanumeric),
        Method::IsAlpha => all(char::is_alphabetic),
        Method::IsAscii => text.is_ascii(),
        Method::IsDecimal => all(unicode::is_decimal),
        Method::IsDigit => all(unicode::is_digit),
        Method::IsIdentifier => is_identifier(text),
        Method::IsLower => is_case(text, char::is_lowercase),
        Method::IsNumeric => all(char::is_numeric),
        Method::IsPrintable => text.chars().all(unicode::is_printable),
        Method::IsSpace => all(unicode::is_space),
        Method::IsTitle => is_title(text),
        Method::IsUpper => is_case(text, char::is_uppercase),
        _ => return None,
    })
}

fn is_case(text: &str, wanted: fn(char) -> bool) -> bool {
    let mut cased = text.chars().filter(|c| unicode::is_cased(*c)).peekable();
    cased.peek().is_some() && cased.all(wanted)
}

fn is_identifier(text: &str) -> bool {
    let mut characters = text.chars();
    let first = characters.next();
    first.is_some_and(|c| c.is_alphabetic() || c == '_')
        && characters.all(|c| c.is_alphanumeric() || c == '_')
}

/// Upper case where no cased letter precedes, lower case elsewhere, and one of them at least.
fn is_title(text: &str) -> bool {
    let mut found = false;
    let mut inside = false;
    for character in text.chars() {
        if character.is_uppercase() {
            if inside {
                return false;
            }
            found = true;
            inside = true;
        } else if character.is_lowercase() {
            if !inside {
                return false;
            }
            found = true;
        } else {
            inside = false;
        }
    }
    found
}
