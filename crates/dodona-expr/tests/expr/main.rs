//! The language, from outside.

#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test fails the test, as the test itself would"
)]

mod attacks;
mod compatibility;
mod differential;
mod fixtures;
mod generate;
mod properties;
mod reads;
mod sets;
mod simpleeval;
mod support;
