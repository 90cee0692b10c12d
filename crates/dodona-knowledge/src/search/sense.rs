//! What prose says and names say otherwise: a sentence "creates …" is often `new`.
//!
//! The pairs were read off some thirty thousand documented functions of published crates, none of
//! which is among those that search is measured on: words that stand in the first sentence of the
//! documentation, against words of the function's name. Only pairs that hold in any library and
//! language were kept. They count for names alone: in prose, "new" is not "create".

use std::collections::HashMap;
use std::sync::LazyLock;

use super::analyzer::{stemming, terms};

/// A word of prose, and what names say for it.
const SENSES: &[(&str, &[&str])] = &[
    ("absolute", &["abs"]),
    ("acquire", &["lock", "try", "get"]),
    ("add", &["push", "insert", "append", "put", "with"]),
    ("advance", &["next", "skip"]),
    ("all", &["iter", "clear"]),
    ("allow", &["set", "enable", "can"]),
    ("append", &["push", "add", "extend", "put"]),
    ("apply", &["map", "with"]),
    ("associated", &["get"]),
    ("attempt", &["try"]),
    ("begin", &["start"]),
    ("build", &["new", "make", "create"]),
    ("cast", &["as", "to"]),
    ("certificate", &["cert"]),
    ("change", &["set", "update"]),
    (
        "check",
        &["is", "has", "contains", "validate", "verify", "can"],
    ),
    ("choose", &["select", "pick"]),
    ("closure", &["with"]),
    ("combine", &["join", "merge", "union"]),
    ("compare", &["cmp", "eq"]),
    ("compute", &["calc", "get"]),
    ("concatenate", &["concat", "join"]),
    ("consecutive", &["dedup"]),
    (
        "construct",
        &["new", "from", "make", "build", "create", "with"],
    ),
    ("constructor", &["new"]),
    ("consume", &["into", "inner", "take"]),
    ("contain", &["has", "in"]),
    ("convert", &["into", "from", "to", "as"]),
    ("copy", &["clone", "dup"]),
    ("create", &["new", "from", "make", "build", "with", "open"]),
    ("custom", &["with"]),
    ("decrease", &["dec"]),
    ("delete", &["remove", "del", "drop", "clear"]),
    ("descriptor", &["fd"]),
    ("determine", &["is", "get", "find", "has"]),
    ("difference", &["diff", "sub"]),
    ("disable", &["no", "set"]),
    ("discard", &["drop", "skip", "clear"]),
    ("display", &["show", "print", "fmt"]),
    ("divide", &["div"]),
    ("division", &["div", "rem"]),
    ("duplicate", &["dedup", "clone", "unique"]),
    ("emit", &["write", "send"]),
    ("enable", &["set", "with", "allow"]),
    ("end", &["push", "finish", "last", "close"]),
    ("equal", &["eq"]),
    ("execute", &["run", "each", "call"]),
    ("fallible", &["try"]),
    ("fetch", &["get", "load"]),
    ("function", &["by", "with", "map", "fn"]),
    ("generate", &["gen", "make", "new"]),
    ("give", &["get"]),
    ("handle", &["on"]),
    ("hexadecimal", &["hex"]),
    ("increase", &["inc", "reserve"]),
    ("indicate", &["is"]),
    ("inner", &["into", "get"]),
    ("insert", &["add", "put", "push", "set"]),
    ("instance", &["new"]),
    ("invoke", &["call", "run"]),
    ("item", &["get", "next"]),
    ("iterate", &["iter", "each"]),
    ("iterator", &["iter", "by", "drain"]),
    ("key", &["entry", "get"]),
    ("load", &["read", "open", "get", "from"]),
    ("look", &["get", "find", "peek"]),
    ("lookup", &["get", "find"]),
    ("match", &["find", "is"]),
    ("maximum", &["max", "limit"]),
    ("merge", &["extend", "union", "join"]),
    ("modify", &["set", "update", "mut"]),
    ("multiply", &["mul"]),
    ("mutable", &["mut"]),
    ("negative", &["neg"]),
    ("no", &["empty", "is", "without"]),
    ("number", &["len", "count", "num", "size"]),
    ("obtain", &["get", "as"]),
    ("one", &["single", "once"]),
    ("only", &["is"]),
    ("onto", &["push"]),
    ("open", &["new", "connect"]),
    ("order", &["sort"]),
    ("output", &["write", "print"]),
    ("over", &["iter"]),
    ("perform", &["do", "run"]),
    ("place", &["put", "set", "insert"]),
    ("power", &["pow"]),
    ("predicate", &["retain", "filter", "while", "by"]),
    ("present", &["get", "contains", "has"]),
    ("print", &["write", "show", "fmt"]),
    ("produce", &["get", "make", "into"]),
    ("provided", &["with", "set"]),
    ("put", &["set", "insert", "push"]),
    ("raw", &["ptr", "as"]),
    ("reader", &["read"]),
    ("receive", &["recv"]),
    ("reference", &["ref", "get", "as", "borrow"]),
    ("register", &["add"]),
    ("remainder", &["rem", "mod"]),
    (
        "remove",
        &["pop", "clear", "delete", "drop", "trim", "take", "strip"],
    ),
    ("replace", &["set", "swap", "sub"]),
    ("report", &["is", "get"]),
    (
        "representation",
        &["to", "as", "repr", "str", "string", "fmt"],
    ),
    ("represent", &["to", "as"]),
    ("retrieve", &["get", "find"]),
    ("return", &["get", "to", "is", "as"]),
    ("reverse", &["rev"]),
    ("root", &["sqrt"]),
    ("satisfy", &["find", "where", "filter"]),
    ("search", &["find", "query"]),
    ("select", &["filter", "choose", "pick"]),
    ("separate", &["split"]),
    ("serialize", &["to", "dump", "write"]),
    ("deserialize", &["from", "load", "read"]),
    ("size", &["len"]),
    ("slice", &["bytes", "as", "str"]),
    ("specified", &["with", "set", "by"]),
    ("specify", &["set", "with"]),
    ("square", &["sqrt"]),
    ("store", &["set", "save", "put", "insert"]),
    ("subtract", &["sub"]),
    ("successive", &["next"]),
    ("take", &["with"]),
    ("task", &["spawn"]),
    ("terminate", &["kill", "stop", "abort", "shutdown"]),
    ("test", &["is"]),
    ("th", &["nth"]),
    ("total", &["len", "sum", "count"]),
    ("transform", &["map"]),
    ("true", &["is", "has", "contains", "can"]),
    ("underlying", &["inner", "get", "into", "as"]),
    ("uninitialized", &["uninit"]),
    ("unique", &["dedup"]),
    ("unwrap", &["into", "inner"]),
    ("user", &["custom"]),
    ("visit", &["walk"]),
    ("wait", &["join", "poll", "sleep", "block"]),
    ("whitespace", &["trim", "strip"]),
    ("without", &["unchecked", "no", "peek"]),
    ("wrap", &["new"]),
    ("writer", &["write"]),
    ("yield", &["iter", "next", "get"]),
];

static STEMMED: LazyLock<HashMap<String, Vec<String>>> = LazyLock::new(|| {
    let mut stemmer = stemming();
    let mut stem = |word: &str| terms(&mut stemmer, word, 1).pop().map(|token| token.text);
    let mut map: HashMap<String, Vec<String>> = HashMap::new();
    for (word, names) in SENSES {
        let found = map.entry(stem(word).unwrap_or_default()).or_default();
        found.extend(names.iter().filter_map(|name| stem(name)));
    }
    map
});

/// What names say for a stemmed word.
pub(super) fn of(stem: &str) -> impl Iterator<Item = &'static str> + use<> {
    let found = STEMMED.get(stem).map(Vec::as_slice).unwrap_or_default();
    found.iter().map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_knows_the_words_of_names() {
        let stem = |word: &str| terms(&mut stemming(), word, 1).remove(0).text;
        assert!(of(&stem("Creates")).any(|name| name == "new"));
        assert!(of(&stem("retrieving")).any(|name| name == "get"));
        assert_eq!(of("new").count(), 0);
    }
}
