//! A server in another process, to compare ourselves with.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};

/// A program that serves until this is dropped.
#[derive(Debug)]
pub struct Peer {
    child: Child,
    url: String,
}

impl Peer {
    /// Starts a program whose first line of output is the address that it serves at. Its input
    /// stays open as long as it should run, so that it can end by itself when the test is killed.
    ///
    /// # Errors
    ///
    /// If it does not start, or ends without an address.
    pub fn start(command: &mut Command) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {command:?}"))?;
        let output = child.stdout.take().context("the program has no output")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        let url = line.trim().to_owned();
        let peer = Self { child, url };
        match peer.url.starts_with("http") {
            true => Ok(peer),
            false => bail!("{command:?} says {line:?} instead of an address"),
        }
    }

    /// The address, without a slash at its end.
    pub fn url(&self) -> &str {
        self.url.trim_end_matches('/')
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
