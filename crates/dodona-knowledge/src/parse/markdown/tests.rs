use super::*;
use crate::parse::Link;

fn note(text: &str) -> Parsed {
    parse("stem", text)
}

/// Line range, path, own heading.
fn chunks(text: &str) -> Vec<(u32, u32, String, String)> {
    let chunks = note(text).chunks.into_iter();
    chunks
        .map(|c| (c.line_start, c.line_end, c.heading, c.symbol))
        .collect()
}

fn row(start: u32, end: u32, heading: &str, symbol: &str) -> (u32, u32, String, String) {
    (start, end, heading.to_owned(), symbol.to_owned())
}

fn link(target: &str, heading: &str, alias: &str, line: u32) -> Link {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    Link {
        target: target.to_owned(),
        heading: some(heading),
        alias: some(alias),
        line,
    }
}

const BODY: &str = "one\ntwo\nthree\n";

#[test]
fn a_section_is_a_chunk_with_the_headings_above_it() {
    let text = format!(
        "before\n\n# Top\n{BODY}\n## Inner *bold* `code`\n{BODY}\n### Deep ###\n{BODY}\n## Second\n{BODY}"
    );
    assert_eq!(
        chunks(&text),
        [
            row(1, 1, "", ""),
            row(3, 6, "", "Top"),
            row(8, 11, "Top", "Inner bold code"),
            row(13, 16, "Top › Inner bold code", "Deep"),
            row(18, 21, "Top", "Second"),
        ]
    );
}

#[test]
fn setext_headings_count_and_rules_do_not() {
    let text = format!("Title\n=====\n{BODY}\nSub\ntitle\n---\n{BODY}\n---\n\n- item\n---\n{BODY}");
    assert_eq!(
        chunks(&text),
        [row(1, 5, "", "Title"), row(7, 20, "Title", "Sub title")]
    );
}

#[test]
fn what_looks_like_a_heading_in_code_or_a_comment_is_none() {
    for (open, close) in [
        ("```sh", "```"),
        ("~~~~\n~~~", "~~~~"),
        ("<!--", "-->"),
        ("- ```", "  ```"),
        ("> ```", "> ```"),
    ] {
        let text =
            format!("# Real\n{BODY}{open}\n# fake #tag [[no]]\n\n## fake\n{close}\nend #yes\n");
        let text = if open.starts_with('>') {
            text.replace(
                "\n# fake #tag [[no]]\n\n## fake\n",
                "\n> # fake [[no]]\n> ## fake\n",
            )
        } else {
            text
        };
        let parsed = note(&text);
        let symbols: Vec<_> = parsed.chunks.iter().map(|c| c.symbol.as_str()).collect();
        assert_eq!(symbols, ["Real"], "{open}");
        assert_eq!(parsed.tags, ["yes"], "{open}");
        assert_eq!(parsed.links, [], "{open}");
    }
    assert_eq!(
        chunks("    # indented\n#no space\n####### seven\n").len(),
        1
    );
    assert_eq!(note("```\n# open to the end").title, "stem");
}

#[test]
fn short_sections_share_a_chunk_with_what_follows() {
    let text = format!("# Top\n\n## A\na\n\n## B\nb\n\n## C\n{BODY}\n# Next\n{BODY}");
    assert_eq!(
        chunks(&text),
        [row(1, 12, "Top", "A · B · C"), row(14, 17, "", "Next")]
    );
    // A short last section has nothing below it that it could go with.
    let text = format!("# A\n{BODY}\n## B\nb\n\n# C\n{BODY}");
    assert_eq!(
        chunks(&text),
        [row(1, 4, "", "A"), row(6, 7, "A", "B"), row(9, 12, "", "C")]
    );
}

