//! How much a template may cost.

/// Bounds of a template and of one rendering of it.
///
/// Every bound is hard: what would cross it ends with [`ErrorKind::Limit`](crate::ErrorKind::Limit),
/// and what was written so far is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long the source may be.
    pub source_bytes: usize,
    /// How long the text may be that comes out.
    pub output_bytes: usize,
    /// How much work may be done: one step for each expression and statement that runs, and one more
    /// for each element or 64 bytes that it touches.
    pub steps: u64,
    /// How many bytes of values may be made, counted whether or not they are still in use.
    pub memory_bytes: usize,
    /// How deeply expressions, blocks, values and macro calls may be nested, together. In the
    /// source a bracket counts as four levels and a tag as two.
    pub depth: u32,
}

impl Limits {
    /// For the texts of rules: short, rendered often, written by anybody.
    pub const fn message() -> Self {
        Self {
            source_bytes: 4 * 1024,
            output_bytes: 64 * 1024,
            steps: 100_000,
            memory_bytes: 1024 * 1024,
            depth: 128,
        }
    }

    /// For prompt files: longer, rendered once in a turn.
    pub const fn prompt() -> Self {
        Self {
            source_bytes: 256 * 1024,
            output_bytes: 2 * 1024 * 1024,
            steps: 2_000_000,
            memory_bytes: 16 * 1024 * 1024,
            depth: 128,
        }
    }
}
