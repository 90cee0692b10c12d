//! The text of a note that is written: what is kept of the one that was there.

use crate::parse::markdown::{frontmatter_extent, frontmatter_title};

const BOM: &str = "\u{feff}";

/// A title is asked for, and the frontmatter that is kept has another.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OtherTitle;

/// The text of a note with a new body. Frontmatter that is there stays as it is, byte for byte,
/// unless the body brings its own; so do the mark of the byte order, the way lines end and whether the
/// last one does. A title becomes a heading where the body begins with none.
pub(super) fn compose(
    existing: Option<&str>,
    body: &str,
    title: Option<&str>,
) -> Result<String, OtherTitle> {
    let body = body.strip_prefix(BOM).unwrap_or(body);
    let existing = existing.unwrap_or_default();
    let end = if existing.contains("\r\n") && !existing.replace("\r\n", "").contains('\n') {
        "\r\n"
    } else {
        "\n"
    };
    let own = frontmatter_extent(body);
    let (kept, body_front, text) = match own {
        0 => (front(existing, body, end), "", body),
        own => (mark(existing).to_owned(), &body[..own], &body[own..]),
    };
    let text = match title {
        Some(title) => with_heading(&format!("{kept}{body_front}"), text, title)?,
        None => text.to_owned(),
    };
    let mut written = format!("{body_front}{text}");
    let ends = existing.is_empty() || existing.ends_with('\n');
    if ends && !written.is_empty() && !written.ends_with('\n') {
        written.push('\n');
    }
    let written = match end {
        "\r\n" if !written.contains('\r') => written.replace('\n', "\r\n"),
        _ => written,
    };
    Ok(kept + &written)
}

fn mark(text: &str) -> &str {
    if text.starts_with(BOM) { BOM } else { "" }
}

/// What stands before the body and stays: frontmatter, and the blank lines below it.
fn front(existing: &str, body: &str, end: &str) -> String {
    let extent = frontmatter_extent(existing);
    if extent == 0 {
        return mark(existing).to_owned();
    }
    let mut front = existing[..extent].to_owned();
    if !front.ends_with('\n') {
        front.push_str(end);
    }
    let is_blank = |line: &&str| line.trim().is_empty();
    if !body
        .split_inclusive('\n')
        .next()
        .is_some_and(|line| is_blank(&line))
    {
        let below = existing[extent..].split_inclusive('\n');
        front.extend(
            below
                .take_while(is_blank)
                .filter(|line| line.ends_with('\n')),
        );
    }
    front
}

fn with_heading(front: &str, body: &str, title: &str) -> Result<String, OtherTitle> {
    let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
    match frontmatter_title(front) {
        Some(there) if there == title => return Ok(body.to_owned()),
        Some(_) => return Err(OtherTitle),
        None => {}
    }
    let begins = body.trim_start();
    if title.is_empty() || begins.starts_with("# ") {
        return Ok(body.to_owned());
    }
    let blank = &body[..body.len() - begins.len()];
    Ok(format!("{blank}# {title}\n\n{begins}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Frontmatter as it is found in the wild, each with what follows it.
    const WILD: &[(&str, &str)] = &[
        (
            "---\ntitle: Plain\ntags: [a, b]\n---\n",
            "\n# Plain\n\nText.\n",
        ),
        (
            "---\r\ntitle: Windows\r\n# a comment\r\n---\r\n",
            "\r\nText.\r\n",
        ),
        ("\u{feff}---\ntitle: Mark\n---\n", "text"),
        (
            "---\n# only a comment\nkey:   spaced   \n\n\nother: >-\n  folded\n  ---\n  text\n---\n",
            "---\nno frontmatter\n---\n",
        ),
        (
            "---\nanchors: &a {x: 1}\nuse: *a\nmulti: |\n  # not a heading\n  [[not a link]]\n...\n",
            "\n\n\nfar below\n",
        ),
        (
            "+++\ntitle = \"TOML\"\n[table]\nkey = '''\nraw\n'''\n+++\n",
            "text\n",
        ),
        (
            "---\ntabs:\t\"a\tb\"\nnull: ~\ndate: 2024-01-01T00:00:00+01:00\n---   \n",
            "text",
        ),
        ("---\n---\n", "empty\n"),
        ("---\nlast: line\n---", ""),
        ("---\nünïcode: 日本 🦀\nquoted: \"a: b # c\"\n---\n", "\n"),
        ("---\ndup: 1\ndup: 2\n- not: a list\n---\n", "text\n\n\n"),
    ];

    #[test]
    fn frontmatter_stays_as_it_is_byte_for_byte() {
        for (front, rest) in WILD {
            let existing = format!("{front}{rest}");
            let written = compose(Some(&existing), "New *body*.\n", None).unwrap();
            assert!(written.starts_with(front), "{front:?} became {written:?}");
            assert!(written.ends_with("New *body*.\n") || written.ends_with("New *body*.\r\n"));
            // What is written with the body that is there is the same note.
            let body = &existing[frontmatter_extent(&existing)..];
            if !body.starts_with("---\n") && front.ends_with('\n') {
                assert_eq!(compose(Some(&existing), body, None).unwrap(), existing);
            }
        }
    }

    #[test]
    fn a_body_with_frontmatter_of_its_own_brings_it() {
        let own = "---\ntitle: New\n---\nbody\n";
        assert_eq!(
            compose(Some("---\ntitle: Old\n---\nold\n"), own, None).unwrap(),
            own
        );
        let marked = compose(Some("\u{feff}old"), own, None).unwrap();
        assert_eq!(marked, format!("\u{feff}{own}"));
    }

    #[test]
    fn lines_end_as_they_did() {
        let written = compose(Some("a\r\nb\r\n"), "x\ny\n", None).unwrap();
        assert_eq!(written, "x\r\ny\r\n");
        assert_eq!(compose(Some("a\r\nb\n"), "x\ny\n", None).unwrap(), "x\ny\n");
    }

    #[test]
    fn a_title_is_a_heading_where_there_is_none() {
        let cases = [
            (None, "text\n", Ok("# New\n\ntext\n")),
            (None, "# Other\n", Ok("# Other\n")),
            (
                None,
                "---\na: b\n---\ntext\n",
                Ok("---\na: b\n---\n# New\n\ntext\n"),
            ),
            (
                Some("---\ntitle: New\n---\n\nold"),
                "text\n",
                Ok("---\ntitle: New\n---\n\ntext\n"),
            ),
            (Some("---\ntitle: Old\n---\nold"), "text\n", Err(OtherTitle)),
        ];
        for (existing, body, expected) in cases {
            let written = compose(existing, body, Some(" New\n"));
            assert_eq!(
                written,
                expected.map(str::to_owned),
                "{existing:?} {body:?}"
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn whatever_is_there_its_frontmatter_stays(existing in "\u{feff}?(---|\\+\\+\\+)?\n?[-a-z: =#\r\n\\[\\]|]{0,60}", body in "[-a-z#: \n]{0,40}") {
            let written = compose(Some(&existing), &body, None).unwrap();
            let extent = frontmatter_extent(&existing);
            if frontmatter_extent(&body) == 0 && extent > 0 {
                prop_assert!(written.starts_with(&existing[..extent]));
                // It is the whole of the new frontmatter too, but for the end of its last line.
                let now = frontmatter_extent(&written);
                prop_assert_eq!(written[..now].trim_end_matches(['\r', '\n']), existing[..extent].trim_end_matches(['\r', '\n']));
            }
            // Writing the same again changes nothing.
            prop_assert_eq!(compose(Some(&written), &body, None).unwrap(), written);
        }
    }
}
