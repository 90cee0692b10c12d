//! Faults: what they say, and where.

use dodona_template::ErrorKind::{Limit, Operation, Syntax, Undefined, Unsupported};
use dodona_template::{ErrorKind, TemplateError};
use serde_json::json;

use super::render;

fn fault(source: &str) -> TemplateError {
    let context = json!({"n": 5, "s": "abc", "list": [1]});
    render(source, &context).expect_err(source)
}

/// Template, kind, place, and a part of the message.
const FAULTS: &[(&str, ErrorKind, (usize, usize), &str)] = &[
    ("a\n {{ n + }}", Syntax, (2, 9), "unexpected"),
    ("{% if n %}", Syntax, (1, 9), "end of input"),
    (
        "{{ n | nofilter }}",
        Syntax,
        (1, 8),
        "there is no filter `nofilter`",
    ),
    (
        "{{ n is notest }}",
        Syntax,
        (1, 9),
        "there is no test `notest`",
    ),
    ("\n\n{% include 'x' %}", Unsupported, (3, 4), "`include`"),
    ("{% extends 'x' %}", Unsupported, (1, 4), "`extends`"),
    (
        "{% block a %}{% endblock %}",
        Unsupported,
        (1, 4),
        "`block`",
    ),
    ("{% import 'x' as y %}", Unsupported, (1, 4), "`import`"),
    ("{% from 'x' import y %}", Unsupported, (1, 4), "`from`"),
    (
        "{% set ns = namespace(x=1) %}",
        Unsupported,
        (1, 13),
        "`namespace`",
    ),
    (
        "{% set n.x = 1 %}",
        Unsupported,
        (1, 10),
        "nothing but names",
    ),
    ("{{ debug() }}", Unsupported, (1, 4), "`debug`"),
    ("{{ lipsum() }}", Unsupported, (1, 4), "`lipsum`"),
    ("{{ list | random }}", Unsupported, (1, 11), "`random`"),
    ("{{ s | escape }}", Unsupported, (1, 8), "HTML"),
    (
        "{% for x in list recursive %}{{ loop(x) }}{% endfor %}",
        Unsupported,
        (1, 4),
        "`recursive`",
    ),
    (
        "{% for x in list %}{{ loop }}{% endfor %}",
        Unsupported,
        (1, 23),
        "`loop`",
    ),
    (
        "{% for x in list %}{{ loop.cycle() }}{% endfor %}",
        Operation,
        (1, 23),
        "`loop.cycle`",
    ),
    ("{% do n %}", Syntax, (1, 7), "call"),
    ("{% do s.upper() %}", Unsupported, (1, 4), "`do`"),
    (
        "{% autoescape true %}{% endautoescape %}",
        Unsupported,
        (1, 4),
        "`autoescape`",
    ),
    (
        "{% macro m() %}{{ caller() }}{% endmacro %}{% call m() %}x{% endcall %}",
        Unsupported,
        (1, 47),
        "`call`",
    ),
    (
        "{% for x in list %}{% macro m() %}{% endmacro %}{% endfor %}",
        Unsupported,
        (1, 23),
        "`macro`",
    ),
    (
        "{{ dict(*list) }}",
        Unsupported,
        (1, 10),
        "write the arguments out",
    ),
    (
        "{{ missing.x }}",
        Undefined,
        (1, 4),
        "`missing` is undefined",
    ),
    ("{{ n.x.y }}", Undefined, (1, 4), "`x` is undefined"),
    (
        "{{ missing + 1 }}",
        Undefined,
        (1, 4),
        "`missing` is undefined",
    ),
    (
        "{{ missing() }}",
        Undefined,
        (1, 4),
        "no function `missing`",
    ),
    ("{{ n.upper() }}", Undefined, (1, 4), "no method `upper`"),
    (
        "{{ n + s }}",
        Operation,
        (1, 4),
        "`+` does not work between int and str",
    ),
    (
        "{{ n < s }}",
        Operation,
        (1, 4),
        "`<` does not work between int and str",
    ),
    ("{{ n / 0 }}", Operation, (1, 4), "division by zero"),
    (
        "{{ 9223372036854775807 + 1 }}",
        Operation,
        (1, 4),
        "64 bits",
    ),
    (
        "{{ -9223372036854775807 - 2 }}",
        Operation,
        (1, 4),
        "64 bits",
    ),
    ("{{ 9223372036854775808 }}", Operation, (1, 4), "64 bits"),
    (
        "{% for a, b in [1] %}{% endfor %}",
        Operation,
        (1, 16),
        "cannot go through",
    ),
    (
        "{% for a, b in ['abc'] %}{% endfor %}",
        Operation,
        (1, 16),
        "expected 2 values",
    ),
    (
        "{{ [1] | join(1, 2, 3) }}",
        Operation,
        (1, 10),
        "at most 2 arguments",
    ),
    (
        "{{ s | replace('a') }}",
        Operation,
        (1, 8),
        "needs an argument `new`",
    ),
    (
        "{{ s | indent(widht=2) }}",
        Operation,
        (1, 8),
        "takes no argument `widht`",
    ),
    (
        "{{ '%d' | format('x') }}",
        Operation,
        (1, 11),
        "needs a whole number",
    ),
    ("{{ 'x' * 100000000 }}", Limit, (1, 4), "more than"),
];

#[test]
fn faults_have_kind_place_and_words() {
    let mut wrong = Vec::new();
    for (source, kind, (line, column), words) in FAULTS {
        let fault = fault(source);
        let place = fault.place.as_ref().map(|place| (place.line, place.column));
        let as_expected =
            fault.kind == *kind && place == Some((*line, *column)) && fault.message.contains(words);
        if !as_expected {
            wrong.push(format!("{source}: {:?}: {fault}", fault.kind));
        }
    }
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn a_place_is_given_in_bytes_and_in_characters() {
    let fault = fault("é\né {{ n / 0 }}");
    let place = fault.place.clone().expect("it has a place");
    assert_eq!((place.line, place.column), (2, 6));
    assert_eq!(&"é\né {{ n / 0 }}"[place.span], "n / 0");
    assert_eq!(fault.to_string(), "line 2, column 6: division by zero");
}
