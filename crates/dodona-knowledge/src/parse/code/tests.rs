use super::*;

/// A source with what must be found in it.
struct Case {
    extension: &'static str,
    source: &'static str,
    /// `kind container › name first-last`.
    symbols: &'static [&'static str],
    /// `first-last container › name`, or only the lines.
    chunks: &'static [&'static str],
    /// `name:line`, some of them.
    references: &'static [&'static str],
}

fn symbols(parsed: &Parsed) -> Vec<String> {
    let symbols = parsed.symbols.iter();
    symbols
        .map(|s| {
            let path = join(&s.container, &s.name);
            format!("{} {path} {}-{}", s.kind, s.line_start, s.line_end)
        })
        .collect()
}

fn chunks(parsed: &Parsed) -> Vec<String> {
    let chunks = parsed.chunks.iter();
    chunks
        .map(|c| {
            let path = join(&c.heading, &c.symbol);
            format!("{}-{} {path}", c.line_start, c.line_end)
        })
        .map(|line| line.trim_end().to_owned())
        .collect()
}

fn check(case: &Case) {
    let parsed = parse(case.extension, case.source);
    assert_eq!(symbols(&parsed), case.symbols, "{}", case.extension);
    assert_eq!(chunks(&parsed), case.chunks, "{}", case.extension);
    let found = parsed.references.iter();
    let found: Vec<_> = found.map(|r| format!("{}:{}", r.name, r.line)).collect();
    for reference in case.references {
        assert!(
            found.iter().any(|f| f == reference),
            "{}: no {reference} in {found:?}",
            case.extension
        );
    }
}

#[test]
fn rust() {
    check(&Case {
        extension: "rs",
        source: include_str!("fixtures/sample.rs.txt"),
        symbols: &[
            "type Store 6-10",
            "constant LIMIT 12-12",
            "type Store › Out 17-17",
            "method Store › load 19-24",
            "function Store › load › inner 22-22",
            "method Store › len 26-26",
            "interface Load 29-32",
            "method Load › load 30-31",
            "macro twice 34-36",
            "module tests 38-43",
            "function tests › loads 39-42",
        ],
        chunks: &[
            "1-4",
            "6-10 Store",
            "12-13",
            "15-17 Store",
            "19-24 Store › load",
            "26-27 Store",
            "29-29 Load",
            "30-32 Load › load",
            "34-36 twice",
            "38-43 tests › loads",
        ],
        references: &[
            "HashMap:3",
            "Disk:4",
            "disk:4",
            "HashMap:9",
            "sub:13",
            "Load:16",
            "Store:16",
            "open:23",
            "map:23",
            "D:23",
            "read:23",
            "assert_eq:41",
            "load:41",
        ],
    });
}

#[test]
fn python() {
    check(&Case {
        extension: "py",
        source: include_str!("fixtures/sample.py.txt"),
        symbols: &[
            "constant TIMEOUT 5-5",
            "class Base 8-21",
            "method Base › name 12-18",
            "function Base › name › helper 16-17",
            "method Base › fetch 20-21",
            "function index 24-26",
        ],
        chunks: &[
            "1-5",
            "8-10 Base",
            "12-18 Base › name",
            "20-21 Base › fetch",
            "24-26 index",
            "29-30",
        ],
        references: &[
            "path:2",
            "User:3",
            "Group:3",
            "Group:9",
            "property:12",
            "cached:13",
            "join:17",
            "helper:18",
            "U:20",
            "Group:20",
            "NotFound:21",
            "route:24",
            "Base:26",
            "fetch:26",
            "index:30",
        ],
    });
}

