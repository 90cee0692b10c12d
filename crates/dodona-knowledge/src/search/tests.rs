//! What the index finds, and in which order.

use dodona_proto::SourceKind;
use proptest::prelude::*;
use tempfile::TempDir;

use super::pick::MAX_PER_FILE;
use super::*;
use crate::parse::Chunk;

fn chunk(line: u32, heading: &str, symbol: &str, text: &str) -> Chunk {
    Chunk {
        line_start: line,
        line_end: line + 9,
        heading: heading.into(),
        symbol: symbol.into(),
        text: text.into(),
    }
}

fn note(path: &str, title: &str, text: &str) -> FileChunks {
    FileChunks {
        path: path.into(),
        kind: SourceKind::Note,
        language: None,
        title: title.into(),
        chunks: vec![chunk(1, "", "", text)],
    }
}

fn code(path: &str, symbols: &[(&str, &str)]) -> FileChunks {
    let chunks = symbols.iter().enumerate();
    FileChunks {
        path: path.into(),
        kind: SourceKind::Code,
        language: Some("rust"),
        title: path.rsplit('/').next().unwrap_or(path).into(),
        chunks: chunks
            .map(|(n, (symbol, text))| chunk(1 + 10 * n as u32, "", symbol, text))
            .collect(),
    }
}

fn corpus() -> Vec<FileChunks> {
    vec![
        note(
            "docs/rules.md",
            "Rules",
            "A rule is evaluated when its trigger fires. The evaluator reads a snapshot.",
        ),
        note(
            "docs/plugins.md",
            "Plugins",
            "Plugins contribute methods. Some rules come with a plugin.",
        ),
        note(
            "docs/garden.md",
            "Tomatoes",
            "Water the tomatoes at dawn. The journal is kept in the shed.",
        ),
        note(
            "docs/scattered.md",
            "Misc",
            "The write was slow, so we went ahead and ate. The log of wood burnt.",
        ),
        note(
            "docs/wal.md",
            "Storage",
            "Every change goes to the write ahead log before the page.",
        ),
        note("docs/日本.md", "旅行", "東京都は日本の首都です。"),
        note("docs/cafe.md", "Orte", "Das Café Müller hat naïve Malerei."),
        code(
            "src/http/server.rs",
            &[
                (
                    "HTTPServer2",
                    "pub struct HTTPServer2 { listener: TcpListener }",
                ),
                (
                    "parse_request_header",
                    "fn parse_request_header(buf: &[u8]) -> Header { todo }",
                ),
                ("open", "fn open(path: &Path) -> File { open_file(path) }"),
            ],
        ),
        code(
            "src/other.rs",
            &[
                (
                    "run",
                    "fn run() { parse_request_header(buf); open(path); HTTPServer2::new() }",
                ),
                (
                    "open_all",
                    "fn open_all() { for path in paths { open(path) } }",
                ),
            ],
        ),
    ]
}

fn indexed(files: Vec<FileChunks>) -> (TempDir, SearchIndex) {
    let dir = tempfile::tempdir().unwrap();
    let index = SearchIndex::open(&dir.path().join("index")).unwrap();
    index.replace(files).unwrap();
    (dir, index)
}

fn ask(text: &str) -> Question {
    Question {
        text: text.into(),
        limit: 10,
        ..Question::default()
    }
}

fn found(index: &SearchIndex, question: &Question) -> Vec<String> {
    let hits = index.search(question).unwrap();
    assert!(hits.is_sorted_by(|a, b| a.score >= b.score) || hits.len() > MAX_PER_FILE);
    let name = |hit: Hit| match hit.symbol.as_str() {
        "" => hit.path,
        symbol => format!("{}#{symbol}", hit.path),
    };
    hits.into_iter().map(name).collect()
}

#[test]
fn the_best_passage_comes_first() {
    let (_dir, index) = indexed(corpus());
    for (question, best) in [
        ("How are rules evaluated?", "docs/rules.md"),
        ("evaluating a rule", "docs/rules.md"),
        ("watering tomato", "docs/garden.md"),
        ("plugin", "docs/plugins.md"),
        ("write ahead log", "docs/wal.md"),
        ("\"write ahead log\"", "docs/wal.md"),
        (
            "parse the header of a request",
            "src/http/server.rs#parse_request_header",
        ),
        (
            "parseRequestHeader",
            "src/http/server.rs#parse_request_header",
        ),
        ("http server", "src/http/server.rs#HTTPServer2"),
        ("httpserver2", "src/http/server.rs#HTTPServer2"),
        ("open", "src/http/server.rs#open"),
        ("what is the definition of open?", "src/http/server.rs#open"),
        ("evaluat", "docs/rules.md"),
        ("tomat", "docs/garden.md"),
        ("首都", "docs/日本.md"),
        ("都", "docs/日本.md"),
        ("cafe muller", "docs/cafe.md"),
        ("CAFE\u{301} NAIVE", "docs/cafe.md"),
    ] {
        let hits = found(&index, &ask(question));
        assert_eq!(hits.first().map(String::as_str), Some(best), "{question}");
    }
}

