//! A file server on this machine, with addresses that tamper with files or stop halfway.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context, Result};

/// Serves a folder until the process ends.
///
/// `/PATH` is a file, or `index.html` of a folder. `/tampered/NAME` is a package with one byte changed,
/// `/stalled/NAME` sends half a package and then nothing. Neither changes `SHA256SUMS`.
pub(super) struct Site {
    address: SocketAddr,
    stalled: Arc<AtomicUsize>,
}

impl Site {
    pub(super) fn start(folder: PathBuf) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("cannot listen on loopback")?;
        let address = listener.local_addr()?;
        let stalled = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&stalled);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (folder, counter) = (folder.clone(), Arc::clone(&counter));
                // A client that goes away is its own affair.
                thread::spawn(move || answer(stream, &folder, &counter).ok());
            }
        });
        Ok(Self { address, stalled })
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    /// How many downloads have been stopped halfway.
    pub(super) fn stalled(&self) -> usize {
        self.stalled.load(Ordering::SeqCst)
    }
}

fn answer(mut stream: TcpStream, folder: &Path, stalled: &AtomicUsize) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut request = String::new();
    reader.read_line(&mut request)?;
    let mut line = String::new();
    while reader.read_line(&mut line)? > 2 {
        line.clear();
    }
    let path = request.split(' ').nth(1).unwrap_or("/");
    let path = path.split('?').next().unwrap_or(path).trim_matches('/');
    let (mode, name) = path.split_once('/').unwrap_or(("", path));
    let is_changed = matches!(mode, "tampered" | "stalled") && name != "SHA256SUMS";
    let file = match mode {
        "tampered" | "stalled" => folder.join("files").join(name),
        _ => folder.join(path),
    };
    let file = if file.is_dir() {
        file.join("index.html")
    } else {
        file
    };
    let Ok(mut body) = fs::read(&file) else {
        return stream.write_all(
            b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        );
    };
    if is_changed && mode == "tampered" {
        let middle = body.len() / 2;
        body[middle] ^= 1;
    }
    let kind = match file.extension().and_then(|ending| ending.to_str()) {
        Some("html") => "text/html",
        Some("tgz" | "gz" | "whl") => "application/octet-stream",
        _ => "application/json",
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    if is_changed && mode == "stalled" {
        stream.write_all(&body[..length / 2])?;
        stream.flush()?;
        stalled.fetch_add(1, Ordering::SeqCst);
        // Until the client closes the connection.
        return reader.read(&mut [0]).map(drop);
    }
    stream.write_all(&body)
}

/// Sends a GET request and returns status line and body.
pub(super) fn get(address: &str, path: &str) -> Result<(String, String)> {
    let mut stream =
        TcpStream::connect(address).with_context(|| format!("cannot connect to {address}"))?;
    stream.set_read_timeout(Some(super::PATIENCE))?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .context("no end of the headers")?;
    Ok((
        head.lines().next().unwrap_or_default().to_owned(),
        body.to_owned(),
    ))
}
