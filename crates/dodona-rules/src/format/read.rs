//! Parsing a rule file. Reports every problem with its position.

use std::ops::Range;

use dodona_plugin::reading::{Reading, nearest, table_to_json};
use dodona_proto::{PluginName, RULE_TRIGGERS, Surface};
use semver::Version;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::actions;
use super::limits::{Cooldown, Limits, OnError, OncePer};
use super::rule::{Condition, ID_LENGTH, Rule, Spot, Spots};
use super::test::{Expect, RuleTest};
use super::trigger::Trigger;
use crate::Problem;

/// A value with its position.
pub(super) type Found<'v, 't> = &'v Spanned<DeValue<'t>>;

const SECTIONS: &[&str] = &["rule", "condition", "action", "actions", "limits", "tests"];

const HEAD: &[&str] = &[
    "id",
    "name",
    "description",
    "version",
    "trigger",
    "priority",
    "enabled",
    "core",
    "plugin_id",
    "surfaces",
];

/// The surfaces a rule may name.
const SURFACES: &[(&str, Surface)] = &[
    ("cli", Surface::Cli),
    ("rpc", Surface::Rpc),
    ("web", Surface::Web),
    ("mcp", Surface::Mcp),
    ("internal", Surface::Internal),
];

/// Parses a rule; `path` is shown in problems. If there is no rule, the problems contain an error.
pub fn parse(path: &str, text: &str) -> (Option<Rule>, Vec<Problem>) {
    let mut reading = Reading::new(path, text);
    let rule = reading.parse().and_then(|whole| rule(&mut reading, &whole));
    let problems: Vec<Problem> = (reading.into_problems().into_iter())
        .map(Problem::error)
        .collect();
    (rule.filter(|_| problems.is_empty()), problems)
}

fn rule<'t>(reading: &mut Reading<'t>, whole: &DeTable<'t>) -> Option<Rule> {
    strangers(reading, whole, SECTIONS);
    let mut spots = Spots::default();
    // Each section is parsed even if another has errors, so that all problems are reported at once.
    let head = head(reading, whole, &mut spots);
    let condition = condition(reading, whole, &mut spots);
    let trigger = head.as_ref().map(|head| head.trigger);
    let actions = actions::read(reading, whole, trigger, &mut spots);
    let limits = limits(reading, whole, trigger, OnError::default_for(&actions));
    let tests = tests(reading, whole);
    let head = head?;
    if let Some(span) = head.surfaces_span.clone() {
        if !head.trigger.is_of_tools() {
            let message = "`surfaces` is only allowed for `on_tool_call`, `on_tool_complete` and `on_tool_failure`";
            reading.fault(span, message);
        } else if OnError::default_for(&actions) == OnError::Closed {
            let message = "`deny` and `require_approval` apply to calls from every surface";
            reading.fault_with(span, message, "remove `surfaces`");
        }
    }
    Some(Rule {
        id: head.id,
        name: head.name,
        description: head.description,
        version: head.version,
        trigger: head.trigger,
        priority: head.priority,
        enabled: head.enabled,
        core: head.core,
        plugin_id: head.plugin_id,
        surfaces: head.surfaces,
        condition: condition?,
        actions,
        limits,
        tests,
        spots,
    })
}

struct Head {
    id: String,
    name: String,
    description: String,
    version: Version,
    trigger: Trigger,
    priority: u16,
    enabled: bool,
    core: bool,
    plugin_id: Option<PluginName>,
    surfaces: Vec<Surface>,
    surfaces_span: Option<Range<usize>>,
}

