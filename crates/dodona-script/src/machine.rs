//! What every virtual machine has in common: which libraries it has, which functions it lacks, and
//! who stops it.

use std::sync::Arc;

use mlua::{Error as LuaError, Function, Lua, LuaOptions, StdLib, Table, UserDataRef, VmState};

use crate::budget::Budget;
use crate::error::{self, CHUNK};
use crate::node::Node;

/// What could read or change the world, load code, or tell one run about another; also what gives
/// another number every time.
const REMOVED: [&str; 9] = [
    "collectgarbage",
    "gcinfo",
    "getfenv",
    "loadstring",
    "newproxy",
    "print",
    "require",
    "setfenv",
    "_G",
];
const REMOVED_FROM_MATH: [&str; 2] = ["random", "randomseed"];

/// Libraries that touch nothing but their arguments.
const LIBRARIES: [StdLib; 7] = [
    StdLib::BIT,
    StdLib::BUFFER,
    StdLib::COROUTINE,
    StdLib::MATH,
    StdLib::STRING,
    StdLib::TABLE,
    StdLib::UTF8,
];

/// Replaces the functions that Luau runs for as long as it takes without asking whether to go on:
/// a plain search compares every position with the whole text that is looked for.
const PRELUDE: &str = r#"
local iterate = ...
local type, error = type, error
local find, split, raw_pairs = string.find, string.split, pairs
local MOST = 500000000
local function is_long(text, part)
    return type(text) == "string" and type(part) == "string" and #text * #part > MOST
end
function string.find(text, pattern, init, plain)
    if is_long(text, pattern) and (plain or not find(pattern, "[%^%$%*%+%?%.%(%[%-%%]")) then
        error("string.find: the texts are too long", 2)
    end
    return find(text, pattern, init, plain)
end
function string.split(text, separator)
    if is_long(text, separator) then
        error("string.split: the texts are too long", 2)
    end
    return split(text, separator)
end
function pairs(value)
    if type(value) == "userdata" then
        return iterate(value)
    end
    return raw_pairs(value)
end
"#;

/// A machine with what touches nothing but its arguments. More may be put in until it is sealed.
pub(crate) fn bare() -> Result<Lua, LuaError> {
    let libraries = LIBRARIES
        .into_iter()
        .fold(StdLib::NONE, |all, one| all | one);
    let lua = Lua::new_with(libraries, LuaOptions::default())?;
    run_prelude(&lua)?;
    let globals = lua.globals();
    for name in REMOVED {
        globals.raw_remove(name)?;
    }
    let math: Table = globals.get("math")?;
    for name in REMOVED_FROM_MATH {
        math.raw_remove(name)?;
    }
    Ok(lua)
}

/// The metatable of a script's environment: reads fall through to what all share.
pub(crate) fn shared(lua: &Lua) -> Result<Table, LuaError> {
    shared_with(lua, None)
}

/// The same; what the script sets goes through a function, if there is one.
pub(crate) fn shared_with(lua: &Lua, sets: Option<Function>) -> Result<Table, LuaError> {
    let shared = lua.create_table()?;
    shared.set("__index", lua.globals())?;
    if let Some(sets) = sets {
        shared.set("__newindex", sets)?;
    }
    shared.set("__metatable", false)?;
    shared.set_readonly(true);
    Ok(shared)
}

/// Makes what is in a machine read-only, and has a budget stop it.
pub(crate) fn seal(lua: &Lua) -> Result<Arc<Budget>, LuaError> {
    lua.sandbox(true)?;
    let budget = Arc::new(Budget::new());
    let asked = budget.clone();
    lua.set_interrupt(move |lua| {
        asked.step().map_err(|limit| {
            asked.note_line(line(lua));
            LuaError::external(limit)
        })?;
        Ok(VmState::Continue)
    });
    Ok(budget)
}

/// The line of the script that is running.
pub(crate) fn line(lua: &Lua) -> Option<usize> {
    // What runs may be a function of a library, or of the prelude, that the script called.
    (0..8).find_map(|level| {
        let place = lua.inspect_stack(level, |frame| {
            let of_script = frame.source().short_src.as_deref() == Some(CHUNK);
            frame.current_line().filter(|_| of_script)
        });
        place.flatten()
    })
}

fn run_prelude(lua: &Lua) -> Result<(), LuaError> {
    let iterate = lua.create_function(|lua, node: UserDataRef<Node>| node.iterate(lua))?;
    lua.load(PRELUDE)
        .set_name(format!("={}", error::PRELUDE))
        .call::<()>(iterate)
}
