//! A script that is loaded, says what it offers, and is then asked for one of those things.
//!
//! The script runs as a coroutine. Where it wants something of the program around it, the coroutine
//! yields a [`Request`]; the program does what it takes, however long that is, and resumes with the
//! answer. So a script that waits holds no thread, and dropping the instance ends it.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use mlua::chunk::ChunkMode;
use mlua::thread::ThreadStatus;
use mlua::{Error as LuaError, Function, IntoLuaMulti, Lua, MultiValue, Table, Thread, Value};
use serde_json::Value as Json;

use crate::budget::Budget;
use crate::error::{self, CHUNK, ErrorKind, ScriptError};
use crate::json::Reader;
use crate::limits::Limits;
use crate::machine;
use crate::node::{ARGUMENT_BYTES, plain_with};
use crate::script::Script;

/// How many things a script may declare.
const MOST_ENTRIES: usize = 256;

/// Makes a request pass through the coroutines that a script has of its own: it is for the program
/// around, not for whoever resumed the coroutine. The tag is known to nobody else.
const COROUTINES: &str = r#"
local TAG = ...
local pack, unpack, rawequal, error, type = table.pack, table.unpack, rawequal, error, type
local create, resume, yield = coroutine.create, coroutine.resume, coroutine.yield
local function through(co, ...)
    local got = pack(resume(co, ...))
    while got[1] and rawequal(got[2], TAG) do
        got = pack(resume(co, yield(unpack(got, 2, got.n))))
    end
    return got
end
function coroutine.resume(co, ...)
    local got = through(co, ...)
    return unpack(got, 1, got.n)
end
function coroutine.wrap(work)
    local co = create(work)
    return function(...)
        local got = through(co, ...)
        if got[1] then
            return unpack(got, 2, got.n)
        end
        error(got[2], 0)
    end
end
return function(name, ...)
    return yield(TAG, name, ...)
end
"#;

type Told = dyn Fn(&str, &[Json]) + Send + Sync;

/// What a program offers to its scripts: code of its own that makes it out of four functions.
///
/// The code runs before the script, outside of its limits, and is given: `declare(kind, spec, work)`,
/// which notes something that can be asked for; `request(name, …)`, which ends the script's turn and
/// answers whether it went well, and with what; `tell(name, …)`, which does not wait; the `constants`;
/// the metatable of lists; and null. What it sets as globals, the script can read.
#[derive(Debug)]
pub struct Api(Vec<u8>);

impl Api {
    /// Compiles it.
    ///
    /// # Errors
    ///
    /// If it is no script.
    pub fn compile(source: &str) -> Result<Self, ScriptError> {
        let bytecode = crate::vm::compile(source);
        bytecode
            .map(Self)
            .map_err(|error| ScriptError::from_lua(&error))
    }
}

/// Something that a script declared.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// What sort of thing it is, as the API calls it.
    pub kind: String,
    /// What the script says about it.
    pub spec: Json,
    /// Where the script says it.
    pub line: Option<usize>,
}

/// What a script wants of the program around it.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// What.
    pub name: String,
    /// With which arguments.
    pub arguments: Vec<Json>,
}

/// Where a script's turn ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// It is done, and this is its result.
    Done(Json),
    /// It wants something, and goes on with the answer.
    Wants(Request),
}

/// Ends an instance's work from another thread.
#[derive(Debug, Clone)]
pub struct Stopper(Arc<Budget>);

impl Stopper {
    /// Has the script end at its next step, for good.
    pub fn stop(&self) {
        self.0.stop();
    }
}

/// A loaded script.
pub struct Instance {
    lua: Lua,
    running: Option<Thread>,
    /// What marks a request.
    tag: Table,
    /// The metatable of lists.
    list: Table,
    /// The declared functions, by number.
    work: Table,
    notes: Arc<Notes>,
    budget: Arc<Budget>,
    result_bytes: usize,
    base_bytes: usize,
}

/// What was declared so far.
#[derive(Default)]
struct Notes {
    entries: Mutex<Vec<Entry>>,
    /// Set once the script is loaded.
    closed: AtomicBool,
}

impl std::fmt::Debug for Instance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Instance")
            .field("entries", &self.entries().len())
            .finish_non_exhaustive()
    }
}