fn head<'t>(reading: &mut Reading<'t>, whole: &DeTable<'t>, spots: &mut Spots) -> Option<Head> {
    let (table, span) = section(reading, whole, "rule")?;
    strangers(reading, table, HEAD);
    let id = needed(reading, table, "rule", "id", &span).and_then(|found| {
        spots.id = spot(reading, found.span());
        id(reading, found)
    });
    let trigger =
        needed(reading, table, "rule", "trigger", &span).and_then(|found| trigger(reading, found));
    let name = part(table, "name").and_then(|found| reading.text("name", found));
    let description = part(table, "description").and_then(|found| plain(reading, found));
    let version = part(table, "version").and_then(|found| version(reading, found));
    let priority = part(table, "priority").and_then(|found| priority(reading, found));
    let enabled = part(table, "enabled").and_then(|found| reading.boolean("enabled", found));
    let core = part(table, "core").and_then(|found| {
        spots.core = spot(reading, found.span());
        reading.boolean("core", found)
    });
    if let (Some(true), Some(false)) = (core, enabled) {
        let message = "a core rule is always enabled; `enabled = false` is not allowed";
        reading.fault_with(spots.core.span.clone(), message, "remove one of the two");
    }
    let plugin_id = part(table, "plugin_id").and_then(|found| {
        spots.plugin_id = spot(reading, found.span());
        plugin(reading, found)
    });
    let surfaces = part(table, "surfaces");
    let surfaces_span = surfaces.map(Spanned::span);
    let surfaces = surfaces.map(|found| surfaces_of(reading, found));
    let (id, trigger) = (id?, trigger?);
    Some(Head {
        surfaces: surfaces.unwrap_or_default(),
        surfaces_span,
        name: name.unwrap_or_else(|| id.clone()),
        id,
        description: description.unwrap_or_default(),
        version: version.unwrap_or(Version::new(1, 0, 0)),
        trigger,
        priority: priority.unwrap_or(100),
        enabled: enabled.unwrap_or(true),
        core: core.unwrap_or(false),
        plugin_id,
    })
}

fn surfaces_of(reading: &mut Reading<'_>, found: Found<'_, '_>) -> Vec<Surface> {
    let Some(list) = found.get_ref().as_array() else {
        reading.expected("surfaces", "a list such as `[\"cli\", \"rpc\"]`", found);
        return Vec::new();
    };
    list.iter()
        .filter_map(|one| word(reading, "surfaces", one, SURFACES))
        .collect()
}

fn id(reading: &mut Reading<'_>, found: Found<'_, '_>) -> Option<String> {
    let id = reading.text("id", found)?;
    let kebab = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !id.chars().all(kebab) {
        let message = "invalid `id`: only a-z, 0-9 and `-` are allowed";
        let better: String = id.to_lowercase().replace([' ', '_', '.'], "-");
        let better: String = better.chars().filter(|c| kebab(*c)).collect();
        if better.is_empty() {
            reading.fault(found.span(), message)
        } else {
            reading.fault_with(found.span(), message, format!("such as `{better}`"))
        }
        return None;
    }
    if id.len() > ID_LENGTH {
        let message = format!("`id` has {} bytes; {ID_LENGTH} are allowed", id.len());
        reading.fault(found.span(), message);
        return None;
    }
    Some(id)
}

fn trigger(reading: &mut Reading<'_>, found: Found<'_, '_>) -> Option<Trigger> {
    let name = reading.text("trigger", found)?;
    if let Ok(trigger) = name.parse() {
        return Some(trigger);
    }
    let hint = match nearest(&name, RULE_TRIGGERS) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there is {}", RULE_TRIGGERS.join(", ")),
    };
    reading.fault_with(found.span(), format!("unknown trigger `{name}`"), hint);
    None
}

fn version(reading: &mut Reading<'_>, found: Found<'_, '_>) -> Option<Version> {
    let text = reading.text("version", found)?;
    let version = Version::parse(&text);
    version
        .map_err(|error| {
            let message = format!("invalid semantic version: {error}");
            reading.fault_with(found.span(), message, "use a version such as `1.0.0`");
        })
        .ok()
}

fn priority(reading: &mut Reading<'_>, found: Found<'_, '_>) -> Option<u16> {
    let what = "a whole number from 1 to 1000";
    let DeValue::Integer(number) = found.get_ref() else {
        reading.expected("priority", what, found);
        return None;
    };
    let number = i64::from_str_radix(number.as_str(), number.radix()).ok();
    let priority = number
        .and_then(|number| u16::try_from(number).ok())
        .filter(|number| (1..=1000).contains(number));
    if priority.is_none() {
        reading.fault(found.span(), format!("`priority` must be {what}"));
    }
    priority
}

fn plugin(reading: &mut Reading<'_>, found: Found<'_, '_>) -> Option<PluginName> {
    let name = reading.text("plugin_id", found)?;
    PluginName::new(&name)
        .map_err(|error| reading.fault(found.span(), error.to_string()))
        .ok()
}

