//! The counters that keep a rendering within its [`Limits`].
//!
//! Nothing in this crate makes text, copies elements or walks a value without paying here first.
//! Memory is counted as it is made and never given back: simple, and an upper bound of what is held.

use crate::error::{Fault, Result};
use crate::limits::Limits;

/// Bytes of text that cost as much as one step.
const BYTES_PER_STEP: usize = 64;

#[derive(Debug)]
pub(crate) struct Meter {
    steps: u64,
    memory: usize,
    depth: u32,
    limits: Limits,
}

impl Meter {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            steps: limits.steps,
            memory: limits.memory_bytes,
            depth: 0,
            limits,
        }
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Pays for work.
    pub(crate) fn steps(&mut self, count: usize) -> Result<()> {
        match self.steps.checked_sub(count as u64) {
            Some(left) => {
                self.steps = left;
                Ok(())
            }
            None => {
                // What is left is gone: a fault that somebody caught would not buy more work.
                self.steps = 0;
                let message = format!("the template does more than {} steps", self.limits.steps);
                Err(Fault::limit(message))
            }
        }
    }

    /// Pays for reading text.
    pub(crate) fn read(&mut self, bytes: usize) -> Result<()> {
        match bytes / BYTES_PER_STEP {
            0 => Ok(()),
            steps => self.steps(steps),
        }
    }

    /// Pays for a value that is about to be made.
    pub(crate) fn memory(&mut self, bytes: usize) -> Result<()> {
        self.read(bytes)?;
        match self.memory.checked_sub(bytes) {
            Some(left) => {
                self.memory = left;
                Ok(())
            }
            None => {
                self.memory = 0;
                let limit = self.limits.memory_bytes;
                let message = format!("the template makes more than {limit} bytes of values");
                Err(Fault::limit(message))
            }
        }
    }

    /// Goes one level down; [`leave`](Self::leave) comes back.
    pub(crate) fn enter(&mut self) -> Result<()> {
        if self.depth >= self.limits.depth {
            return Err(too_deep(self.limits.depth));
        }
        self.depth += 1;
        Ok(())
    }

    pub(crate) fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Appends to a text in the making.
    pub(crate) fn push(&mut self, text: &mut String, piece: &str) -> Result<()> {
        self.memory(piece.len())?;
        text.push_str(piece);
        Ok(())
    }
}

pub(crate) fn too_deep(limit: u32) -> Fault {
    Fault::limit(format!("nested more than {limit} levels deep"))
}
