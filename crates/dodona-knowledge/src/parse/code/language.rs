//! The languages whose structure we know: one table.

use std::sync::OnceLock;

use tree_sitter::{Language, Query};

/// A row of the table.
pub(super) struct Grammar {
    /// What `Parsed::language` says. TSX is TypeScript to whoever filters by language.
    pub(super) name: &'static str,
    extensions: &'static [&'static str],
    language: fn() -> Language,
    /// Query texts, earlier ones first: where two patterns name the same thing the earlier wins.
    queries: &'static [&'static str],
    compiled: OnceLock<Option<Tags>>,
}

/// A compiled query, with what its captures mean.
pub(super) struct Tags {
    pub(super) query: Query,
    /// By capture index.
    pub(super) roles: Vec<Role>,
}

/// What a capture of a query stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The whole of a definition of that kind.
    Definition(&'static str),
    /// Something that contains definitions without being one: a Rust `impl`.
    Scope,
    /// The name of the definition or scope in the same match.
    Name,
    /// The name of a container that the definition is not written inside of.
    Container,
    /// A comment, attribute or decorator that may belong to the definition below it.
    Doc,
    /// What wraps a definition and starts before it: a C++ template.
    Outer,
    /// A name in use.
    Reference,
}

const KINDS: [&str; 8] = [
    "function",
    "method",
    "class",
    "interface",
    "module",
    "macro",
    "type",
    "constant",
];

const RUST: &str = include_str!("queries/rust.scm");
const PYTHON: &str = include_str!("queries/python.scm");
const ECMASCRIPT: &str = include_str!("queries/ecmascript.scm");
const JAVASCRIPT: &str = include_str!("queries/javascript.scm");
const TYPESCRIPT: &str = include_str!("queries/typescript.scm");
const JSX: &str = include_str!("queries/jsx.scm");
const GO: &str = include_str!("queries/go.scm");
const JAVA: &str = include_str!("queries/java.scm");
const C: &str = include_str!("queries/c.scm");
const CPP: &str = include_str!("queries/cpp.scm");

/// Every language, in no order that matters.
pub(super) static GRAMMARS: [Grammar; 9] = [
    row(
        "rust",
        &["rs"],
        || tree_sitter_rust::LANGUAGE.into(),
        &[RUST],
    ),
    row(
        "python",
        &["py", "pyi"],
        || tree_sitter_python::LANGUAGE.into(),
        &[PYTHON],
    ),
    row(
        "typescript",
        &["ts", "mts", "cts"],
        || tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
        &[ECMASCRIPT, TYPESCRIPT],
    ),
    row(
        "typescript",
        &["tsx"],
        || tree_sitter_typescript::LANGUAGE_TSX.into(),
        &[ECMASCRIPT, TYPESCRIPT, JSX],
    ),
    row(
        "javascript",
        &["js", "mjs", "cjs", "jsx"],
        || tree_sitter_javascript::LANGUAGE.into(),
        &[ECMASCRIPT, JAVASCRIPT, JSX],
    ),
    row("go", &["go"], || tree_sitter_go::LANGUAGE.into(), &[GO]),
    row(
        "java",
        &["java"],
        || tree_sitter_java::LANGUAGE.into(),
        &[JAVA],
    ),
    row("c", &["c", "h"], || tree_sitter_c::LANGUAGE.into(), &[C]),
    row(
        "cpp",
        &[
            "cc", "cpp", "cxx", "c++", "hh", "hpp", "hxx", "h++", "ipp", "inl", "tpp",
        ],
        || tree_sitter_cpp::LANGUAGE.into(),
        &[CPP, C],
    ),
];

const fn row(
    name: &'static str,
    extensions: &'static [&'static str],
    language: fn() -> Language,
    queries: &'static [&'static str],
) -> Grammar {
    Grammar {
        name,
        extensions,
        language,
        queries,
        compiled: OnceLock::new(),
    }
}

/// The grammar of an extension in lower case.
pub(super) fn by_extension(extension: &str) -> Option<&'static Grammar> {
    GRAMMARS
        .iter()
        .find(|grammar| grammar.extensions.contains(&extension))
}

/// The grammar of a file: a `.h` file is C++ where its text says so.
pub(super) fn of(extension: &str, text: &str) -> Option<&'static Grammar> {
    const SIGNS: [&str; 5] = [
        "namespace ",
        "\nclass ",
        "template <",
        "template<",
        "public:",
    ];
    if extension == "h" && SIGNS.iter().any(|sign| text.contains(sign)) {
        return by_extension("hpp");
    }
    by_extension(extension)
}

impl Grammar {
    pub(super) fn language(&self) -> Language {
        (self.language)()
    }

    /// The query, compiled at the first use: that takes milliseconds, far more than most files.
    ///
    /// `None` would mean that a query does not fit its grammar, which a test rules out.
    pub(super) fn tags(&self) -> Option<&Tags> {
        self.compiled
            .get_or_init(|| {
                let query = Query::new(&self.language(), &self.queries.concat()).ok()?;
                let roles = query.capture_names().iter().map(|name| role(name));
                let roles = roles.collect::<Option<Vec<_>>>()?;
                Some(Tags { query, roles })
            })
            .as_ref()
    }
}

fn role(capture: &str) -> Option<Role> {
    if let Some(kind) = capture.strip_prefix("definition.") {
        let known = KINDS.iter().find(|known| **known == kind)?;
        return Some(Role::Definition(known));
    }
    match capture {
        "scope" => Some(Role::Scope),
        "name" => Some(Role::Name),
        "container" => Some(Role::Container),
        "doc" => Some(Role::Doc),
        "outer" => Some(Role::Outer),
        "reference" => Some(Role::Reference),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_query_fits_its_grammar_and_every_capture_has_a_meaning() {
        for grammar in &GRAMMARS {
            let query = Query::new(&grammar.language(), &grammar.queries.concat());
            assert!(query.is_ok(), "{}: {:?}", grammar.name, query.err());
            assert!(grammar.tags().is_some(), "{}", grammar.name);
        }
    }

    #[test]
    fn a_header_is_cpp_only_where_its_text_says_so() {
        let name = |text| of("h", text).map(|grammar| grammar.name);
        assert_eq!(name("int f(void);\n"), Some("c"));
        assert_eq!(name("namespace a { int f(); }\n"), Some("cpp"));
    }
}
