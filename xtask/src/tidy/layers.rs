//! Rule: crates use only what the who-may-use-whom table of ARCHITECTURE.md lets them.
//!
//! The table is the truth and the manifests follow it, so that a new edge between two crates is
//! always a visible change of the architecture. A row may name only rows above it, which makes
//! cycles impossible to write down. A crate in italics is planned: it has its place, and no folder.

use crate::metadata::{DependencyKind, Member};

use super::Problem;
use super::tree::Tree;

const DOCUMENT: &str = "ARCHITECTURE.md";
const BEGIN: &str = "<!-- who-may-use-whom -->";
const END: &str = "<!-- /who-may-use-whom -->";

/// The crate that only tests may use.
const TESTKIT: &str = "dodona-testkit";

/// What one crate may use.
#[derive(Debug, PartialEq)]
struct Row {
    line: usize,
    name: String,
    state: State,
    may_use: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Exists,
    Planned,
}

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let Some(document) = tree.files.get(DOCUMENT) else {
        return vec![Problem::of(
            DOCUMENT,
            "is missing, and with it the who-may-use-whom table",
        )];
    };
    let Some(rows) = rows(document) else {
        let message = format!("has no table between `{BEGIN}` and `{END}`");
        return vec![Problem::of(DOCUMENT, message)];
    };
    let members = &tree.metadata.members;
    let mut problems = order(&rows);
    problems.extend(existence(&rows, members));
    problems.extend(members.iter().flat_map(|member| edges(member, &rows)));
    problems
}

/// A row may name only what stands above it.
fn order(rows: &[Row]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let above = &rows[..index];
        for used in &row.may_use {
            if !above.iter().any(|row| row.name == *used) {
                let message = format!("`{}` may use `{used}`, which is no row above it", row.name);
                problems.push(Problem::at(DOCUMENT, row.line, message));
            }
        }
    }
    problems
}

/// Rows and crates must be the same set, planned rows aside.
fn existence(rows: &[Row], members: &[Member]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for row in rows {
        let exists = members.iter().any(|member| member.name == row.name);
        let message = match (row.state, exists) {
            (State::Exists, false) => format!("`{}` does not exist; mark it as planned", row.name),
            (State::Planned, true) => format!("`{}` exists; remove the italics", row.name),
            (State::Exists, true) | (State::Planned, false) => continue,
        };
        problems.push(Problem::at(DOCUMENT, row.line, message));
    }
    for member in members {
        if !rows.iter().any(|row| row.name == member.name) {
            let message = format!("`{}` has no row in the table of {DOCUMENT}", member.name);
            problems.push(Problem::of(&member.manifest, message));
        }
    }
    problems
}

/// Tests may use anything, so dev-dependencies are exempt, and the testkit is nothing else.
fn edges(member: &Member, rows: &[Row]) -> Vec<Problem> {
    let row = rows.iter().find(|row| row.name == member.name);
    let may_use = row.map_or(&[][..], |row| &row.may_use);
    let edges = member
        .dependencies
        .iter()
        .filter(|used| used.kind != DependencyKind::Dev);
    let mut problems = Vec::new();
    for used in edges.filter(|used| used.name.starts_with("dodona")) {
        let message = if used.name == TESTKIT {
            format!("`{TESTKIT}` may only be a dev-dependency")
        } else if may_use.contains(&used.name) {
            continue;
        } else {
            format!(
                "`{}` may not use `{}`, says {DOCUMENT}",
                member.name, used.name
            )
        };
        problems.push(Problem::of(&member.manifest, message));
    }
    problems
}

/// The rows between the markers, without the heading and the line under it.
fn rows(document: &str) -> Option<Vec<Row>> {
    let lines = document.lines().map(str::trim).collect::<Vec<_>>();
    let begin = lines.iter().position(|line| *line == BEGIN)?;
    let end = begin + lines[begin..].iter().position(|line| *line == END)?;
    let table = (begin..end).filter(|&index| lines[index].starts_with('|'));
    let rows = table.skip(2);
    Some(
        rows.filter_map(|index| row(index + 1, lines[index]))
            .collect(),
    )
}

