//! The plugin `rules`, from the outside.

#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test fails the test, as the test itself would"
)]

mod actions;
mod again;
mod backtest;
mod bundled;
mod desk;
mod dropped;
mod earlier;
mod examples;
mod failures;
mod files;
mod format;
mod gates;
mod hostile;
mod isolation;
mod limits;
mod liveness;
mod load;
mod project_state;
mod projects;
mod reload;
mod replay;
mod results;
mod rig;
mod schema;
mod scripts;
mod toggles;
mod triggers;
