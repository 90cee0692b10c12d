//! Tests of the attributes: accepted methods, and messages for rejected ones.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod shapes;
mod ui;
