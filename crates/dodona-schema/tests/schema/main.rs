//! The validator against a reference, and against hostile schemas.

#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test fails the test, as the test itself would"
)]

mod differential;
mod hostile;
