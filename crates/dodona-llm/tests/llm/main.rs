//! Models against a provider that speaks both protocols over a real socket, and has every fault
//! that providers have.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod embed;
mod fallback;
mod faults;
mod peers;
mod requests;
mod responses;
mod rig;
mod secrets;
mod settings;
mod streaming;
