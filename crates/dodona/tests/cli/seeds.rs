//! `docs/reference/seeds.md`: everything that its second column names exists.
//!
//! The page has tables of three columns. Each code span in the second one is a reference, and its
//! form says what it refers to: a database, the sources, the method reference, a schema, the
//! context of rules, a file, or a hook point. A reference that cannot be resolved fails the test,
//! and so does a verdict in another form.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use dodona_expr::{Expr, Schema};
use dodona_proto::{HookPoint, RULE_CONTEXT, RULE_TRIGGERS};
use dodona_store::{Durability, Store, StoreOptions};
use serde_json::Value;

use crate::harness::Home;

/// Rows that a page which lists five documents has at least.
const FEWEST_ROWS: usize = 400;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    let path = repository().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn read_json(path: &str) -> Value {
    serde_json::from_str(&read(path)).unwrap()
}

/// A row of a table: its line, what it refers to, and the verdict.
struct Row {
    line: usize,
    references: Vec<String>,
    verdict: String,
}

fn rows(page: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut after_head = false;
    for (index, line) in page.lines().enumerate() {
        if !line.starts_with('|') {
            after_head = false;
        } else if line.starts_with("|---") {
            after_head = true;
        } else if after_head {
            let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
            assert_eq!(cells.len(), 3, "line {}: {line}", index + 1);
            let spans = cells[1].split('`').skip(1).step_by(2);
            rows.push(Row {
                line: index + 1,
                references: spans.map(str::to_owned).collect(),
                verdict: cells[2].to_owned(),
            });
        }
    }
    rows
}

/// Everything that can be referred to.
struct World {
    sources: Sources,
    methods: BTreeMap<String, BTreeSet<String>>,
    schemas: [Value; 2],
    roster: String,
    settings: String,
    /// The names of tables, columns and indexes: `hub.db/users`, `hub.db/users.id`.
    databases: BTreeSet<String>,
    data: PathBuf,
}

impl World {
    fn is_there(&self, reference: &str) -> bool {
        if reference.contains(".db/") {
            return self.databases.contains(reference);
        }
        if let Some(name) = reference.strip_prefix('[') {
            return self.has_key(name);
        }
        if reference.starts_with("context.") {
            return is_in_context(reference);
        }
        if let Some((item, member)) = reference.split_once("::") {
            return self.sources.has_member(item, member);
        }
        if reference.contains('/') || reference.ends_with(".md") {
            return self.has_path(reference);
        }
        if reference.parse::<HookPoint>().is_ok() {
            return true;
        }
        match reference.starts_with(char::is_uppercase) {
            true => self.sources.items.contains_key(reference),
            false => self.has_dotted(reference),
        }
    }

    /// `[rule] id`, `[settings]` or `[plugin.NAME] enabled`.
    fn has_key(&self, text: &str) -> bool {
        let Some((table, key)) = text.split_once(']') else {
            return false;
        };
        let key = key.trim();
        if table == "plugin.NAME" {
            return self.roster.contains(&format!("\"{key}\""));
        }
        self.schemas.iter().any(|schema| {
            let found = property(schema, schema, table);
            found.is_some_and(|found| key.is_empty() || property(schema, found, key).is_some())
        })
    }

    fn has_path(&self, path: &str) -> bool {
        if let Some(below) = path.strip_prefix("data/") {
            return self.data.join(below).exists();
        }
        if let Some(below) = path.strip_prefix("config/") {
            let mut parts = below.split('/').filter(|part| !part.contains("NAME"));
            return parts.all(|part| self.sources.has_literal(part));
        }
        repository().join(path).exists()
    }

    /// A method, with or without a parameter; a setting; or the type of an event.
    fn has_dotted(&self, name: &str) -> bool {
        let (name, param) = match name.strip_suffix(')').and_then(|name| name.split_once('(')) {
            Some((name, param)) => (name, Some(param)),
            None => (name, None),
        };
        if let Some(params) = self.methods.get(name) {
            return param.is_none_or(|param| params.contains(param));
        }
        let plugin = name.split('.').next().unwrap_or_default();
        let prefix = format!("{plugin}.");
        let is_plugin = self.methods.keys().any(|known| known.starts_with(&prefix));
        let is_method = is_plugin && name.matches('.').count() == 1;
        match (param, is_method) {
            (Some(_), _) => false,
            (None, true) => self.settings.contains(&format!("\"{name}\"")),
            (None, false) => self.sources.has_literal(name),
        }
    }
}

/// A property of an object's schema, wherever its alternatives have it.
fn property<'s>(root: &'s Value, schema: &'s Value, name: &str) -> Option<&'s Value> {
    if let Some(found) = schema["properties"].get(name) {
        return Some(found);
    }
    if let Some(target) = schema["$ref"].as_str() {
        return property(root, root.pointer(target.trim_start_matches('#'))?, name);
    }
    let alternatives = ["oneOf", "anyOf", "allOf"].iter();
    let mut alternatives = alternatives
        .filter_map(|key| schema[*key].as_array())
        .flatten();
    alternatives.find_map(|alternative| property(root, alternative, name))
}