#[test]
fn typescript() {
    check(&Case {
        extension: "tsx",
        source: include_str!("fixtures/sample.tsx.txt"),
        symbols: &[
            "interface Props 4-8",
            "method Props › onClick 7-7",
            "type Id 10-10",
            "type Color 12-15",
            "constant LIMIT 17-17",
            "function Card 19-23",
            "class Service 25-40",
            "method Service › run 29-33",
            "method Service › stop 35-35",
            "method Service › handler 37-39",
            "module Util 42-46",
            "function Util › pad 43-45",
            "function main 48-50",
        ],
        chunks: &[
            "1-2",
            "4-8 Props",
            "10-10",
            "12-15 Color",
            "17-17",
            "19-23 Card",
            "25-27 Service",
            "29-33 Service › run",
            "35-35 Service",
            "37-40 Service › handler",
            "42-46 Util › pad",
            "48-50 main",
        ],
        references: &[
            "React:1",
            "useState:1",
            "api:2",
            "Base:5",
            "User:6",
            "Props:20",
            "useState:21",
            "Panel:22",
            "render:22",
            "Injectable:25",
            "Parent:26",
            "Runs:26",
            "Log:30",
            "Promise:31",
            "Item:32",
            "find:32",
            "stop:38",
            "padStart:44",
            "Card:49",
        ],
    });
}

#[test]
fn javascript() {
    check(&Case {
        extension: "js",
        source: include_str!("fixtures/sample.js.txt"),
        symbols: &[
            "constant fs 1-1",
            "function add 3-8",
            "class Queue 10-18",
            "method Queue › of 13-15",
            "method Queue › size 17-17",
            "constant api 20-27",
            "method api › start 21-23",
            "function api › stop 24-26",
            "function run 29-31",
        ],
        chunks: &[
            "1-1",
            "3-8 add",
            "10-11 Queue",
            "13-15 Queue › of",
            "17-18 Queue",
            "20-20 api",
            "21-23 api › start",
            "24-27 api › stop",
            "29-31 run",
            "33-35",
        ],
        references: &[
            "Base:10",
            "Queue:14",
            "add:22",
            "close:25",
            "start:30",
            "describe:33",
            "it:34",
        ],
    });
}

#[test]
fn go() {
    check(&Case {
        extension: "go",
        source: include_str!("fixtures/sample.go.txt"),
        symbols: &[
            "constant Low 10-10",
            "constant High 11-11",
            "constant client 14-14",
            "type Store 16-19",
            "interface Loader 21-24",
            "method Loader › Load 22-23",
            "method Store › Load 26-29",
            "function New 31-33",
        ],
        chunks: &[
            "1-14",
            "16-19 Store",
            "21-21 Loader",
            "22-24 Loader › Load",
            "26-29 Store › Load",
            "31-33 New",
        ],
        references: &[
            "http:5",
            "Client:14",
            "Item:18",
            "Store:27",
            "check:28",
            "Store:31",
            "Store:32",
        ],
    });
}

#[test]
fn java() {
    check(&Case {
        extension: "java",
        source: include_str!("fixtures/sample.java.txt"),
        symbols: &[
            "class Cart 5-31",
            "constant Cart › MAX 10-10",
            "method Cart › Cart 13-15",
            "method Cart › total 17-21",
            "type Cart › State 23-26",
            "interface Cart › Visitor 28-30",
            "method Cart › Visitor › visit 29-29",
            "class Point 33-37",
            "method Point › sum 34-36",
        ],
        chunks: &[
            "1-3",
            "5-11 Cart",
            "13-15 Cart › Cart",
            "17-21 Cart › total",
            "23-26 Cart › State",
            "28-31 Cart › Visitor",
            "33-33 Point",
            "34-37 Point › sum",
        ],
        references: &[
            "List:3",
            "Entity:8",
            "Base:9",
            "Runs:9",
            "Item:11",
            "Override:18",
            "mapToInt:20",
            "price:20",
            "Cart:29",
        ],
    });
}

#[test]
fn c() {
    check(&Case {
        extension: "c",
        source: include_str!("fixtures/sample.c.txt"),
        symbols: &[
            "constant SIZE 3-3",
            "macro MAX 4-5",
            "type node 7-11",
            "type point_t 13-15",
            "type color 17-17",
            "function add 19-20",
            "constant names 22-22",
            "function make_node 24-31",
            "function main 33-37",
        ],
        chunks: &[
            "1-3",
            "4-5 MAX",
            "7-11 node",
            "13-15 point_t",
            "17-17",
            "19-20 add",
            "22-22",
            "24-31 make_node",
            "33-37 main",
        ],
        references: &[
            "node:9",
            "node:25",
            "xmalloc:28",
            "MAX:29",
            "add:29",
            "point_t:34",
            "run:35",
        ],
    });
}

