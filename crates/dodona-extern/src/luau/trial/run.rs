//! Running a plugin's tests.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dodona_plugin::reading::Problem;
use dodona_plugin::{BoxFuture, Manifest};
use dodona_proto::HookPoint;
use dodona_script::{Entry, Request};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::case::{self, Canned, CannedResponse, Case, Expect};
use super::scratch::Scratch;
use super::{fits, program};
use crate::database::{DbSession, Wanted};
use crate::declare::{self, HookSpec};
use crate::luau::hook::tidied;
use crate::luau::method::in_transaction;
use crate::luau::program::{Answers, Ask, BRIEF, METHOD, Program, RunError};

/// How one test went.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tested {
    /// The file it stands in.
    pub file: String,
    /// Its name.
    pub name: String,
    /// How it went.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// How a test went.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// As it should.
    Passed,
    /// Not as it should.
    Failed {
        /// What is different.
        why: Vec<String>,
    },
}

/// Runs the tests of a directory, one after the other.
///
/// # Errors
///
/// If there is no script, or it cannot be loaded.
pub async fn test(
    directory: &Path,
    manifest: &Manifest,
) -> Result<(Vec<Tested>, Vec<Problem>), Vec<Problem>> {
    let (cases, mut problems) = case::read(directory);
    let mut tested = Vec::new();
    for (file, case) in cases {
        // Each has a program of its own, so that one's log is not another's.
        let Some(program) = program(directory, manifest)? else {
            let shown = directory.join("manifest.toml").display().to_string();
            problems.push(Problem::of_file(
                shown,
                "there is no `[script]` to be tested",
            ));
            break;
        };
        let name = case.name.clone();
        let why = match entries(&program).await {
            Ok(entries) => with_database(directory, &program, &entries, manifest, case).await,
            Err(error) => vec![error.to_string()],
        };
        let verdict = match why.is_empty() {
            true => Verdict::Passed,
            false => Verdict::Failed { why },
        };
        tested.push(Tested {
            file,
            name,
            verdict,
        });
    }
    Ok((tested, problems))
}

async fn entries(program: &Arc<Program>) -> Result<Vec<Entry>, RunError> {
    let program = Arc::clone(program);
    let loaded = tokio::task::spawn_blocking(move || program.declared()).await;
    loaded.unwrap_or(Err(RunError::Panicked))
}

/// Runs one test with a database of its own.
async fn with_database(
    directory: &Path,
    program: &Arc<Program>,
    entries: &[Entry],
    manifest: &Manifest,
    case: Case,
) -> Vec<String> {
    let scratch = match Scratch::create(directory, &case.sql).await {
        Ok(scratch) => scratch,
        Err(why) => return vec![why],
    };
    let (query, rows) = (case.expect.query.clone(), case.expect.rows.clone());
    let mut why = one(program, entries, manifest, case, scratch.session()).await;
    match query {
        Some(query) => match scratch.run(&query, Wanted::Rows).await {
            Ok(found) => differs(&mut why, "rows", rows.map(Value::Array).as_ref(), &found),
            Err(error) => why.push(format!("`{query}`: {error}")),
        },
        None if rows.is_some() => why.push("`rows` needs a `query`".to_owned()),
        None => {}
    }
    scratch.remove().await;
    why
}

/// Runs one test and returns what is different.
async fn one(
    program: &Arc<Program>,
    entries: &[Entry],
    manifest: &Manifest,
    case: Case,
    db: DbSession,
) -> Vec<String> {
    let target = match Target::find(entries, &case) {
        Ok(target) => target,
        Err(why) => return vec![why],
    };
    let mut settings = program.facts.settings.clone();
    settings.extend(case.settings.clone());
    let info = json!({
        "settings": settings,
        "method": case.method.as_ref().map(|verb| format!("{}.{verb}", manifest.id)),
        "user": case.user.as_deref().unwrap_or("tester"),
        "surface": "internal",
        "path": manifest.id,
        "time": 0,
    });
    let world = World {
        db,
        inner: Mutex::new(Inner {
            state: case.state.clone(),
            calls: case.calls.iter().cloned().collect(),
            responses: case.http.iter().cloned().collect(),
            emitted: Vec::new(),
            published: Vec::new(),
            wrong: Vec::new(),
        }),
    };
    let (limits, given) = match target.kind {
        "method" => (METHOD, case.params),
        "event" => (METHOD, case.event),
        _ => (BRIEF, case.payload),
    };
    let ask = Ask {
        entry: target.entry,
        kind: target.kind,
        part: case.name,
        arguments: vec![info, given],
        limits,
    };
    let outcome = program.run(ask, &world).await;
    let inner = world
        .inner
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    let mut why = inner.wrong.clone();
    compare(&mut why, &case.expect, outcome, target.point);
    compare_world(&mut why, &case.expect, &inner, program);
    why
}