impl Instance {
    /// Loads a script: runs it once, from its beginning to its end. It cannot want anything yet.
    ///
    /// # Errors
    ///
    /// If the script fails, reaches a limit or wants something.
    pub fn start(
        api: &Api,
        script: &Script,
        constants: &Json,
        told: Arc<Told>,
        limits: &Limits,
    ) -> Result<Self, ScriptError> {
        let made = Self::empty(api, constants, told);
        let mut instance = made.map_err(|error| ScriptError::from_lua(&error))?;
        let main = instance.main(script);
        let main = main.map_err(|error| ScriptError::from_lua(&error))?;
        let step = instance.begin(&main, &[], limits)?;
        instance.notes.closed.store(true, Relaxed);
        instance.running = None;
        match step {
            Step::Done(_) => Ok(instance),
            Step::Wants(request) => Err(ScriptError::new(
                ErrorKind::Runtime,
                format!(
                    "`{}` cannot be used while the script is loaded",
                    request.name
                ),
            )),
        }
    }

    fn empty(api: &Api, constants: &Json, told: Arc<Told>) -> Result<Self, LuaError> {
        let lua = machine::bare()?;
        let (tag, work) = (lua.create_table()?, lua.create_table()?);
        let list = lua.create_table()?;
        list.set("__metatable", false)?;
        list.set_readonly(true);
        let ours = format!("={}", error::PRELUDE);
        let request: Function = lua.load(COROUTINES).set_name(&*ours).call(&tag)?;
        let notes = Arc::new(Notes::default());
        let chunk = lua.load(&*api.0).set_name(&*ours);
        let chunk = chunk.set_mode(ChunkMode::Binary).into_function()?;
        chunk.call::<()>((
            declare(&lua, &notes, &work, &list)?,
            request,
            tell(&lua, told, &list)?,
            plain_with(&lua, constants, Some(&list))?,
            &list,
            Value::NULL,
        ))?;
        let budget = machine::seal(&lua)?;
        Ok(Self {
            base_bytes: lua.used_memory(),
            lua,
            running: None,
            tag,
            list,
            work,
            notes,
            budget,
            result_bytes: 0,
        })
    }

    /// The script's own code, in an environment of its own.
    fn main(&self, script: &Script) -> Result<Function, LuaError> {
        let chunk = self.lua.load(script.bytecode());
        let chunk = chunk.set_name(format!("={CHUNK}"));
        let main = chunk.set_mode(ChunkMode::Binary).into_function()?;
        let environment = self.lua.create_table()?;
        environment.set_metatable(Some(machine::shared(&self.lua)?))?;
        environment.set_safeenv(true);
        main.set_environment(environment)?;
        Ok(main)
    }

