//! The plugin `rules`, from the outside.

mod actions;
mod earlier;
mod format;
mod gates;
mod isolation;
mod limits;
mod load;
mod reload;
mod rig;
mod toggles;
mod triggers;