fn row(line: usize, text: &str) -> Option<Row> {
    let mut cells = text.trim_matches('|').split('|').map(str::trim);
    let (name, may_use) = (cells.next()?, cells.next()?);
    let state = if name.starts_with('*') {
        State::Planned
    } else {
        State::Exists
    };
    let may_use = may_use
        .split(',')
        .map(crate_name)
        .filter(|name| name != "nothing");
    Some(Row {
        line,
        name: crate_name(name),
        state,
        may_use: may_use.collect(),
    })
}

/// The table leaves out the prefix that nearly all our crates share.
fn crate_name(cell: &str) -> String {
    match cell.trim_matches([' ', '*', '`']) {
        whole @ ("dodona" | "xtask" | "nothing") => whole.to_owned(),
        short => format!("dodona-{short}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use DependencyKind::{Dev, Normal};

    const TABLE: &str = "\
text before
<!-- who-may-use-whom -->
| crate | may use |
|---|---|
| `proto` | nothing |
| *`expr`* | nothing |
| `hub` | `proto` |
| `testkit` | `proto`, `hub` |
<!-- /who-may-use-whom -->
";

    const MEMBERS: &[(&str, &[(&str, DependencyKind)])] = &[
        ("dodona-proto", &[("serde", Normal)]),
        (
            "dodona-hub",
            &[("dodona-proto", Normal), ("dodona-testkit", Dev)],
        ),
        ("dodona-testkit", &[("dodona-hub", Normal)]),
    ];

    fn messages(table: &str, members: &[(&str, &[(&str, DependencyKind)])]) -> Vec<String> {
        let tree = Tree::of(&[(DOCUMENT, table)]).with_members(members);
        check(&tree).iter().map(Problem::to_string).collect()
    }

    #[test]
    fn manifests_that_follow_the_table_are_fine() {
        assert_eq!(messages(TABLE, MEMBERS), Vec::<String>::new());
    }

    #[test]
    fn an_edge_the_table_does_not_have_is_refused() {
        let mut members = MEMBERS.to_vec();
        members[0].1 = &[("dodona-hub", Normal)];
        let expected = "crates/dodona-proto/Cargo.toml: `dodona-proto` may not use `dodona-hub`, says ARCHITECTURE.md";
        assert_eq!(messages(TABLE, &members), [expected]);
    }

    #[test]
    fn the_testkit_is_for_tests() {
        let mut members = MEMBERS.to_vec();
        members[1].1 = &[("dodona-testkit", Normal)];
        let expected =
            "crates/dodona-hub/Cargo.toml: `dodona-testkit` may only be a dev-dependency";
        assert_eq!(messages(TABLE, &members), [expected]);
    }

    #[test]
    fn a_crate_without_a_row_is_named() {
        let mut members = MEMBERS.to_vec();
        members.push(("dodona-web", &[]));
        let expected =
            "crates/dodona-web/Cargo.toml: `dodona-web` has no row in the table of ARCHITECTURE.md";
        assert_eq!(messages(TABLE, &members), [expected]);
    }

    #[test]
    fn a_planned_crate_that_exists_loses_its_mark() {
        let mut members = MEMBERS.to_vec();
        members.push(("dodona-expr", &[]));
        let expected = "ARCHITECTURE.md:6: `dodona-expr` exists; remove the italics";
        assert_eq!(messages(TABLE, &members), [expected]);
    }

    #[test]
    fn a_row_without_a_crate_must_be_marked_as_planned() {
        let expected = "ARCHITECTURE.md:8: `dodona-testkit` does not exist; mark it as planned";
        assert_eq!(messages(TABLE, &MEMBERS[..2]), [expected]);
    }

    #[test]
    fn a_row_that_looks_down_is_refused() {
        let table = TABLE.replace("| `proto` | nothing |", "| `proto` | `hub` |");
        let expected =
            "ARCHITECTURE.md:5: `dodona-proto` may use `dodona-hub`, which is no row above it";
        assert_eq!(messages(&table, MEMBERS), [expected]);
    }

    #[test]
    fn a_document_without_the_markers_is_no_table() {
        let expected = format!("{DOCUMENT}: has no table between `{BEGIN}` and `{END}`");
        assert_eq!(messages("# Architecture\n", MEMBERS), [expected]);
    }
}