#[test]
fn cpp() {
    check(&Case {
        extension: "cpp",
        source: include_str!("fixtures/sample.cpp.txt"),
        symbols: &[
            "module geo 3-40",
            "class geo › Shape 5-21",
            "method geo › Shape › Shape 9-9",
            "method geo › Shape › ~Shape 10-10",
            "method geo › Shape › area 12-15",
            "method geo › Shape › operator= 17-17",
            "class geo › Point 23-25",
            "type geo › Points 27-27",
            "type geo › Mode 29-29",
            "method geo › Circle › area 31-33",
            "function geo › twice 35-38",
            "function main 42-45",
        ],
        chunks: &[
            "1-1",
            "3-10 geo › Shape",
            "12-15 geo › Shape › area",
            "17-21 geo › Shape",
            "23-25 geo › Point",
            "27-29 geo",
            "31-33 geo › Circle › area",
            "35-40 geo › twice",
            "42-45 main",
        ],
        references: &[
            "Base:7",
            "compute:14",
            "Shape:17",
            "Point:27",
            "sqrt:32",
            "pi:32",
            "Point:43",
        ],
    });
}

#[test]
fn a_signature_is_the_line_with_the_name() {
    let source = "#[inline]\npub fn a(\n    x: u8,\n) {\n}\n\nimpl B {\n    const C: u8 = 1;\n}\n";
    let parsed = parse("rs", source);
    let signatures: Vec<_> = parsed
        .symbols
        .iter()
        .map(|s| s.signature.as_str())
        .collect();
    assert_eq!(signatures, ["pub fn a(", "const C: u8 = 1;"]);
}

#[test]
fn a_long_function_is_cut_into_windows_that_keep_its_name() {
    let source = format!(
        "class A:\n    def long(self):\n{}",
        "        x = 1\n".repeat(200)
    );
    let parsed = parse("py", &source);
    let long: Vec<_> = parsed
        .chunks
        .iter()
        .filter(|c| c.symbol == "long")
        .collect();
    assert_eq!(long.len(), 4);
    assert!(
        long.iter()
            .all(|c| c.heading == "A" && c.text.lines().count() <= 60)
    );
    let short = format!("def short():\n{}", "    x = 1\n".repeat(119));
    assert_eq!(chunks(&parse("py", &short)), ["1-120 short"]);
}

#[test]
fn a_comment_behind_a_statement_or_above_a_gap_documents_nothing() {
    for (source, start) in [
        ("use a; // about a\nfn f() {\n}\n", 2),
        ("// a remark\n\nfn f() {\n}\n", 3),
        ("//! the file\nfn f() {\n}\n", 2),
        ("/* one\n   two */\n#[a]\n/// three\nfn f() {\n}\n", 1),
        ("/// one\r\nfn f() {\r\n}\r\n", 1),
    ] {
        assert_eq!(parse("rs", source).symbols[0].line_start, start, "{source}");
    }
}

#[test]
fn two_symbols_on_a_line_share_its_chunk() {
    let parsed = parse("rs", "fn a() {\n} fn b() {\n}\n");
    assert_eq!(symbols(&parsed), ["function a 1-2", "function b 2-3"]);
    assert_eq!(chunks(&parsed), ["1-3 a"]);
}

#[test]
fn broken_code_still_gives_what_is_whole() {
    let parsed = parse("rs", "fn a( {\n\n}}}\n\nfn whole() {\n    call();\n}\n");
    assert!(parsed.symbols.iter().any(|s| s.name == "whole"));
}

#[test]
fn a_local_variable_with_arguments_is_no_function_of_cpp() {
    let parsed = parse(
        "cpp",
        "int f(int);\nvoid g() {\n    Guard lock(mutex);\n}\n",
    );
    assert_eq!(symbols(&parsed), ["function f 1-1", "function g 2-4"]);
}
