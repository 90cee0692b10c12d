//! Reading a part of a file, however large the file is.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use sha2::{Digest, Sha256};

/// The most bytes of text that are read at once: as much as a note may have. Larger files are read
/// in parts.
pub(crate) const MAX_PART: usize = 1 << 20;

/// Some lines of a file.
pub(crate) struct Part {
    /// The lines, without the last end of a line.
    pub(crate) text: String,
    /// How many lines there are.
    pub(crate) lines: u32,
    /// The line from which to read on, where lines were left out.
    pub(crate) next: Option<u32>,
}

/// Reads lines of a text file, from 1, until `to` or as many as fit. A line that is longer than a
/// part is cut.
pub(crate) fn read(file: &Path, from: u32, to: u32) -> io::Result<Part> {
    let mut reader = BufReader::new(File::open(file)?);
    let mut bytes = Vec::new();
    let (mut number, mut lines, mut next) = (0_u32, 0, None);
    let mut line = Vec::new();
    while number < to {
        line.clear();
        if !read_line(&mut reader, &mut line)? {
            break;
        }
        number = number.saturating_add(1);
        if number < from {
            continue;
        }
        if lines > 0 && bytes.len() + line.len() > MAX_PART {
            next = Some(number);
            break;
        }
        if lines > 0 {
            bytes.push(b'\n');
        }
        bytes.extend_from_slice(&line);
        lines += 1;
    }
    let text = String::from_utf8(bytes).map_err(io::Error::other)?;
    Ok(Part { text, lines, next })
}

/// Reads the next line without its line ending. Returns `false` at the end of the file. The rest of
/// a line that is longer than a part is skipped.
fn read_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    let limit = MAX_PART as u64;
    if reader.by_ref().take(limit).read_until(b'\n', line)? == 0 {
        return Ok(false);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        return Ok(true);
    }
    if line.len() as u64 == limit {
        reader.skip_until(b'\n')?;
        let whole = line
            .utf8_chunks()
            .next()
            .map_or(0, |chunk| chunk.valid().len());
        // A character that the cut went through. Anything else is no text, as the caller finds out.
        if line.len() - whole < 4 {
            line.truncate(whole);
        }
    }
    Ok(true)
}

/// SHA-256 of a file, in hex.
pub(crate) fn hash(file: &Path) -> io::Result<String> {
    let mut reader = BufReader::new(File::open(file)?);
    let mut digest = Sha256::new();
    loop {
        let part = reader.fill_buf()?;
        if part.is_empty() {
            break;
        }
        digest.update(part);
        let length = part.len();
        reader.consume(length);
    }
    Ok(digest
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_file_is_read_in_parts_without_loss() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("large.md");
        let text: String = (1..=200_000).map(|n| format!("line {n} ü\n")).collect();
        std::fs::write(&file, &text).unwrap();
        let (mut read_back, mut from, mut parts) = (String::new(), 1, 0);
        loop {
            let part = read(&file, from, u32::MAX).unwrap();
            assert!(part.text.len() <= MAX_PART);
            read_back.push_str(&part.text);
            read_back.push('\n');
            parts += 1;
            match part.next {
                Some(next) => from = next,
                None => break,
            }
        }
        assert!(parts > 2);
        assert_eq!(read_back, text);
        std::fs::write(&file, "ü".repeat(MAX_PART)).unwrap();
        let cut = read(&file, 1, u32::MAX).unwrap();
        assert!(cut.text.len() <= MAX_PART && cut.lines == 1 && cut.next.is_none());
        std::fs::write(&file, "a\r\nb\n").unwrap();
        let whole = read(&file, 1, u32::MAX).unwrap();
        assert_eq!((whole.text.as_str(), whole.lines), ("a\nb", 2));
    }
}
