//! Plugins that are processes, on a hub in this process. The programs are in Python.

#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test fails the test, as the test itself would"
)]

mod calls;
mod failing;
mod hooks;
mod life;
mod services;
mod support;
