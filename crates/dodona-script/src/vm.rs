//! One virtual machine: what is in it, and what is not.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use mlua::chunk::{ChunkMode, Compiler};
use mlua::{
    Error as LuaError, Function, Lua, MetaMethod, MultiValue, Table, UserData, UserDataMethods,
    Value,
};

use crate::budget::Budget;
use crate::error::CHUNK;
use crate::host::{Host, HostCall};
use crate::json::Reader;
use crate::limits::Limits;
use crate::machine;
use crate::node::{ARGUMENT_BYTES, Node, plain};
use crate::object::Object;
use crate::script::Script;
use crate::slot::{Current, Slot};

/// How many scripts a machine keeps loaded. Loading one costs as much as running it some times.
const LOADED: usize = 2_048;
/// Garbage of earlier runs that is not worth collecting.
const SPARE_BYTES: usize = 2 * 1024 * 1024;

pub(crate) struct Vm {
    lua: Lua,
    budget: Arc<Budget>,
    slot: Arc<Slot>,
    /// The metatable of each run's environment: reads fall through to what all share.
    shared: Table,
    loaded: HashMap<u64, Function>,
    /// Whether the running script has set a global.
    written: Arc<AtomicBool>,
    /// What the machine holds before any script runs, and for those that are loaded.
    base_bytes: usize,
    /// What of it is for those that are loaded.
    loaded_bytes: usize,
}

impl Vm {
    pub(crate) fn new() -> Result<Self, LuaError> {
        let lua = machine::bare()?;
        let slot = Arc::new(Slot::default());
        let globals = lua.globals();
        globals.set("context", Node::root(slot.clone()))?;
        globals.set_metatable(Some(host_names(&lua, &slot)?))?;
        let written = Arc::new(AtomicBool::new(false));
        let shared = machine::shared_with(&lua, Some(note_writes(&lua, &written)?))?;
        let budget = machine::seal(&lua)?;
        let base_bytes = lua.used_memory();
        Ok(Self {
            lua,
            budget,
            slot,
            shared,
            loaded: HashMap::new(),
            written,
            base_bytes,
            loaded_bytes: 0,
        })
    }

    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Runs a script and hands its value to `read`, all within the limits.
    pub(crate) fn run<T>(
        &mut self,
        script: &Script,
        (context, host): (Arc<dyn Object>, Arc<Host>),
        limits: &Limits,
        read: impl FnOnce(Value) -> Result<T, LuaError>,
    ) -> Result<T, LuaError> {
        if self.lua.used_memory() > self.base_bytes + SPARE_BYTES {
            self.lua.gc_collect()?;
        }
        let memory = self.lua.used_memory().saturating_add(limits.memory_bytes);
        self.lua.set_memory_limit(memory)?;
        self.budget.begin(limits.steps, limits.time);
        self.slot.put(Some(Current {
            context,
            host,
            deadline: self.budget.deadline(),
        }));
        let result = self.call(script).and_then(read);
        self.slot.put(None);
        self.lua.set_memory_limit(0)?;
        result
    }

    fn call(&mut self, script: &Script) -> Result<Value, LuaError> {
        let function = self.load(script)?;
        self.written.store(false, Relaxed);
        let result = function.call(());
        // What it set is nobody else's, and not its own next run's either.
        if self.written.load(Relaxed) {
            let renewed = self
                .environment()
                .and_then(|environment| function.set_environment(environment));
            if renewed.is_err() {
                self.loaded.remove(&script.id());
            }
        }
        result
    }

    /// Globals of a script's own, empty: reads fall through to what all share.
    fn environment(&self) -> Result<Table, LuaError> {
        let environment = self.lua.create_table()?;
        environment.set_metatable(Some(self.shared.clone()))?;
        // Nothing in it changes behind the script's back, so calls of the libraries may be direct.
        environment.set_safeenv(true);
        Ok(environment)
    }

