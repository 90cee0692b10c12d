//! Luau scripts in a sandbox: limits that hold, a read-only context, actions as results.
//!
//! A [`Script`] is compiled once; an [`Engine`] runs it on a virtual machine that is kept for later
//! runs, in an environment that is fresh for each. `docs/reference/scripting.md` is the guide for
//! authors of scripts.
//!
//! ```
//! use std::sync::Arc;
//!
//! use dodona_script::{Engine, Limits, Script};
//! use serde_json::json;
//!
//! let engine = Engine::new(4);
//! let script = Script::compile(
//!     r#"
//!         local failed = 0
//!         for _, call in context.history do
//!             if not call.success then failed += 1 end
//!         end
//!         if failed < 3 then return false end
//!         return { type = "notify_self", message = `{failed} calls failed` }
//!     "#,
//!     "repeated-failure.lua",
//! )?;
//! let failure = json!({"success": false});
//! let context = Arc::new(json!({"history": [failure, failure, failure]}));
//! let outcome = engine.run(&script, context, &Limits::default())?;
//! assert!(outcome.matched);
//! assert_eq!(outcome.actions, [json!({"type": "notify_self", "message": "3 calls failed"})]);
//!
//! let endless = Script::compile("while true do pcall(error) end", "endless.lua")?;
//! assert!(engine.run(&endless, Arc::new(json!({})), &Limits::default()).is_err());
//! # Ok::<(), dodona_script::ScriptError>(())
//! ```
//!
//! An [`Instance`] is a script that is loaded once and then asked for something that it declared. It may
//! want something of the program around it: then its turn ends with a [`Request`], and goes on with
//! the answer, on whichever thread. While it waits, no thread is held and its clock stands still.
//!
//! # What it does not do
//!
//! It knows neither rules nor plugins: what a script may call, it is given as a [`Host`] or an [`Api`].
//! It starts no thread and no runtime: a run blocks its thread, so asynchronous programs run scripts
//! where blocking is allowed. It gives a script no file, no network, no clock and no chance. It judges no action: a
//! table is a table.

mod budget;
mod engine;
mod error;
mod host;
mod instance;
mod json;
mod limits;
mod machine;
mod node;
mod object;
mod outcome;
mod script;
mod slot;
mod vm;

pub use engine::{Engine, Session};
pub use error::{ErrorKind, ScriptError};
pub use host::{Host, HostCall};
pub use instance::{Api, Entry, Instance, Request, Step, Stopper};
pub use limits::Limits;
pub use object::{Field, Object};
pub use outcome::Outcome;
pub use script::Script;
