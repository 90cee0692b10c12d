//! Server-sent events, from bytes that come in any pieces. Only their data counts here: model
//! providers say in it what an event is.

/// What is wrong with a stream of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event of the answer is no text")]
pub(crate) struct NotText;

/// Takes bytes and gives the data of events, their lines joined. It holds back at most one unfinished line and one unfinished
/// event; how large these may grow is for the one who feeds it to bound.
#[derive(Debug, Default)]
pub(crate) struct SseParser {
    line: Vec<u8>,
    /// The last byte was a carriage return: a line feed that follows ends no further line.
    after_return: bool,
    past_first_line: bool,
    data: Option<String>,
}

impl SseParser {
    /// Takes the next bytes.
    pub(crate) fn feed(&mut self, bytes: &[u8], events: &mut Vec<String>) -> Result<(), NotText> {
        let mut rest = bytes;
        while let Some(&first) = rest.first() {
            if std::mem::take(&mut self.after_return) && first == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                self.line.extend_from_slice(rest);
                break;
            };
            self.line.extend_from_slice(&rest[..end]);
            self.after_return = rest[end] == b'\r';
            rest = &rest[end + 1..];
            let line = std::mem::take(&mut self.line);
            self.take_line(&line, events)?;
        }
        Ok(())
    }

    /// Whether an event has begun and not ended. A comment is none.
    pub(crate) fn is_within_event(&self) -> bool {
        self.data.is_some() || self.line.starts_with(b"data")
    }

    fn take_line(&mut self, line: &[u8], events: &mut Vec<String>) -> Result<(), NotText> {
        let line = std::str::from_utf8(line).map_err(|_| NotText)?;
        let line = match std::mem::replace(&mut self.past_first_line, true) {
            true => line,
            false => line.strip_prefix('\u{feff}').unwrap_or(line),
        };
        if line.is_empty() {
            events.extend(self.data.take());
            return Ok(());
        }
        // Comments begin with the colon; other fields say nothing here.
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        if field == "data" {
            let value = value.strip_prefix(' ').unwrap_or(value);
            match &mut self.data {
                Some(data) => data.extend(["\n", value]),
                None => self.data = Some(value.to_owned()),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<String>, NotText> {
        let (mut parser, mut events) = (SseParser::default(), Vec::new());
        for piece in pieces {
            parser.feed(piece, &mut events)?;
        }
        Ok(events)
    }

    #[test]
    fn lines_comments_and_every_line_end() {
        let text = "\u{feff}: hello\n\nevent: ping\r\ndata: {}\r\n\r\ndata:one\rdata: two\r\rid: 7\n\ndata\n\ndata: unfinished";
        let events = parse([text.as_bytes()]).unwrap();
        assert_eq!(events, ["{}", "one\ntwo", ""]);
    }

    #[test]
    fn a_comment_is_no_event_that_has_begun() {
        let (mut parser, mut events) = (SseParser::default(), Vec::new());
        for (piece, within) in [
            (": keep-alive\n\n", false),
            (": again", false),
            ("\nevent: x\n", false),
            ("data: {", true),
            ("}\n", true),
            ("\n", false),
        ] {
            parser.feed(piece.as_bytes(), &mut events).unwrap();
            assert_eq!(parser.is_within_event(), within, "after {piece:?}");
        }
    }

    #[test]
    fn what_is_no_text_is_said() {
        assert_eq!(parse([&b"data: \xff\n\n"[..]]), Err(NotText));
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: proptest::test_runner::RngSeed::Fixed(14), ..ProptestConfig::default() })]
        #[test]
        fn pieces_make_no_difference(
            lines in proptest::collection::vec("(data: |event: |: )?[a-zé漢🦀]{0,6}", 0..20),
            end in prop_oneof![Just("\n"), Just("\r\n"), Just("\r")],
            cuts in proptest::collection::vec(0usize..400, 0..12),
        ) {
            let text: String = lines.iter().map(|line| format!("{line}{end}")).collect();
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
            prop_assert_eq!(parse(pieces), parse([bytes]));
        }

        #[test]
        fn any_bytes_are_taken(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse([bytes.as_slice()]);
        }
    }
}
