//! Dodona as a library: the program with plugins of your own.
//!
//! [`App`] is the whole program. A program with its own plugins is a crate that depends on `dodona`
//! and `dodona-plugin` and has a `main` of a few lines; `examples/own_plugin.rs` is one.
//!
//! Inside, start from `cli::Cli`, which lists the commands, and `session::Session`, the one thing that
//! commands talk to. The built-in plugins are in `plugins::all`, the directories in `home::Home`, the
//! text of errors in `failure::Failure`.
//!
//! # What it does not do
//!
//! It decides nothing that a second surface would have to decide again: parameters are checked,
//! calls are limited and errors are coded by the hub. It never opens a database by itself.

mod app;
mod cli;
mod config;
mod excerpt;
mod failure;
mod home;
mod interrupt;
mod layout;
mod live;
mod logs;
mod nearest;
mod owner;
mod paint;
mod plugins;
mod privacy;
mod project;
mod quantity;
mod schema;
mod session;
mod shape;
mod shell;
mod table;
mod trust_notice;

pub use app::App;