    fn load(&mut self, script: &Script) -> Result<Function, LuaError> {
        if let Some(function) = self.loaded.get(&script.id()) {
            return Ok(function.clone());
        }
        if self.loaded.len() >= LOADED {
            self.loaded.clear();
            self.base_bytes -= self.loaded_bytes;
            self.loaded_bytes = 0;
        }
        let before = self.lua.used_memory();
        let chunk = self
            .lua
            .load(script.bytecode())
            .set_name(format!("={CHUNK}"));
        let function = chunk.set_mode(ChunkMode::Binary).into_function()?;
        function.set_environment(self.environment()?)?;
        self.loaded.insert(script.id(), function.clone());
        // Memory that stays is no reason to look for garbage before every run.
        let bytes = self.lua.used_memory().saturating_sub(before);
        self.base_bytes += bytes;
        self.loaded_bytes += bytes;
        Ok(function)
    }

    /// Whether the machine is small enough to be kept for another run.
    pub(crate) fn is_fit(&self) -> bool {
        self.budget.reached().is_none()
            && self.lua.used_memory() < self.base_bytes + 4 * SPARE_BYTES
    }
}

/// Has it noted that a script sets a global, which then is set.
fn note_writes(lua: &Lua, written: &Arc<AtomicBool>) -> Result<Function, LuaError> {
    let written = Arc::clone(written);
    lua.create_function(move |_, (environment, key, value): (Table, Value, Value)| {
        written.store(true, Relaxed);
        environment.raw_set(key, value)
    })
}

/// Turns a source into bytecode.
pub(crate) fn compile(source: &str) -> Result<Vec<u8>, LuaError> {
    Compiler::new()
        .set_optimization_level(1)
        .set_debug_level(1)
        // It is another one in every run, so nothing of it may be looked up at load time.
        .set_mutable_globals(["context"])
        .compile(source)
}

/// A table of functions of the program around.
struct HostTable {
    slot: Arc<Slot>,
    name: String,
}

impl UserData for HostTable {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_meta_method(MetaMethod::Index, |lua, table, key: String| {
            host_value(lua, &table.slot, &format!("{}.{key}", table.name))
        });
    }
}

/// A metatable that finds what the libraries do not have among the functions of the program around.
fn host_names(lua: &Lua, slot: &Arc<Slot>) -> Result<Table, LuaError> {
    let slot = slot.clone();
    let find = lua.create_function(move |lua, (_, name): (Value, Value)| {
        match name.as_string().and_then(|name| name.to_str().ok()) {
            Some(name) => host_value(lua, &slot, &name),
            None => Ok(Value::Nil),
        }
    })?;
    let metatable = lua.create_table()?;
    metatable.set("__index", find)?;
    metatable.set("__metatable", false)?;
    Ok(metatable)
}

fn host_value(lua: &Lua, slot: &Arc<Slot>, name: &str) -> Result<Value, LuaError> {
    let Ok(current) = slot.current() else {
        return Ok(Value::Nil);
    };
    if current.host.get(name).is_some() {
        return host_function(lua, slot, name).map(Value::Function);
    }
    if current.host.has_table(name) {
        let table = HostTable {
            slot: slot.clone(),
            name: name.to_owned(),
        };
        return lua.create_userdata(table).map(Value::UserData);
    }
    Ok(Value::Nil)
}

/// The function is looked up when it is called: a loaded script may keep it longer than its run.
fn host_function(lua: &Lua, slot: &Arc<Slot>, name: &str) -> Result<Function, LuaError> {
    let slot = slot.clone();
    let name = name.to_owned();
    lua.create_function(move |lua, arguments: MultiValue| {
        let mut reader = Reader::new(ARGUMENT_BYTES);
        let arguments = arguments.iter().map(|argument| reader.read(argument));
        let arguments = arguments.collect::<Result<Vec<_>, _>>()?;
        let current = slot.current()?;
        let Some(function) = current.host.get(&name) else {
            return Err(LuaError::runtime(format!(
                "there is no function `{name}` here"
            )));
        };
        let call = HostCall {
            arguments: &arguments,
            deadline: current.deadline,
        };
        let result = function(&call).map_err(LuaError::runtime)?;
        plain(lua, &result)
    })
}
