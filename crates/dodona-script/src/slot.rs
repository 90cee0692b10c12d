//! The run that a virtual machine is busy with.
//!
//! What a script holds of its context are paths, and every look goes through the slot. So a context
//! is let go when its run ends, whatever garbage the virtual machine still has.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use mlua::{AnyUserData, Error as LuaError};

use crate::host::Host;
use crate::object::Object;

#[derive(Clone)]
pub(crate) struct Current {
    pub(crate) context: Arc<dyn Object>,
    pub(crate) host: Arc<Host>,
    pub(crate) deadline: Instant,
}

/// What a script may see of its run, and the objects it was shown.
#[derive(Default)]
pub(crate) struct Slot {
    current: Mutex<Option<Current>>,
    /// Objects directly below `context`. They are paths and hold nothing, so those of one run serve
    /// the next.
    shown: Mutex<Vec<(Box<str>, AnyUserData)>>,
}

/// How many objects are kept.
const SHOWN: usize = 32;

impl Slot {
    pub(crate) fn put(&self, current: Option<Current>) {
        *self.lock() = current;
    }

    /// The run, for as long as a function of the program around may take.
    pub(crate) fn current(&self) -> Result<Current, LuaError> {
        self.lock().clone().ok_or_else(over)
    }

    /// Works with the context. Nothing in it may run a script.
    pub(crate) fn look<T>(
        &self,
        work: impl FnOnce(&dyn Object) -> Result<T, LuaError>,
    ) -> Result<T, LuaError> {
        let current = self.lock();
        let current = current.as_ref().ok_or_else(over)?;
        work(&*current.context)
    }

    /// The object of this name, made if it was not shown before.
    pub(crate) fn object(
        &self,
        name: &str,
        make: impl FnOnce() -> Result<AnyUserData, LuaError>,
    ) -> Result<AnyUserData, LuaError> {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = shown.iter().find(|(known, _)| **known == *name) {
            return Ok(known.clone());
        }
        let made = make()?;
        if shown.len() < SHOWN {
            shown.push((name.into(), made.clone()));
        }
        Ok(made)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Current>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn over() -> LuaError {
    LuaError::runtime("the run is over")
}