/// Whether conditions can name it, at one of the triggers.
fn is_in_context(text: &str) -> bool {
    let schema = Schema::parse(RULE_CONTEXT).unwrap();
    let mut triggers = RULE_TRIGGERS.iter();
    triggers.any(|trigger| Expr::compile(text, &schema.at(trigger)).is_ok())
}

/// The Rust sources of all crates, without tests and comments.
struct Sources {
    /// Everything that stands in the files.
    text: String,
    /// What is in the block of each type and trait, and of its `impl`s, by name.
    items: BTreeMap<String, Vec<String>>,
}

impl Sources {
    fn load() -> Self {
        let mut files = Vec::new();
        for entry in fs::read_dir(repository().join("crates")).unwrap() {
            rust_files(&entry.unwrap().path().join("src"), &mut files);
        }
        let mut sources = Self {
            text: String::new(),
            items: BTreeMap::new(),
        };
        for file in files {
            sources.read(&fs::read_to_string(file).unwrap());
        }
        sources
    }

    fn read(&mut self, text: &str) {
        let is_code = |line: &&str| !line.trim_start().starts_with("//");
        let lines: Vec<&str> = text.lines().filter(is_code).collect();
        for (at, line) in lines.iter().enumerate() {
            let Some(name) = defined(line).or_else(|| implemented(&lines[at..])) else {
                continue;
            };
            // Formatted code: a block ends with the first brace in the column it began in.
            let indent = &line[..line.len() - line.trim_start().len()];
            let end = format!("{indent}}}");
            let is_block = !line.trim_end().ends_with([';', '}']);
            let block = lines[at + 1..].iter().take_while(|line| **line != end);
            let members = block.take(if is_block { usize::MAX } else { 0 });
            let members = members.map(|line| (*line).to_owned());
            self.items.entry(name).or_default().extend(members);
        }
        self.text.push_str(&lines.join("\n"));
        self.text.push('\n');
    }

    /// A field, variant, function or constant of a type or trait.
    fn has_member(&self, item: &str, member: &str) -> bool {
        let lines = self.items.get(item).into_iter().flatten();
        let mut lines = lines.map(|line| without_visibility(line.trim_start()));
        lines.any(|line| {
            let line = ["async ", "const "]
                .iter()
                .fold(line, |line, word| line.strip_prefix(word).unwrap_or(line));
            let line = line.strip_prefix("fn ").unwrap_or(line);
            let rest = line.strip_prefix(member);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '(', '<', ',', ' ']))
        })
    }

    fn has_literal(&self, text: &str) -> bool {
        self.text.contains(&format!("\"{text}\""))
    }
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => rust_files(&path, found),
            false if path.extension().is_some_and(|ending| ending == "rs") => found.push(path),
            false => {}
        }
    }
}

fn without_visibility(line: &str) -> &str {
    match line.strip_prefix("pub") {
        Some(rest) => match rest
            .strip_prefix('(')
            .and_then(|rest| rest.split_once(") "))
        {
            Some((_, rest)) => rest,
            None => rest.trim_start(),
        },
        None => line,
    }
}

fn identifier(text: &str) -> Option<String> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let name: String = text.chars().take_while(|c| is_part(*c)).collect();
    (!name.is_empty()).then_some(name)
}

/// The name of the type, trait or constant that a line defines.
fn defined(line: &str) -> Option<String> {
    let line = without_visibility(line.trim_start());
    let words = ["struct ", "enum ", "trait ", "type ", "const ", "static "];
    let rest = words.iter().find_map(|word| line.strip_prefix(word))?;
    identifier(rest)
}

/// The type that an `impl` block is for.
fn implemented(lines: &[&str]) -> Option<String> {
    let first = lines[0].trim_start();
    if !first.starts_with("impl") {
        return None;
    }
    let upto = lines.iter().position(|line| line.contains('{'))?;
    let head = lines[..=upto].concat();
    let head = head.trim_start().strip_prefix("impl")?;
    // Parameters of the block, in pointed brackets.
    let mut depth = 0;
    let rest = head.find(|c: char| {
        depth += i32::from(c == '<') - i32::from(c == '>');
        depth == 0 && c == ' '
    });
    let subject = &head[rest?..];
    let subject = subject.split_once(" for ").map_or(subject, |(_, of)| of);
    identifier(subject.trim_start())
}

/// The tables, columns and indexes of a home's databases.
async fn databases(data: &Path) -> BTreeSet<String> {
    let mut files = Vec::new();
    database_files(data, "", &mut files);
    let store = Store::open(data, StoreOptions::default()).unwrap();
    let mut names = BTreeSet::new();
    for file in files {
        // What is stored as rebuildable is opened so; any other way is refused.
        let durability = match file.ends_with("search.db") {
            true => Durability::Rebuildable,
            false => Durability::Full,
        };
        let database = store.database(&file, durability);
        let found = database.read(|tx| {
            let sql = "select name, sql from sqlite_schema where sql is not null";
            tx.query(sql, (), |row| {
                Ok((row.get::<String>(0)?, row.get::<String>(1)?))
            })
        });
        let short = file.rsplit('/').next().unwrap();
        for (name, sql) in found.await.unwrap() {
            for column in columns(&sql) {
                names.insert(format!("{short}/{name}.{column}"));
            }
            names.insert(format!("{short}/{name}"));
        }
    }
    store.close().await;
    names
}