#[test]
fn a_long_section_is_cut_at_blank_lines_outside_of_code() {
    let paragraph = "word ".repeat(20);
    let text = format!(
        "# Long\n{}",
        format!("{paragraph}\n{paragraph}\n\n").repeat(40)
    );
    let chunks = note(&text).chunks;
    assert!(chunks.len() > 2);
    for chunk in &chunks {
        assert_eq!(chunk.symbol, "Long");
        assert!(chunk.text.chars().count() <= 2_600, "{}", chunk.text.len());
        assert!(chunk.text.ends_with(&paragraph));
    }
    let text = format!(
        "# H\n{}```\n{}```\n",
        "a\n\n".repeat(12),
        "x\n\n".repeat(15)
    );
    let chunks = note(&text).chunks;
    assert_eq!(chunks.len(), 1);
}

#[test]
fn titles_come_from_frontmatter_then_heading_then_file_name() {
    assert_eq!(note("---\ntitle: F\n---\n# H\n").title, "F");
    assert_eq!(note("---\nx: y\n---\n## No\n# H `c`\n").title, "H c");
    assert_eq!(note("## only deeper\n").title, "stem");
    assert_eq!(note("").title, "stem");
}

#[test]
fn frontmatter_is_in_no_chunk_but_counts_lines() {
    let parsed = note(
        "---\r\ntitle: T\r\ntags: [x]\r\naliases:\r\n  - Other\r\n---\r\n\r\n# H\r\ntext #y\r\n",
    );
    assert_eq!(parsed.tags, ["x", "y"]);
    assert_eq!(parsed.aliases, ["Other"]);
    assert_eq!(parsed.chunks.len(), 1);
    assert_eq!(
        (parsed.chunks[0].line_start, parsed.chunks[0].line_end),
        (8, 9)
    );
    assert_eq!(parsed.chunks[0].text, "# H\ntext #y");
}

#[test]
fn links_in_every_form() {
    let text = "\
[[note]] and [[folder/note|an alias]]
![[note#Some heading]] [[#here]] [[a#b|c]]
| [[cell\\|alias]] | [[ö/日本]] |
[text](./other%20note.md#frag%20ment \"title\") [up](../x.md) [<a b>](<a b.md>)
no: [web](https://x.org/a.md) [mail](mailto:a@b.md) [anchor](#x) [pic](a.png) \\[[escaped]] [[]] [[open
`[[code]]` ``[[more ` code]]`` `open
code]] [[x]]` [[real]]
[![badge](b.svg)](docs/a.md)

[ref]: docs/ref.md
[two]: <docs/two.md> \"Two\"
[^1]: note.md
[[last]]: not a definition [[1]](cited.md)
";
    assert_eq!(
        note(text).links,
        [
            link("note", "", "", 1),
            link("folder/note", "", "an alias", 1),
            link("note", "Some heading", "", 2),
            link("", "here", "", 2),
            link("a", "b", "c", 2),
            link("cell", "", "alias", 3),
            link("ö/日本", "", "", 3),
            link("./other note.md", "frag ment", "text", 4),
            link("../x.md", "", "up", 4),
            link("a b.md", "", "<a b>", 4),
            link("real", "", "", 7),
            link("docs/a.md", "", "badge", 8),
            link("docs/ref.md", "", "", 10),
            link("docs/two.md", "", "", 11),
            link("last", "", "", 13),
            link("cited.md", "", "[1]", 13),
        ]
    );
}

#[test]
fn a_link_to_nowhere_is_no_link() {
    for text in ["a [b]() c", "[](   )", "squares[2]()", "[b](<>)", "![]()"] {
        assert_eq!(note(text).links, [], "{text}");
    }
}

#[test]
fn tags_are_words_with_a_letter_outside_of_code_and_addresses() {
    let text = "\
#start and #mid/sub-tag, (#paren) #größe #日本語 #हिन्दी
# Heading #inheading
not: #12 a#b https://x.org/#frag [x](y#z) `#code` \\#escaped # #- &#39; \"#attr\"
#mid/sub-tag again, #end. #v1 #trail/ 
";
    assert_eq!(
        note(text).tags,
        [
            "start",
            "mid/sub-tag",
            "paren",
            "größe",
            "日本語",
            "हिन्दी",
            "inheading",
            "end",
            "v1",
            "trail"
        ]
    );
}
