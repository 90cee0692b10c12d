//! Defaults for what a JSON document leaves out.

use serde_json::{Map, Value as Json};

use super::{Kind, Record, Schema, Type};

impl Schema {
    /// The document with everything that the schema names and the document leaves out: zero,
    /// empty, or null for what may be `None`. A null stays one.
    ///
    /// The document is the object of all root names, such as `{"context": {…}, "settings": {…}}`.
    pub fn fill(&self, json: &Json) -> Json {
        fill_record(self.root(), Some(json))
    }
}

fn fill_record(record: &Record, json: Option<&Json>) -> Json {
    let given = json.and_then(Json::as_object);
    let mut filled = given.cloned().unwrap_or_else(Map::new);
    for field in &record.fields {
        let value = fill(&field.ty, given.and_then(|given| given.get(&*field.name)));
        filled.insert(field.name.to_string(), value);
    }
    Json::Object(filled)
}

fn fill(ty: &Type, json: Option<&Json>) -> Json {
    match (&ty.kind, json) {
        (_, Some(Json::Null)) => Json::Null,
        (_, None) if ty.nullable => Json::Null,
        (Kind::Record(record), None) => fill_record(record, None),
        (Kind::Record(record), Some(json @ Json::Object(_))) => fill_record(record, Some(json)),
        (Kind::List(item), Some(Json::Array(items))) => {
            items.iter().map(|json| fill(item, Some(json))).collect()
        }
        (Kind::Dict(value), Some(Json::Object(entries))) => {
            let filled = entries
                .iter()
                .map(|(key, json)| (key.clone(), fill(value, Some(json))));
            Json::Object(filled.collect())
        }
        (_, Some(json)) => json.clone(),
        (kind, None) => empty(kind),
    }
}

fn empty(kind: &Kind) -> Json {
    match kind {
        Kind::Any | Kind::None => Json::Null,
        Kind::Bool => Json::Bool(false),
        Kind::Int => Json::from(0),
        Kind::Float => Json::from(0.0),
        Kind::Str => Json::from(""),
        Kind::List(_) | Kind::Tuple | Kind::Set => Json::Array(Vec::new()),
        Kind::Dict(_) | Kind::Record(_) => Json::Object(Map::new()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_left_out_gets_its_default() {
        let schema = Schema::parse(
            "context: {
                turn: { number: int, usage: float }
                result: { ok: bool, error: str? }?
                tools: list[{ name: str, ok: bool }]
            }
            settings: dict",
        )
        .unwrap();
        let filled = schema.fill(&json!({"context": {
            "turn": {"number": 3, "more": 1},
            "tools": [{"name": "a"}],
        }}));
        assert_eq!(
            filled,
            json!({"context": {
                "turn": {"number": 3, "more": 1, "usage": 0.0},
                "tools": [{"name": "a", "ok": false}],
                "result": null,
            }, "settings": {}})
        );
        let filled = schema.fill(&json!({"context": {"result": {}}}));
        assert_eq!(
            filled["context"]["result"],
            json!({"ok": false, "error": null})
        );
    }
}