#[test]
fn a_quoted_phrase_must_occur() {
    let (_dir, index) = indexed(corpus());
    assert_eq!(
        found(&index, &ask("the \"write ahead log\"")),
        ["docs/wal.md"]
    );
    assert_eq!(
        found(&index, &ask("\"request header\"")).len(),
        2,
        "parts of an identifier are a phrase"
    );
    assert!(found(&index, &ask("log \"ahead write\"")).is_empty());
}

#[test]
fn a_phrase_beats_scattered_words_and_a_title_beats_the_body() {
    let words = "so the the of log was write in and ahead a far";
    let (_dir, index) = indexed(vec![
        note("scattered.md", "x", words),
        note(
            "phrase.md",
            "x",
            "so the of was the write ahead log in and a far",
        ),
        note("body.md", "something", "the garden and the moon"),
        note("title.md", "garden", "something and the moon"),
    ]);
    assert_eq!(
        found(&index, &ask("write ahead log")),
        ["phrase.md", "scattered.md"]
    );
    assert_eq!(found(&index, &ask("garden")), ["title.md", "body.md"]);
}

#[test]
fn filters_limit_what_is_found() {
    let (_dir, index) = indexed(corpus());
    let kinds = |kinds: Vec<SourceKind>| Question {
        kinds,
        ..ask("open the rules")
    };
    let notes = found(&index, &kinds(vec![SourceKind::Note]));
    assert!(!notes.is_empty() && notes.iter().all(|p| p.starts_with("docs/")));
    let both = found(&index, &kinds(vec![SourceKind::Note, SourceKind::Code]));
    assert_eq!(both, found(&index, &kinds(vec![])));
    let language = |l: &str| Question {
        language: Some(l.into()),
        ..ask("open")
    };
    assert_eq!(found(&index, &language("Rust")).len(), 3);
    assert!(found(&index, &language("go")).is_empty());
    for (path, count) in [
        ("src/http", 1),
        ("src/http/", 1),
        ("./src", 3),
        ("src/other.rs", 2),
        ("src/ht", 0),
        ("", 3),
        (".", 3),
    ] {
        let below = Question {
            path: Some(path.into()),
            ..ask("open")
        };
        assert_eq!(found(&index, &below).len(), count, "{path:?}");
    }
}

#[test]
fn a_replaced_file_leaves_nothing_behind() {
    let (_dir, index) = indexed(corpus());
    let before = index.passage_count();
    index
        .replace(vec![note("docs/rules.md", "Rules", "Only zebras now.")])
        .unwrap();
    assert_eq!(index.passage_count(), before);
    assert!(!found(&index, &ask("evaluated")).contains(&"docs/rules.md".into()));
    assert_eq!(found(&index, &ask("zebra")), ["docs/rules.md"]);
    let gone = FileChunks {
        chunks: Vec::new(),
        ..note("docs/rules.md", "", "")
    };
    index.replace(vec![gone]).unwrap();
    assert_eq!(index.passage_count(), before - 1);
    assert!(found(&index, &ask("zebra")).is_empty());
    // The same file twice in one call: the last one counts.
    let twice = |text| note("a.md", "a", text);
    index.replace(vec![twice("lion"), twice("tiger")]).unwrap();
    assert!(found(&index, &ask("lion")).is_empty());
    assert_eq!(found(&index, &ask("tiger")), ["a.md"]);
}

#[test]
fn an_index_is_there_again_after_reopening() {
    let (dir, index) = indexed(corpus());
    assert!(index.was_recreated());
    let before = index.search(&ask("rules")).unwrap();
    drop(index);
    // What a process leaves that was killed: the lock file, which no longer locks.
    std::fs::write(dir.path().join("index/.tantivy-writer.lock"), "").unwrap();
    let index = SearchIndex::open(&dir.path().join("index")).unwrap();
    assert!(!index.was_recreated() && index.is_sound().unwrap());
    assert_eq!(index.search(&ask("rules")).unwrap(), before);
    index.replace(vec![note("n.md", "n", "narwhal")]).unwrap();
    assert_eq!(found(&index, &ask("narwhal")), ["n.md"]);
}

