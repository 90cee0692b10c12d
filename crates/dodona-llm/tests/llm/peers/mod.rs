//! Servers that others wrote, of the same protocols: what we understand is not only what we wrote
//! ourselves.

mod aimock;
mod llmock;