/// What a test is about.
struct Target {
    entry: usize,
    kind: &'static str,
    point: Option<HookPoint>,
}

impl Target {
    fn find(entries: &[Entry], case: &Case) -> Result<Self, String> {
        let (kind, other, wanted) = match (&case.method, &case.hook, &case.on_event) {
            (Some(method), None, None) => ("method", "name", method),
            (None, Some(hook), None) => ("hook", "point", hook),
            (None, None, Some(prefix)) => ("event", "prefix", prefix),
            _ => return Err("a test has a `method`, a `hook` or an `on_event`".to_owned()),
        };
        let named = |entry: &&(usize, &Entry)| {
            let is = |field: &str| entry.1.spec[field] == wanted.as_str();
            entry.1.kind == kind && (is("name") || is(other))
        };
        let numbered: Vec<(usize, &Entry)> = entries.iter().enumerate().collect();
        let Some((entry, found)) = numbered.iter().find(named) else {
            return Err(format!("the script declares no {kind} `{wanted}`"));
        };
        let point = match kind {
            "hook" => Some(declare::read::<HookSpec>(&found.spec)?.point()?),
            _ => None,
        };
        Ok(Self {
            entry: *entry,
            kind,
            point,
        })
    }
}

fn compare(
    why: &mut Vec<String>,
    expect: &Expect,
    outcome: Result<Value, RunError>,
    point: Option<HookPoint>,
) {
    let value = match (outcome, &expect.error) {
        (Err(error), Some(words)) if error.to_string().contains(words.as_str()) => return,
        (Err(error), Some(words)) => {
            return why.push(format!("the error has no `{words}`: {error}"));
        }
        (Err(error), None) => return why.push(error.to_string()),
        (Ok(_), Some(words)) => return why.push(format!("there is no error with `{words}`")),
        (Ok(value), None) => value,
    };
    let Some(point) = point else {
        let result = match value {
            Value::Null => json!({}),
            result => result,
        };
        return differs(why, "result", expect.result.as_ref(), &result);
    };
    let answer = tidied(value, point);
    if let Err(wrong) = fits(point, &answer) {
        return why.push(wrong);
    }
    let edit = match &answer["edit"] {
        Value::Null => json!(false),
        edit => edit.clone(),
    };
    differs(why, "edit", expect.edit.as_ref(), &edit);
    let effects = match &answer["effects"] {
        Value::Null => json!([]),
        effects => effects.clone(),
    };
    differs(why, "effects", expect.effects.as_ref(), &effects);
}

fn compare_world(why: &mut Vec<String>, expect: &Expect, inner: &Inner, program: &Program) {
    let state = expect.state.clone().map(Value::Object);
    differs(
        why,
        "state",
        state.as_ref(),
        &Value::Object(inner.state.clone()),
    );
    let emitted = expect.emitted.clone().map(Value::Array);
    differs(why, "emitted", emitted.as_ref(), &json!(inner.emitted));
    let published = expect.published.clone().map(Value::Array);
    differs(
        why,
        "published",
        published.as_ref(),
        &json!(inner.published),
    );
    if let Some(left) = inner.responses.front() {
        why.push(format!("`{}` was not requested", left.url));
    }
    if let Some(left) = inner.calls.front() {
        why.push(format!("`{}` was not called", left.method));
    }
    if let Some(words) = &expect.log {
        let lines = program.log().last(usize::MAX);
        if !lines.iter().any(|line| line.text.contains(words.as_str())) {
            why.push(format!("no line of the log has `{words}`"));
        }
    }
}