#[test]
fn many_small_writes_are_merged() {
    let (dir, index) = indexed(corpus());
    for n in 0..40 {
        let text = format!("walrus number {n}");
        index.replace(vec![note("n.md", "n", &text)]).unwrap();
    }
    assert_eq!(found(&index, &ask("walrus number 39")), ["n.md"]);
    let files = std::fs::read_dir(dir.path().join("index")).unwrap().count();
    assert!(files < 120, "{files} files");
}

#[test]
fn a_damaged_or_foreign_directory_is_made_anew() {
    type Damage = fn(&Path);
    let damages: [Damage; 5] = [
        |dir| std::fs::write(dir.join("meta.json"), "{ nonsense").unwrap(),
        |dir| std::fs::remove_file(dir.join("meta.json")).unwrap(),
        |dir| std::fs::write(dir.join("dodona-search.version"), "0").unwrap(),
        |dir| each(dir, "idx", |file| std::fs::remove_file(file).unwrap()),
        |dir| each(dir, "store", |file| std::fs::write(file, "x").unwrap()),
    ];
    for (n, damage) in damages.into_iter().enumerate() {
        let (dir, index) = indexed(corpus());
        drop(index);
        damage(&dir.path().join("index"));
        let index = SearchIndex::open(&dir.path().join("index")).unwrap();
        assert!(index.was_recreated(), "damage {n}");
        assert_eq!(index.passage_count(), 0);
        index.replace(corpus()).unwrap();
        assert_eq!(found(&index, &ask("tomatoes")), ["docs/garden.md"]);
    }
}

fn each(dir: &Path, extension: &str, act: impl Fn(&Path)) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == extension) {
            act(&path);
        }
    }
}

#[test]
fn one_file_does_not_crowd_out_the_others() {
    let mut files = vec![note(
        "other.md",
        "o",
        "a walrus among many other words here",
    )];
    let mut many = note("many.md", "walrus", "walrus");
    many.chunks = (0..8)
        .map(|n| chunk(1 + 10 * n, "walrus", "", "walrus"))
        .collect();
    // Overlaps the first, and is dropped for it.
    many.chunks.push(chunk(5, "walrus", "", "walrus walrus"));
    files.push(many);
    let (_dir, index) = indexed(files);
    let hits = index.search(&ask("walrus")).unwrap();
    assert_eq!(hits[MAX_PER_FILE].path, "other.md");
    assert!(hits.iter().any(|hit| hit.path == "many.md"));
    for (n, a) in hits.iter().enumerate() {
        let clash =
            |b: &Hit| a.path == b.path && a.line_start <= b.line_end && b.line_start <= a.line_end;
        assert!(!hits[n + 1..].iter().any(clash));
    }
}

#[test]
fn equal_scores_go_by_path_and_line() {
    let files = ["c.md", "a.md", "b.md"].map(|path| note(path, "x", "walrus"));
    let (_dir, index) = indexed(files.into());
    assert_eq!(found(&index, &ask("walrus")), ["a.md", "b.md", "c.md"]);
}

#[test]
fn hostile_questions_find_something_or_nothing() {
    let (_dir, index) = indexed(corpus());
    let long = "rules OR (".repeat(100_000);
    for text in [
        "",
        " ",
        "\0",
        "\"",
        "\"\"\"\"\"",
        "((((",
        "AND OR NOT",
        "body:*",
        "*",
        "~^",
        "🦀🦀",
        "[a TO b]",
        "\u{202e}\u{200b}",
        "-",
        "'s",
        &long,
    ] {
        index.search(&ask(text)).unwrap();
    }
    assert!(!index.search(&ask(&long)).unwrap().is_empty());
    let none = Question {
        limit: 0,
        ..ask("rules")
    };
    assert!(index.search(&none).unwrap().is_empty());
    let all = Question {
        limit: usize::MAX,
        ..ask("rules")
    };
    assert!(!index.search(&all).unwrap().is_empty());
    let empty = indexed(Vec::new());
    assert!(empty.1.search(&ask("rules")).unwrap().is_empty());
}

#[test]
fn any_text_is_a_question() {
    let (_dir, index) = indexed(corpus());
    let text = prop_oneof![
        any::<String>(),
        "[\"a-zA-Z_ 東京é\u{301}'’0-9\\-]{0,60}",
        "(\"[a-z ]{0,9}\" ?){0,5}",
    ];
    proptest!(ProptestConfig::with_cases(300), |(text in text, path in any::<Option<String>>())| {
        let question = Question { path, ..ask(&text) };
        prop_assert!(index.search(&question).is_ok());
    });
}

#[test]
fn any_text_can_be_indexed() {
    let (_dir, index) = indexed(Vec::new());
    proptest!(ProptestConfig::with_cases(20), |(path in any::<String>(), text in any::<String>())| {
        index.replace(vec![note(&path, &text, &text)]).unwrap();
        index.search(&ask(&text)).unwrap();
    });
}
