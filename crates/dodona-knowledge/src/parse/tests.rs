//! What holds for every file, whatever is in it.

use proptest::prelude::*;

use super::*;

const EXTENSIONS: [&str; 12] = [
    "rs", "py", "ts", "tsx", "js", "go", "java", "c", "h", "cpp", "md", "txt",
];

/// Checks a file's chunks, symbols and numbers against its lines.
fn check(extension: &str, text: &str) -> Parsed {
    let parsed = parse(&format!("dir/file.{extension}"), text);
    let lines: Vec<&str> = text.lines().collect();
    let mut covered = vec![0_u32; lines.len()];
    let mut last = 0;
    for chunk in &parsed.chunks {
        assert!(chunk.line_start > last, "overlap or disorder: {chunk:?}");
        assert!(chunk.line_end >= chunk.line_start, "{chunk:?}");
        last = chunk.line_end;
        let (from, to) = (chunk.line_start as usize - 1, chunk.line_end as usize);
        assert_eq!(chunk.text, lines[from..to].join("\n"));
        for count in &mut covered[from..to] {
            *count += 1;
        }
    }
    let note = kind_of(&format!("file.{extension}")) == SourceKind::Note;
    for (index, line) in lines.iter().enumerate() {
        let front = note
            && parsed
                .chunks
                .first()
                .is_none_or(|c| index + 1 < c.line_start as usize);
        assert!(covered[index] <= 1);
        if !line.trim().is_empty() && !front {
            assert_eq!(covered[index], 1, "line {} {line:?} of {text:?}", index + 1);
        }
    }
    let len = u32::try_from(lines.len()).expect("a test text is short");
    for symbol in &parsed.symbols {
        assert!(
            1 <= symbol.line_start && symbol.line_start <= symbol.line_end,
            "{symbol:?}"
        );
        assert!(symbol.line_end <= len, "{symbol:?}");
    }
    for line in parsed
        .references
        .iter()
        .map(|r| r.line)
        .chain(parsed.links.iter().map(|l| l.line))
    {
        assert!(1 <= line && line <= len);
    }
    parsed
}

/// Pieces that mean something to one grammar or another, in any order.
const PIECES: [&str; 48] = [
    "fn f() {\n",
    "}\n",
    "impl A for B {\n",
    "pub struct S {\n",
    "/// doc\n",
    "#[attr]\n",
    "def f(x):\n    ",
    "class C:\n    ",
    "@deco\n",
    "return 1\n",
    "function f() {",
    "const x = () => {",
    "export default ",
    "func (r *T) M() {\n",
    "type T struct {\n",
    "template <class T>\n",
    "namespace n {\n",
    "void C::f() {\n",
    "#define A \\\n",
    "#ifdef X\n",
    "#endif\n",
    "/* ",
    " */\n",
    "// line\n",
    "\"",
    "'",
    "`",
    "```\n",
    "~~~\n",
    "# H\n",
    "## H2\n",
    "===\n",
    "---\n",
    "text\n",
    "\n",
    "\r\n",
    "\r",
    "\t",
    "[[a|b]]",
    "[[",
    "](x.md)",
    "#tag ",
    "- item\n",
    "> quote\n",
    "<!-- ",
    "é日\u{1f600}",
    "\u{0}",
    "(((",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_covered_once(text in "(?s).{0,300}") {
        for extension in EXTENSIONS {
            check(extension, &text);
        }
    }

    #[test]
    fn any_heap_of_pieces_is_covered_once(pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..120)) {
        let text = pieces.concat();
        for extension in EXTENSIONS {
            check(extension, &text);
        }
    }
}

#[test]
fn deep_nesting_neither_hangs_nor_overflows() {
    let all = &EXTENSIONS[..];
    // Brackets below the limit and prefix operators go through the parsers, the rest is refused.
    for (open, close, depth, extensions) in [
        ("(", ")", 900, all),
        ("{[", "]}", 450, all),
        ("(", ")", 50_000, all),
        ("{[", "]}", 50_000, all),
        ("- ", "", 50_000, &["rs", "md"]),
        ("> ", "", 50_000, &["tsx", "md"]),
    ] {
        let deep = format!("x = {}1{}\n", open.repeat(depth), close.repeat(depth));
        let unclosed = open.repeat(depth);
        for extension in extensions {
            check(extension, &deep);
            check(extension, &unclosed);
        }
    }
}

/// Pieces in an order that only looks random, with closing brackets enough to stay shallow.
fn garbage(bytes: usize) -> String {
    let mut state = 7_u32;
    let mut garbage = String::new();
    while garbage.len() < bytes {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let piece = PIECES[(state >> 16) as usize % PIECES.len()];
        garbage.push_str(piece);
        garbage.extend(piece.chars().filter(|c| "([{".contains(*c)).map(|_| '}'));
    }
    garbage
}

#[test]
fn a_megabyte_of_garbage_is_cut_into_chunks() {
    let (much, some) = (garbage(1 << 20), garbage(1 << 15));
    for extension in EXTENSIONS {
        check(extension, &some);
    }
    for extension in ["rs", "tsx", "md", "txt"] {
        assert!(check(extension, &much).chunks.len() > 100);
    }
}

#[test]
fn the_kind_of_a_file_follows_from_its_name() {
    for (path, kind) in [
        ("notes/Über uns.md", SourceKind::Note),
        ("README.MARKDOWN", SourceKind::Note),
        ("src/main.rs", SourceKind::Code),
        ("a.b/c.TSX", SourceKind::Code),
        ("include/x.h", SourceKind::Code),
        ("win\\dir\\x.py", SourceKind::Code),
        ("Makefile", SourceKind::Text),
        (".md", SourceKind::Text),
        ("rs", SourceKind::Text),
        ("", SourceKind::Text),
    ] {
        assert_eq!(kind_of(path), kind, "{path}");
    }
}

#[test]
fn other_text_has_its_name_as_title_and_windows_as_chunks() {
    let text = "line\n".repeat(120);
    let parsed = check("txt", &text);
    assert_eq!(parsed.title, "file.txt");
    assert_eq!(parsed.language, None);
    let ranges: Vec<_> = parsed
        .chunks
        .iter()
        .map(|c| (c.line_start, c.line_end))
        .collect();
    assert_eq!(ranges, [(1, 50), (51, 100), (101, 120)]);
}