fn condition<'t>(
    reading: &mut Reading<'t>,
    whole: &DeTable<'t>,
    spots: &mut Spots,
) -> Option<Condition> {
    let (table, span) = section(reading, whole, "condition")?;
    strangers(reading, table, &["expression", "script"]);
    let (expression, script) = (part(table, "expression"), part(table, "script"));
    match (expression, script) {
        (Some(found), None) => {
            spots.condition = spot(reading, found.span());
            let text = reading.text("expression", found)?;
            Some(Condition::Expression(text))
        }
        (None, Some(found)) => {
            spots.condition = spot(reading, found.span());
            let text = reading.text("script", found)?;
            Some(Condition::Script(text))
        }
        (Some(_), Some(second)) => {
            let message = "use either `expression` or `script` in `[condition]`, not both";
            reading.fault_with(second.span(), message, "remove one of the two");
            None
        }
        (None, None) => {
            let message = "`[condition]` needs an `expression` or a `script`";
            let hint = "`expression = \"True\"` always holds";
            reading.fault_with(span, message, hint);
            None
        }
    }
}

fn limits<'t>(
    reading: &mut Reading<'t>,
    whole: &DeTable<'t>,
    trigger: Option<Trigger>,
    on_error: OnError,
) -> Limits {
    let mut limits = Limits {
        on_error,
        ..Limits::default()
    };
    let Some(found) = part(whole, "limits") else {
        return limits;
    };
    let Some(table) = reading.table("limits", found) else {
        return limits;
    };
    strangers(reading, table, &["cooldown", "once_per", "on_error"]);
    if let Some(found) = part(table, "cooldown")
        && let Some(text) = reading.text("cooldown", found)
    {
        match Cooldown::parse(&text) {
            Ok(cooldown) => limits.cooldown = Some(cooldown),
            Err(why) => reading.fault(found.span(), why),
        }
    }
    limits.once_per = part(table, "once_per").and_then(|found| {
        let known = [("query", OncePer::Query), ("session", OncePer::Session)];
        word(reading, "once_per", found, &known)
    });
    if let Some(found) = part(table, "on_error") {
        let known = [("open", OnError::Open), ("closed", OnError::Closed)];
        let said = word(reading, "on_error", found, &known);
        limits.on_error = said.unwrap_or(on_error);
        if trigger.is_some_and(|trigger| trigger != Trigger::OnToolCall) {
            let message = "`on_error` is only allowed for `on_tool_call`";
            reading.fault(found.span(), message);
        }
    }
    limits
}

fn tests<'t>(reading: &mut Reading<'t>, whole: &DeTable<'t>) -> Vec<RuleTest> {
    let Some(found) = part(whole, "tests") else {
        return Vec::new();
    };
    let Some(list) = found.get_ref().as_array() else {
        reading.expected("tests", "written as `[[tests]]`", found);
        return Vec::new();
    };
    let tests = list.iter().enumerate();
    tests
        .filter_map(|(index, found)| test(reading, found, index + 1))
        .collect()
}

fn test<'t>(reading: &mut Reading<'t>, found: Found<'_, 't>, number: usize) -> Option<RuleTest> {
    let table = reading.table("tests", found)?;
    strangers(reading, table, &["name", "context", "settings", "expect"]);
    let name = part(table, "name").and_then(|found| reading.text("name", found));
    let context = part(table, "context").and_then(|found| object(reading, "context", found));
    let settings = part(table, "settings").and_then(|found| object(reading, "settings", found));
    let expect = match part(table, "expect") {
        Some(found) => expect(reading, found),
        None => {
            let message = "a test needs an expectation, such as `expect = { fired = true }`";
            reading.fault(found.span(), message);
            None
        }
    };
    Some(RuleTest {
        name: name.unwrap_or_else(|| format!("test {number}")),
        context: context.unwrap_or_default(),
        settings: settings.unwrap_or_default(),
        expect: expect?,
        at: spot(reading, found.span()),
    })
}

