//! How many tools a model was offered.

/// The tools of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ToolsTold {
    /// The number of tools that the model was offered.
    pub told: usize,
    /// The number of tools that the agent has.
    pub known: usize,
    /// The tokens that the others would have taken.
    pub saved: u64,
}
