//! The knowledge plugins on a real hub and a real project.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod agent;
mod freshness;
mod history;
mod killed;
mod large;
mod meaning;
mod notes;
mod outside;
mod project;
mod sources;
mod threads;
mod undo;
mod web;
mod writers;
mod writing;

use project::{Setup, TestProject};
