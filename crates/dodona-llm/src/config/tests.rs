//! That the reference tells what there is.

use schemars::schema_for;

use super::{ModelConfig, Provider};

const REFERENCE: &str = include_str!("../../../../docs/reference/models.md");

/// The rows of the table below a heading: their cells, without the marks of code.
fn rows(heading: &str) -> Vec<Vec<String>> {
    let from = REFERENCE
        .split(heading)
        .nth(1)
        .expect("the heading is there");
    let section = from.split("\n## ").next().unwrap_or(from);
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    let cells = |row: &str| {
        let cells = row.split('|').map(|cell| cell.trim().trim_matches('`'));
        cells.map(str::to_owned).collect()
    };
    rows.filter(|row| !row.starts_with("provider` | default"))
        .map(cells)
        .collect()
}

#[test]
fn the_reference_has_every_provider() {
    let documented: Vec<Vec<String>> = rows("## Providers")
        .into_iter()
        .map(|cells| cells[..3].to_vec())
        .collect();
    let known: Vec<Vec<String>> = Provider::ALL
        .iter()
        .map(|provider| {
            let name = provider.as_str();
            let address = provider.base_url().unwrap_or("none");
            let key = provider.key_env().unwrap_or("none");
            [name, address, key].map(str::to_owned).to_vec()
        })
        .collect();
    assert_eq!(documented, known);
}

#[test]
fn the_reference_has_every_setting() {
    let documented: Vec<String> = rows("## Settings")
        .into_iter()
        .map(|mut cells| cells.remove(0))
        .collect();
    let schema = schema_for!(ModelConfig);
    let properties = schema.get("properties").expect("a table has settings");
    let known: Vec<&String> = properties
        .as_object()
        .expect("properties are an object")
        .keys()
        .collect();
    assert_eq!(documented.iter().collect::<Vec<_>>(), known);
}