    /// What the script declared, in order.
    pub fn entries(&self) -> Vec<Entry> {
        let entries = self.notes.entries.lock();
        entries.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends it from elsewhere.
    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.budget))
    }

    /// Asks for something that the script declared, by its number from 0.
    ///
    /// # Errors
    ///
    /// If the script fails, reaches a limit or returns what is no JSON.
    pub fn call(
        &mut self,
        entry: usize,
        arguments: &[Json],
        limits: &Limits,
    ) -> Result<Step, ScriptError> {
        let work: Result<Function, LuaError> = self.work.raw_get(entry + 1);
        let work = work.map_err(|_| {
            let message = "the script does not declare this any more";
            ScriptError::new(ErrorKind::Runtime, message)
        })?;
        self.begin(&work, arguments, limits)
    }

    /// Goes on with the answer to what the script wanted.
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call).
    pub fn resume(&mut self, answer: Result<Json, String>) -> Result<Step, ScriptError> {
        let answered = (|| match &answer {
            Ok(value) => Ok((true, plain_with(&self.lua, value, Some(&self.list))?)),
            Err(why) => Ok((false, Value::String(self.lua.create_string(why)?))),
        })();
        self.budget.go_on();
        let step = answered.and_then(|answered| self.turn(answered));
        self.ended(step)
    }

    fn begin(
        &mut self,
        work: &Function,
        arguments: &[Json],
        limits: &Limits,
    ) -> Result<Step, ScriptError> {
        self.result_bytes = limits.result_bytes;
        self.budget.begin(limits.steps, limits.time);
        let step = (|| {
            let memory = self.base_bytes.saturating_add(limits.memory_bytes);
            self.lua.set_memory_limit(memory)?;
            let arguments = arguments.iter();
            let arguments = arguments.map(|json| plain_with(&self.lua, json, Some(&self.list)));
            let arguments = arguments.collect::<Result<MultiValue, _>>()?;
            self.running = Some(self.lua.create_thread(work.clone())?);
            self.turn(arguments)
        })();
        self.ended(step)
    }

    /// Runs until the script is done or wants something.
    fn turn(&mut self, with: impl IntoLuaMulti) -> Result<Step, LuaError> {
        let Some(thread) = &self.running else {
            return Err(LuaError::runtime("the script does not run"));
        };
        let mut values: MultiValue = thread.resume(with)?;
        if thread.status() != ThreadStatus::Resumable {
            let value = values.pop_front().unwrap_or(Value::Nil);
            let read = self.reader(self.result_bytes).read(&value);
            return read.map(Step::Done).map_err(no_result);
        }
        let tagged = values.pop_front() == Some(Value::Table(self.tag.clone()));
        let name = values
            .pop_front()
            .and_then(|name| Some(name.as_string()?.to_string_lossy()));
        let (true, Some(name)) = (tagged, name) else {
            return Err(LuaError::runtime(
                "`coroutine.yield` outside of a coroutine",
            ));
        };
        let mut reader = self.reader(ARGUMENT_BYTES);
        let arguments = values.iter().map(|value| reader.read(value));
        let arguments = arguments.collect::<Result<Vec<_>, _>>()?;
        Ok(Step::Wants(Request { name, arguments }))
    }

    fn reader(&self, bytes: usize) -> Reader {
        Reader::with_lists(bytes, self.list.clone())
    }

    /// A script that caught the error of its limit has reached it all the same.
    fn ended(&mut self, step: Result<Step, LuaError>) -> Result<Step, ScriptError> {
        self.budget.pause();
        if let Some(error) = self.budget.error() {
            return Err(error);
        }
        step.map_err(|error| match error.downcast_ref::<NoResult>() {
            Some(NoResult(why)) => ScriptError::new(ErrorKind::Result, why.clone()),
            None => ScriptError::from_lua(&error),
        })
    }
}

/// What a script returned is no JSON.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct NoResult(String);

fn no_result(error: LuaError) -> LuaError {
    match error {
        LuaError::RuntimeError(why) => LuaError::external(NoResult(why)),
        other => other,
    }
}

/// `declare(kind, spec, work)`.
fn declare(
    lua: &Lua,
    notes: &Arc<Notes>,
    work: &Table,
    list: &Table,
) -> Result<Function, LuaError> {
    let (notes, works, list) = (Arc::clone(notes), work.clone(), list.clone());
    lua.create_function(move |lua, (kind, spec, work): (String, Value, Function)| {
        if notes.closed.load(Relaxed) {
            let message = format!("a {kind} is declared while the script is loaded, not later");
            return Err(LuaError::runtime(message));
        }
        let spec = Reader::with_lists(ARGUMENT_BYTES, list.clone()).read(&spec)?;
        let mut entries = notes.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= MOST_ENTRIES {
            let message = format!("a script declares at most {MOST_ENTRIES} things");
            return Err(LuaError::runtime(message));
        }
        works.raw_set(entries.len() + 1, work)?;
        let line = machine::line(lua);
        entries.push(Entry { kind, spec, line });
        Ok(())
    })
}

/// `tell(name, …)`.
fn tell(lua: &Lua, told: Arc<Told>, list: &Table) -> Result<Function, LuaError> {
    let list = list.clone();
    lua.create_function(move |_, (name, arguments): (String, MultiValue)| {
        let mut reader = Reader::with_lists(ARGUMENT_BYTES, list.clone());
        let arguments = arguments.iter().map(|argument| reader.read(argument));
        told(&name, &arguments.collect::<Result<Vec<_>, _>>()?);
        Ok(())
    })
}
