//! Values that a program shows without turning them into JSON.

use std::cell::Cell;

use dodona_template::{Field, Limits, Object, Template};
use serde_json::{Value, json};

/// A turn, of which every look at a field is counted.
struct Turn {
    usage: f64,
    looks: Cell<u32>,
}

impl Object for Turn {
    fn field(&self, name: &str) -> Option<Field<'_>> {
        self.looks.set(self.looks.get() + 1);
        match name {
            "usage" => Some(Field::Float(self.usage)),
            "self" => Some(Field::Object(self)),
            "name" => Some(Field::Str("turn")),
            "number" => Some(Field::Int(3)),
            "done" => Some(Field::Bool(false)),
            "error" => Some(Field::Null),
            _ => None,
        }
    }

    fn call(&self, name: &str, arguments: &[Value]) -> Option<Result<Value, String>> {
        match name {
            "failures" => Some(Ok(json!({"tool": arguments[0], "count": 2}))),
            "broken" => Some(Err("the history is gone".into())),
            _ => None,
        }
    }

    fn to_json(&self) -> Value {
        json!({"usage": self.usage})
    }
}

fn render(source: &str) -> (Result<String, String>, u32) {
    let turn = Turn {
        usage: 0.5,
        looks: Cell::new(0),
    };
    let limits = Limits::message();
    let template = Template::compile(source, &limits).expect("it compiles");
    let text = template
        .render(&turn, &limits)
        .map_err(|error| error.to_string());
    (text, turn.looks.get())
}

#[test]
fn only_what_a_template_reads_is_asked_for() {
    assert_eq!(
        render("{{ usage }}{{ self.number }}"),
        (Ok("0.53".into()), 3)
    );
    assert_eq!(render("none of it").1, 0);
}

#[test]
fn fields_have_the_types_of_templates() {
    let (text, _) = render("{{ [name, done, error, missing is defined, usage is float] }}");
    assert_eq!(text, Ok("['turn', False, None, False, True]".into()));
}

#[test]
fn functions_and_methods_of_the_program_can_be_called() {
    let (text, _) = render("{{ failures('vault').count + 1 }} {{ self.failures('x').tool }}");
    assert_eq!(text, Ok("3 x".into()));
    let (text, _) = render("{{ self.broken() }}");
    assert_eq!(text, Err("line 1, column 4: the history is gone".into()));
}

#[test]
fn an_object_can_be_shown_and_gone_through() {
    let (text, _) = render("{{ self }} {% for k, v in self.items() %}{{ k }}{{ v }}{% endfor %}");
    assert_eq!(text, Ok("{'usage': 0.5} usage0.5".into()));
}