/// The columns of a table, from the statement that creates it. Pragmas are not allowed in a store's
/// databases.
fn columns(sql: &str) -> Vec<&str> {
    let is_table = sql.to_lowercase().starts_with("create table");
    let Some((_, body)) = sql.split_once('(').filter(|_| is_table) else {
        return Vec::new();
    };
    let mut depth = 0;
    let parts = body.split(|c: char| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        depth == 0 && c == ','
    });
    let names = parts.filter_map(|part| part.split_whitespace().next());
    let is_column = |name: &&str| !matches!(*name, "primary" | "unique" | "check" | "foreign");
    names.filter(is_column).collect()
}

fn database_files(folder: &Path, prefix: &str, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("{prefix}{}", path.file_name().unwrap().to_string_lossy());
        match path.is_dir() {
            true => database_files(&path, &format!("{name}/"), found),
            false if name.ends_with(".db") => found.push(name),
            false => {}
        }
    }
}

fn methods() -> BTreeMap<String, BTreeSet<String>> {
    let document = read_json("docs/reference/openrpc.json");
    let name = |value: &Value| value["name"].as_str().unwrap().to_owned();
    let methods = document["methods"].as_array().unwrap().iter();
    let params = |method: &Value| {
        let params = method["params"].as_array().unwrap();
        params.iter().map(name).collect()
    };
    methods
        .map(|method| (name(method), params(method)))
        .collect()
}

#[test]
fn everything_that_the_page_names_exists() {
    let home = Home::new();
    let started = home.run(&["plugins", "list"]);
    assert_eq!(started.code, Some(0), "{}", started.shown());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let world = World {
        sources: Sources::load(),
        methods: methods(),
        schemas: ["rule", "manifest"]
            .map(|name| read_json(&format!("docs/reference/{name}.schema.json"))),
        roster: read("crates/dodona-hub/src/manager/roster.rs"),
        settings: read("crates/dodona/src/config/keys.rs"),
        databases: runtime.block_on(databases(&home.data())),
        data: home.data(),
    };
    let rows = rows(&read("docs/reference/seeds.md"));
    assert!(rows.len() >= FEWEST_ROWS, "{} rows", rows.len());
    let mut problems = Vec::new();
    for row in &rows {
        for reference in &row.references {
            if !world.is_there(reference) {
                problems.push(format!("line {}: `{reference}` does not exist", row.line));
            }
        }
        if row.references.is_empty() {
            problems.push(format!("line {}: names nothing", row.line));
        }
        if !is_verdict(&row.verdict) {
            problems.push(format!("line {}: no verdict: {}", row.line, row.verdict));
        }
    }
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

/// `same`, with or without more, or a difference with its reason.
fn is_verdict(text: &str) -> bool {
    let (verdict, reason) = text.split_once(": ").unwrap_or((text, ""));
    match verdict {
        "same" => true,
        "different" | "not there" => !reason.is_empty(),
        _ => false,
    }
}

/// The test above is worth what its resolvers refuse.
#[test]
fn what_does_not_exist_is_not_found() {
    let world = World {
        sources: Sources::load(),
        methods: methods(),
        schemas: ["rule", "manifest"]
            .map(|name| read_json(&format!("docs/reference/{name}.schema.json"))),
        roster: read("crates/dodona-hub/src/manager/roster.rs"),
        settings: read("crates/dodona/src/config/keys.rs"),
        databases: BTreeSet::from(["hub.db/users".to_owned()]),
        data: PathBuf::new(),
    };
    for there in [
        "hub.db/users",
        "vault.read(path)",
        "agent.max_turns",
        "tool.call.pending",
        "[rule] id",
        "[action] event_type",
        "[plugin.NAME] module",
        "context.turn.number",
        "OracleContext::id",
        "ContextStatus::Active",
        "ContextStatus::change",
        "Plugin::activate",
        "TOKEN_BUDGETS",
        "PRE_TOOL_EXECUTE",
        "docs/reference/hooks.md",
    ] {
        assert!(world.is_there(there), "{there}");
    }
    for missing in [
        "hub.db/nothing",
        "vault.read(colour)",
        "vault.reads",
        "agent.no_such_setting",
        "tool.call.imagined",
        "[rule] colour",
        "[colour] id",
        "[plugin.NAME] colour",
        "context.turn.colour",
        "OracleContext::colour",
        "ContextStatus::Asleep",
        "NoSuchType",
        "NoSuchType::id",
        "NO_SUCH_POINT",
        "docs/reference/nothing.md",
    ] {
        assert!(!world.is_there(missing), "{missing}");
    }
}
