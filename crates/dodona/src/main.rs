//! The command line of Dodona: a programmable, local-first agent server in one binary.
//!
//! Start from [`cli::Cli`], which lists the commands, and [`session::Session`], the one thing that
//! commands talk to. What can be called comes from [`plugins::all`]; where things live is decided
//! by [`home::Home`]; how an error is told is decided by [`failure::Failure`].
//!
//! # What it does not do
//!
//! It decides nothing that a second surface would have to decide again: parameters are checked,
//! calls are limited and errors are coded by the hub. It never opens a database by itself.

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
mod project;
mod quantity;
mod session;
mod shape;
mod shell;

use std::process::ExitCode;

/// An agent server makes and drops small texts all the time; see `docs/decisions/0013`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    if let Some(server) = plugins::guarded_command() {
        return dodona_extern::mcp::run_guard(server);
    }
    let cli = cli::Cli::parse_arguments();
    match cli.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.tell(),
    }
}
