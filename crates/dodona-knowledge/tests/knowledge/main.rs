//! The knowledge plugins on a real hub and a real project.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod freshness;
mod history;
mod meaning;
mod notes;
mod project;
mod sources;

use project::TestProject;
