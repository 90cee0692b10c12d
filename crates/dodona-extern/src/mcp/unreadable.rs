//! Answers that cannot be read.
//!
//! Programs print all kinds of lines, which are passed over. A line that is meant as an answer and
//! cannot be read fails its call at once: the call would otherwise wait for its whole time.

use rmcp::model::{ErrorCode, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage};

/// A line that is meant as a message of the protocol.
pub(super) struct Unreadable {
    /// The request that it answers, where that can be found.
    pub(super) id: Option<RequestId>,
    /// What is wrong with it, as in "an answer that is not UTF-8".
    pub(super) what: String,
}

impl Unreadable {
    /// Examines a line that could not be parsed; nothing for what a program prints.
    pub(super) fn examine(line: &[u8], error: &serde_json::Error) -> Option<Self> {
        let found = top_level(line);
        if !found.is_message {
            return None;
        }
        let what = match std::str::from_utf8(line) {
            Err(_) => "an answer that is not UTF-8".to_owned(),
            Ok(_) if error.to_string().contains("recursion limit") => {
                "an answer that nests too deep".to_owned()
            }
            Ok(_) => "a malformed answer".to_owned(),
        };
        let id = found.id.and_then(|id| serde_json::from_slice(id).ok());
        Some(Self { id, what })
    }

    /// An error in place of the answer, for the call that waits for it.
    pub(super) fn into_error(id: RequestId, server: &str, what: &str) -> ServerJsonRpcMessage {
        let message = format!("MCP server `{server}` sent {what}");
        let error = ErrorData::new(ErrorCode::PARSE_ERROR, message, None);
        JsonRpcMessage::error(error, Some(id))
    }
}

#[derive(Default)]
struct TopLevel<'l> {
    is_message: bool,
    id: Option<&'l [u8]>,
}

/// Finds `jsonrpc` and `id` among the keys of an object, without a parser: the text need not be
/// valid, and may nest to any depth.
fn top_level(line: &[u8]) -> TopLevel<'_> {
    let mut found = TopLevel::default();
    if line.first() != Some(&b'{') {
        return found;
    }
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(byte) = line.get(at) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let end = string_end(line, at);
                let after = line.get(end..).unwrap_or_default().trim_ascii_start();
                if depth == 1
                    && let Some(value) = after.strip_prefix(b":")
                {
                    match line.get(at..end) {
                        Some(b"\"jsonrpc\"") => found.is_message = true,
                        Some(b"\"id\"") => found.id = Some(scalar(value.trim_ascii_start())),
                        _ => {}
                    }
                }
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// The place after the string that begins at `start`.
fn string_end(line: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = line.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    line.len()
}

/// A number or a string at the beginning of a text.
fn scalar(text: &[u8]) -> &[u8] {
    let end = match text.first() {
        Some(b'"') => string_end(text, 0),
        _ => {
            let ends = |byte: &u8| matches!(byte, b',' | b'}') || byte.is_ascii_whitespace();
            text.iter().position(ends).unwrap_or(text.len())
        }
    };
    &text[..end.min(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn examine(line: &[u8]) -> Option<(Option<RequestId>, String)> {
        let error = serde_json::from_slice::<ServerJsonRpcMessage>(line).unwrap_err();
        Unreadable::examine(line, &error).map(|found| (found.id, found.what))
    }

    #[test]
    fn an_answer_is_told_from_what_a_program_prints() {
        for printed in [&b"starting"[..], b"[1, 2]", b"{\"id\": 3}", b"\xff\xfe{[[["] {
            assert_eq!(
                examine(printed),
                None,
                "{}",
                String::from_utf8_lossy(printed)
            );
        }
        let nested = b"{\"log\": {\"jsonrpc\": \"2.0\", \"id\": 3}, \xff";
        assert_eq!(examine(nested), None);
    }

    #[test]
    fn the_request_of_an_unreadable_answer_is_found() {
        let latin =
            b"{\"jsonrpc\":\"2.0\",\"result\":{\"id\":9,\"text\":\"caf\xe9 \\\" \"},\"id\": 7 }";
        let found = (
            Some(RequestId::Number(7)),
            "an answer that is not UTF-8".to_owned(),
        );
        assert_eq!(examine(latin), Some(found));
        let deep = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{}{}}}",
            "[".repeat(5_000),
            "]".repeat(5_000)
        );
        let found = (
            Some(RequestId::Number(5)),
            "an answer that nests too deep".to_owned(),
        );
        assert_eq!(examine(deep.as_bytes()), Some(found));
        let none = (None, "a malformed answer".to_owned());
        assert_eq!(
            examine(b"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"result\":{}}"),
            Some(none)
        );
    }
}
