//! The run that a virtual machine is busy with.
//!
//! What a script holds of its context are paths, and every look goes through the slot. So a context
//! is let go when its run ends, whatever garbage the virtual machine still has.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use mlua::Error as LuaError;

use crate::host::Host;
use crate::object::Object;

#[derive(Clone)]
pub(crate) struct Current {
    pub(crate) context: Arc<dyn Object>,
    pub(crate) host: Arc<Host>,
    pub(crate) deadline: Instant,
}

#[derive(Default)]
pub(crate) struct Slot(Mutex<Option<Current>>);

impl Slot {
    pub(crate) fn put(&self, current: Option<Current>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = current;
    }

    pub(crate) fn current(&self) -> Result<Current, LuaError> {
        let current = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        current.ok_or_else(|| LuaError::runtime("the run is over"))
    }
}
