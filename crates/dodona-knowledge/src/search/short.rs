//! Words that code writes shorter than prose does: a question in the one finds the other.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::analyzer::{stemming, terms};

/// Words that stand for each other.
const GROUPS: &[&[&str]] = &[
    &["address", "addr"],
    &["allocate", "alloc"],
    &["application", "app"],
    &["argument", "arg"],
    &["array", "arr"],
    &["asynchronous", "async"],
    &["attribute", "attr"],
    &["authentication", "auth"],
    &["authorization", "auth"],
    &["boolean", "bool"],
    &["buffer", "buf"],
    &["calculate", "calc", "compute"],
    &["callback", "cb"],
    &["character", "char"],
    &["command", "cmd"],
    &["configuration", "config", "cfg", "conf"],
    &["connection", "conn"],
    &["context", "ctx"],
    &["count", "cnt"],
    &["current", "cur", "curr"],
    &["database", "db"],
    &["decimal", "dec"],
    &["delete", "del", "remove"],
    &["dependency", "dep"],
    &["descriptor", "fd", "desc"],
    &["destination", "dest", "dst"],
    &["development", "dev"],
    &["dictionary", "dict"],
    &["directory", "dir", "folder"],
    &["document", "doc"],
    &["documentation", "docs", "doc"],
    &["element", "elem"],
    &["environment", "env"],
    &["error", "err"],
    &["execute", "exec"],
    &["expression", "expr"],
    &["extension", "ext"],
    &["format", "fmt"],
    &["function", "fn", "func"],
    &["identifier", "ident", "id"],
    &["image", "img"],
    &["implementation", "impl"],
    &["index", "idx"],
    &["information", "info"],
    &["initialize", "init"],
    &["integer", "int"],
    &["iterator", "iter"],
    &["language", "lang"],
    &["length", "len"],
    &["library", "lib"],
    &["maximum", "max"],
    &["memory", "mem"],
    &["message", "msg"],
    &["minimum", "min"],
    &["module", "mod"],
    &["mutable", "mut"],
    &["number", "num"],
    &["object", "obj"],
    &["operation", "op"],
    &["option", "opt"],
    &["package", "pkg"],
    &["parameter", "param"],
    &["parse", "parser"],
    &["pointer", "ptr"],
    &["position", "pos"],
    &["previous", "prev"],
    &["process", "proc"],
    &["query", "qry"],
    &["reference", "ref"],
    &["regular", "regex"],
    &["repository", "repo"],
    &["request", "req"],
    &["response", "resp", "res"],
    &["sequence", "seq"],
    &["source", "src"],
    &["specification", "spec"],
    &["standard", "std"],
    &["statistics", "stats"],
    &["string", "str"],
    &["structure", "struct"],
    &["synchronize", "sync"],
    &["system", "sys"],
    &["temporary", "temp", "tmp"],
    &["utility", "util"],
    &["value", "val"],
    &["variable", "var"],
    &["vector", "vec"],
    &["window", "win"],
];

static OTHERS: LazyLock<HashMap<String, Vec<String>>> = LazyLock::new(|| {
    let mut stemmer = stemming();
    let mut map: HashMap<String, Vec<String>> = HashMap::new();
    for group in GROUPS {
        let stems: Vec<String> = group
            .iter()
            .flat_map(|word| terms(&mut stemmer, word, 1))
            .map(|token| token.text)
            .collect();
        for stem in &stems {
            let others = map.entry(stem.clone()).or_default();
            others.extend(stems.iter().filter(|other| *other != stem).cloned());
        }
    }
    map
});

/// The other ways to write a stemmed term.
pub(super) fn others(stem: &str) -> impl Iterator<Item = &'static str> + use<> {
    let found = OTHERS.get(stem).map(Vec::as_slice).unwrap_or_default();
    found.iter().map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_long_forms_know_each_other() {
        let stem = |word: &str| terms(&mut stemming(), word, 1).remove(0).text;
        assert!(others(&stem("directories")).any(|o| o == "dir"));
        assert!(others("msg").any(|o| o == stem("message")));
        assert_eq!(others("oracle").count(), 0);
    }
}