fn expect<'t>(reading: &mut Reading<'t>, found: Found<'_, 't>) -> Option<Expect> {
    let table = reading.table("expect", found)?;
    strangers(reading, table, &["fired", "message", "event", "state"]);
    let fired = match part(table, "fired") {
        Some(found) => reading.boolean("fired", found),
        None => {
            reading.fault(found.span(), "`expect` says `fired = true`, or `false`");
            None
        }
    };
    let message = part(table, "message").and_then(|found| reading.text("message", found));
    let event = part(table, "event").and_then(|found| reading.text("event", found));
    let state = part(table, "state").and_then(|found| object(reading, "state", found));
    let fired = fired?;
    if !fired && (message.is_some() || event.is_some() || state.is_some()) {
        let message = "with `fired = false` no message, event or state can be expected";
        reading.fault(found.span(), message);
    }
    Some(Expect {
        fired,
        message,
        event,
        state: state.unwrap_or_default(),
    })
}

fn section<'v, 't>(
    reading: &mut Reading<'t>,
    whole: &'v DeTable<'t>,
    key: &str,
) -> Option<(&'v DeTable<'t>, Range<usize>)> {
    match part(whole, key) {
        Some(found) => Some((reading.table(key, found)?, found.span())),
        None => {
            reading.fault(0..0, format!("missing table `[{key}]`"));
            None
        }
    }
}

pub(super) fn needed<'v, 't>(
    reading: &mut Reading<'t>,
    table: &'v DeTable<'t>,
    name: &str,
    key: &str,
    span: &Range<usize>,
) -> Option<Found<'v, 't>> {
    let found = part(table, key);
    if found.is_none() {
        reading.fault(span.clone(), format!("`[{name}]` has no `{key}`"));
    }
    found
}

/// The value of a key.
pub(super) fn part<'v, 't>(table: &'v DeTable<'t>, key: &str) -> Option<Found<'v, 't>> {
    let mut entries = table.iter();
    let found = entries.find(|(known, _)| known.get_ref() == key);
    found.map(|(_, value)| value)
}

pub(super) fn strangers<'t>(reading: &mut Reading<'t>, table: &DeTable<'t>, known: &[&str]) {
    for (key, _) in table.iter() {
        if !known.contains(&&**key.get_ref()) {
            reading.unknown(key, known);
        }
    }
}

/// One of a list of words.
pub(super) fn word<T: Copy>(
    reading: &mut Reading<'_>,
    key: &str,
    found: Found<'_, '_>,
    known: &[(&str, T)],
) -> Option<T> {
    let word = reading.text(key, found)?;
    if let Some((_, value)) = known.iter().find(|(name, _)| *name == word) {
        return Some(*value);
    }
    let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
    let hint = match nearest(&word, names.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there is {}", names.join(", ")),
    };
    reading.fault_with(found.span(), format!("`{key}` cannot be `{word}`"), hint);
    None
}

/// One of the names of a type.
pub(super) fn known_word<T: DeserializeOwned + Copy>(
    reading: &mut Reading<'_>,
    key: &str,
    found: Found<'_, '_>,
    words: &[&'static str],
) -> Option<T> {
    let known: Vec<(&str, T)> = (words.iter())
        .filter_map(|name| Some((*name, serde_json::from_value(Value::from(*name)).ok()?)))
        .collect();
    word(reading, key, found, &known)
}

fn plain(reading: &mut Reading<'_>, found: Found<'_, '_>) -> Option<String> {
    let text = found.get_ref().as_str().map(str::to_owned);
    if text.is_none() {
        reading.expected("description", "a text", found);
    }
    text
}

/// A table as JSON.
fn object<'t>(
    reading: &mut Reading<'t>,
    key: &str,
    found: Found<'_, 't>,
) -> Option<Map<String, Value>> {
    let table = reading.table(key, found)?;
    table_to_json(table)
        .map_err(|why| reading.fault(found.span(), format!("in `{key}`, {why}")))
        .ok()
}

/// The position of a value.
pub(super) fn spot(reading: &Reading<'_>, span: Range<usize>) -> Spot {
    let place = reading.place(span.clone());
    Spot {
        span,
        line: place.line,
        column: place.column,
        text: place.text,
    }
}

/// Maps a position inside a string to the file. For a string with escapes, returns the whole value.
pub(crate) fn within(file: &str, spot: &Spot, text: &str, inner: Range<usize>) -> Range<usize> {
    let raw = file.get(spot.span.clone());
    match raw.and_then(|raw| raw.find(text)) {
        Some(at) => spot.span.start + at + inner.start..spot.span.start + at + inner.end,
        None => spot.span.clone(),
    }
}
