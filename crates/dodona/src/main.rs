//! The command line of Dodona: a programmable, local-first agent server in one binary.

use std::process::ExitCode;

/// An agent server makes and drops small texts all the time; see `docs/decisions/0013`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    dodona::App::new().run()
}