fn differs(why: &mut Vec<String>, what: &str, expected: Option<&Value>, got: &Value) {
    if let Some(expected) = expected
        && expected != got
    {
        why.push(format!("{what}: expected {expected}, got {got}"));
    }
}

/// Everything around a script, as a test has it.
struct World {
    db: DbSession,
    inner: Mutex<Inner>,
}

struct Inner {
    state: Map<String, Value>,
    calls: VecDeque<Canned>,
    responses: VecDeque<CannedResponse>,
    emitted: Vec<Value>,
    published: Vec<Value>,
    wrong: Vec<String>,
}

impl Answers for World {
    fn answer(&self, request: Request) -> BoxFuture<'_, Result<Value, String>> {
        Box::pin(async move {
            let mut arguments = request.arguments.into_iter();
            let (first, second) = (
                arguments.next().unwrap_or_default(),
                arguments.next().unwrap_or_default(),
            );
            if let Some(name) = request.name.strip_prefix("db.") {
                return self.db.answer(name, &first, &second).await;
            }
            if self.db.is_open().await {
                return Err(in_transaction(&request.name));
            }
            let mut inner = self.lock();
            let key = first.as_str().unwrap_or_default().to_owned();
            match request.name.as_str() {
                "call" => inner.call(&key, &second),
                "emit" => {
                    inner.emitted.push(first);
                    Ok(Value::Null)
                }
                "progress" => Ok(Value::Null),
                "has_scope" => Ok(json!(true)),
                "publish" => {
                    let event = json!({ "type": first, "payload": second });
                    inner.published.push(event);
                    Ok(Value::Null)
                }
                "http" => inner.respond(&first),
                "state.get" => Ok(inner.state.get(&key).cloned().unwrap_or_default()),
                "state.set" => {
                    inner.state.insert(key, second);
                    Ok(json!(1))
                }
                "state.delete" => Ok(json!(inner.state.remove(&key).is_some())),
                "state.list" => {
                    let all = inner.state.iter();
                    let all = all.filter(|(name, _)| name.starts_with(&key));
                    Ok(all
                        .map(|(name, value)| (name.clone(), value.clone()))
                        .collect())
                }
                other => Err(format!("there is no `{other}`")),
            }
        })
    }
}

impl World {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn respond(&mut self, request: &Value) -> Result<Value, String> {
        let url = request["url"].as_str().unwrap_or_default();
        let Some(canned) = self.responses.pop_front() else {
            let why = format!("`{url}` was requested, and no request is expected");
            self.wrong.push(why.clone());
            return Err(why);
        };
        let method = request["method"].as_str().unwrap_or("GET");
        let is_same = canned.url == url && canned.method.as_deref().is_none_or(|m| m == method);
        if !is_same {
            let why = format!("{method} `{url}` was requested instead of `{}`", canned.url);
            self.wrong.push(why.clone());
            return Err(why);
        }
        if let Some(error) = canned.error {
            return Err(error);
        }
        let body = canned.body.or(canned.json.as_ref().map(Value::to_string));
        let mut response = json!({
            "url": url,
            "status": canned.status.unwrap_or(200),
            "headers": canned.headers,
            "body": body.unwrap_or_default(),
        });
        if let Some(json) = canned.json {
            response["json"] = json;
        }
        Ok(response)
    }

    fn call(&mut self, method: &str, params: &Value) -> Result<Value, String> {
        let Some(canned) = self.calls.pop_front() else {
            let why = format!("`{method}` was called with {params}, and no call is expected");
            self.wrong.push(why.clone());
            return Err(why);
        };
        if canned.method != method {
            let why = format!("`{method}` was called instead of `{}`", canned.method);
            self.wrong.push(why.clone());
            return Err(why);
        }
        differs(
            &mut self.wrong,
            &format!("the parameters of `{method}`"),
            canned.params.as_ref(),
            params,
        );
        match canned.error {
            Some(error) => Err(error),
            None => Ok(canned.result.unwrap_or_else(|| json!({}))),
        }
    }
}
