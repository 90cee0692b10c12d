//! The bounds of one evaluation, and the meter that holds it to them.

use crate::error::Fault;

/// The bounds of one evaluation. The defaults are simpleeval's where it has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Terms evaluated; long texts and lists count for more than one.
    pub steps: u64,
    /// Elements of one list or dict, characters of one text.
    pub elements: usize,
    /// Rounds of all comprehensions together.
    pub iterations: u32,
    /// Bytes of all values that the evaluation makes, whether they are still needed or not.
    pub memory: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            steps: 1_000_000,
            elements: 100_000,
            iterations: 10_000,
            memory: 16 << 20,
        }
    }
}

/// The longest source, in bytes.
pub const MAX_SOURCE: usize = 8 << 10;

/// How deep expressions may nest, and values that are compared or printed.
pub const MAX_NESTING: usize = 128;

/// The largest base and exponent of a power.
pub(crate) const MAX_POWER: f64 = 4_000_000.0;

/// The largest distance of a shift.
pub(crate) const MAX_SHIFT: i64 = 10_000;

/// Counts down while an evaluation runs.
#[derive(Debug, Clone)]
pub(crate) struct Meter {
    limits: Limits,
    steps: u64,
    iterations: u32,
    memory: usize,
}

impl Meter {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            steps: limits.steps,
            iterations: limits.iterations,
            memory: limits.memory,
        }
    }

    /// Charges for work whose size was decided by a value.
    #[inline]
    pub(crate) fn work(&mut self, steps: usize) -> Result<(), Fault> {
        match self.steps.checked_sub(steps as u64) {
            Some(left) => {
                self.steps = left;
                Ok(())
            }
            None => Err(self.out_of_steps()),
        }
    }

    #[cold]
    fn out_of_steps(&self) -> Fault {
        Fault::limit(format!("more than {} steps", self.limits.steps))
    }

    /// Charges for reading a text.
    #[inline]
    pub(crate) fn read(&mut self, text: &str) -> Result<(), Fault> {
        self.work(text.len() / 32)
    }

    /// Charges for a text of so many bytes, before it is made.
    pub(crate) fn text(&mut self, bytes: usize) -> Result<(), Fault> {
        // A character has up to four bytes; whoever can count characters checks those too.
        if bytes > self.limits.elements.saturating_mul(4) {
            return Err(self.too_long());
        }
        self.work(bytes / 32)?;
        self.grow(bytes)
    }

    /// Charges for so many elements, before they are made.
    pub(crate) fn elements(&mut self, count: usize) -> Result<(), Fault> {
        if count > self.limits.elements {
            return Err(self.too_long());
        }
        self.work(count)?;
        self.grow(count.saturating_mul(size_of::<crate::Value<'_>>()))
    }

    /// Refuses a result of more than the elements or characters that one may have.
    pub(crate) fn length(&self, count: usize) -> Result<(), Fault> {
        if count > self.limits.elements {
            return Err(self.too_long());
        }
        Ok(())
    }

    /// The most elements or characters that one value may have.
    pub(crate) fn max_length(&self) -> usize {
        self.limits.elements
    }

    #[cold]
    fn too_long(&self) -> Fault {
        Fault::limit(format!(
            "the result is longer than {} elements",
            self.limits.elements
        ))
    }

    fn grow(&mut self, bytes: usize) -> Result<(), Fault> {
        match self.memory.checked_sub(bytes) {
            Some(left) => {
                self.memory = left;
                Ok(())
            }
            None => Err(Fault::limit(format!(
                "more than {} bytes of values",
                self.limits.memory
            ))),
        }
    }

    /// Charges for one round of a comprehension.
    pub(crate) fn iteration(&mut self) -> Result<(), Fault> {
        match self.iterations.checked_sub(1) {
            Some(left) => {
                self.iterations = left;
                self.work(1)
            }
            None => Err(Fault::limit(format!(
                "comprehensions of more than {} rounds",
                self.limits.iterations
            ))),
        }
    }
}
