//! Plugins in Luau, in a hub and without a socket.

#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test fails the test, as the test itself would"
)]

mod database;
mod hooks;
mod hostile;
mod methods;
mod properties;
mod reload;
mod services;
mod support;
mod trial;
