//! What templates mean, by example. The differential test in `jinja.rs` goes further.

use dodona_template::{Limits, Memo, Template};
use serde_json::{Value, json};

use super::{evaluate, render};

fn context() -> Value {
    json!({
        "context": {
            "turn": {"number": 3, "token_usage": 0.8123, "items": 7},
            "user": {"id": "ann", "name": "Ann O'Neil"},
            "tools": [
                {"name": "vault_read", "ms": 12, "ok": true},
                {"name": "Code_search", "ms": 40, "ok": false},
                {"name": "vault_read", "ms": 3, "ok": true},
            ],
            "nothing": null,
        },
        "n": 5, "f": 2.5, "big": 18_446_744_073_709_551_615_u64, "s": "abc", "empty": [],
    })
}

/// Each template with its text.
const EXAMPLES: &[(&str, &str)] = &[
    // The rule format's own example.
    (
        "Token usage at {{ (context.turn.token_usage * 100) | int }}%",
        "Token usage at 81%",
    ),
    (
        "{{ context.user.name }}, turn {{ context.turn.number }}",
        "Ann O'Neil, turn 3",
    ),
    (
        "{{ context.turn.items }} {{ context.turn['items'] }}",
        "7 7",
    ),
    (
        "[{{ missing }}|{{ context.missing }}|{{ context.nothing }}]",
        "[||None]",
    ),
    (
        "{{ missing | default('x') }} {{ context.nothing | default('x', true) }}",
        "x x",
    ),
    (
        "{{ true }} {{ none }} {{ 1.0 }} {{ 1e16 }} {{ 1e-7 }} {{ big }}",
        "True None 1.0 1e+16 1e-07 18446744073709551615",
    ),
    (
        "{{ [1, 'a', \"b'c\", none, (1,), {'k': [2.5]}] }}",
        "[1, 'a', \"b'c\", None, (1,), {'k': [2.5]}]",
    ),
    (
        "{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 10 }} {{ 2 ** -1 }}",
        "3 -4 2 3.5 1024 0.5",
    ),
    (
        "{{ 1 < 2 < 3 }} {{ 'a' in 'abc' }} {{ 1 not in [1] }} {{ 1 == 1.0 == true }}",
        "True True False True",
    ),
    (
        "{{ 'a' ~ 1 ~ none ~ missing }} {{ 'ab' * 2 }} {{ [1] * 2 + [3] }}",
        "a1None abab [1, 1, 3]",
    ),
    (
        "{{ s[0] }}{{ s[-1] }}{{ s[::-1] }}{{ [1, 2, 3][1:] }}{{ s[9] }}",
        "accba[2, 3]",
    ),
    ("{{ 'yes' if n > 3 else 'no' }}{{ 'no' if n < 3 }}", "yes"),
    ("{{ n and 0 or 'z' }} {{ not n }}", "z False"),
    (
        "{% for t in context.tools if t.ok %}{{ loop.index }}/{{ loop.length }} {{ t.name }}{{ ', ' if not loop.last }}{% endfor %}",
        "1/2 vault_read, 2/2 vault_read",
    ),
    ("{% for x in empty %}x{% else %}none{% endfor %}", "none"),
    (
        "{% for k, v in {'a': 1, 'b': 2}.items() %}{{ k }}={{ v }};{% endfor %}",
        "a=1;b=2;",
    ),
    (
        "{% for x in [1, 1, 2] %}{{ loop.changed(x) }}{{ loop.cycle('a', 'b') }} {% endfor %}",
        "Truea Falseb Truea ",
    ),
    (
        "{% for x in [1, 2, 3, 4] %}{% if x == 2 %}{% continue %}{% endif %}{% if x == 4 %}{% break %}{% endif %}{{ x }}{% endfor %}",
        "13",
    ),
    (
        "{% for x in [1, 2] %}{% for y in 'ab' %}{{ x }}{{ y }}{{ loop.index0 }} {% endfor %}{{ loop.revindex }}{% endfor %}",
        "1a0 1b1 22a0 2b1 1",
    ),
    // What is set in a loop ends with the round; what is set outside stays.
    (
        "{% set x = 0 %}{% for i in [1, 2] %}{{ x }}{% set x = x + i %}{{ x }} {% endfor %}{{ x }}",
        "01 02 0",
    ),
    (
        "{% set x = 1 %}{% if true %}{% set x = 2 %}{% endif %}{{ x }}",
        "2",
    ),
    (
        "{% set a, b = 1, 2 %}{{ a }}{{ b }}{% with a = 9, c = a %}{{ a }}{{ c }}{% endwith %}{{ a }}",
        "12911",
    ),
    (
        "{% set t %}a{{ n }}{% endset %}{{ t | upper }}{% filter upper %}x{{ s }}{% endfilter %}",
        "A5XABC",
    ),
    (
        "{% macro hi(name, mark='!') %}Hi {{ name }}{{ mark }}{% endmacro %}{{ hi('Bo') }} {{ hi(mark='?', name='Al') }}",
        "Hi Bo! Hi Al?",
    ),
    (
        "{# gone #}a{%- if true -%} b {%- endif %}{% raw %}{{ x }}{% endraw %}",
        "ab{{ x }}",
    ),
    (
        "{{ 0 | map('abs') | list }} {{ context.nothing | select | list }} {{ empty | map | list }}",
        "[] [] []",
    ),
    ("[{{ '%s' % missing }}{{ 'x' % missing }}]", "[x]"),
    (
        "{{ context.tools | map(attribute='name') | unique | join(', ') }}",
        "vault_read, Code_search",
    ),
    (
        "{{ context.tools | selectattr('ok') | sum(attribute='ms') }} {{ context.tools | rejectattr('ms', 'gt', 10) | length }}",
        "15 1",
    ),
    (
        "{{ context.tools | sort(attribute='ms') | map(attribute='ms') | list }}",
        "[3, 12, 40]",
    ),
    (
        "{% for g in context.tools | groupby('name') %}{{ g.grouper }}:{{ g.list | length }} {% endfor %}",
        "Code_search:1 vault_read:2 ",
    ),
    (
        "{{ [3, 1, 2] | sort(reverse=true) }} {{ [3, 1] | min }} {{ ['b', 'A'] | sort }} {{ [] | max }}",
        "[3, 2, 1] 1 ['A', 'b'] ",
    ),
    (
        "{{ 42.55 | round }} {{ 42.55 | round(1, 'floor') }} {{ 2.5 | round | int }} {{ 42 | round }}",
        "43.0 42.5 2 42",
    ),
    (
        "{{ '42.7' | int }} {{ 'x' | int(9) }} {{ '0x1f' | int(base=16) }} {{ '1e3' | float }} {{ -3 | abs }}",
        "42 9 31 1000.0 3",
    ),
    (
        "{{ 'hello world' | title }} {{ 'a b c' | replace(' ', '-', 1) }} {{ ' x ' | trim }} {{ 'abc' | center(7) }}|",
        "Hello World a-b c x   abc  |",
    ),
    (
        "{{ 'a\nb\n' | indent(2) }}|{{ 'the quick brown fox' | truncate(12, leeway=0) }}",
        "a\n  b\n|the...",
    ),
    (
        "{{ '%s is %05.1f (%d%%)' | format('x', 2.25, 7) }} {{ '%-4s|' % 'a' }}",
        "x is 002.2 (7%) a   |",
    ),
    (
        "{{ '{} {1:>4} {n:.2f} {0!r}'.replace('{}', '{0}').format('a', 5, n=1.005) }}",
        "a    5 1.00 'a'",
    ),
    (
        "{{ {'b': [1, none], 'a': '<é>'} | tojson }}",
        "{\"a\": \"\\u003c\\u00e9\\u003e\", \"b\": [1, null]}",
    ),
    (
        "{{ 1536 | filesizeformat }} {{ 'a b/c' | urlencode }} {{ {'q': 'a b'} | urlencode }}",
        "1.5 kB a%20b/c q=a+b",
    ),
    (
        "{{ [1, 2, 3] | batch(2, 0) }} {{ [1, 2, 3] | slice(2) }}",
        "[[1, 2], [3, 0]] [[1, 2], [3]]",
    ),
    (
        "{{ {'b': 1, 'A': 2} | dictsort }} {{ {'a': 1} | items | list }}",
        "[('A', 2), ('b', 1)] [('a', 1)]",
    ),
    (
        "{{ 'a,b'.split(',') }} {{ 'x'.join(['1', '2']) }} {{ s.upper() }} {{ s.startswith(('z', 'a')) }} {{ 'abcb'.rfind('b') }}",
        "['a', 'b'] 1x2 ABC True 3",
    ),
    (
        "{{ {'a': 1}.get('b', 2) }} {{ context.user.get('id') }} {{ [1, 2, 1].count(1) }}",
        "2 ann 2",
    ),
    (
        "{{ n is odd }} {{ n is divisibleby 5 }} {{ x is defined }} {{ s is string }} {{ f is float }} {{ n is in [5] }} {{ none is none }}",
        "True True False True True True True",
    ),
    (
        "{{ range(3) | list }} {{ range(5, 0, -2) | list }} {{ dict(a=1) }}",
        "[0, 1, 2] [5, 3, 1] {'a': 1}",
    ),
];

#[test]
fn examples_give_their_texts() {
    for (source, expected) in EXAMPLES {
        assert_eq!(
            render(source, &context()).as_deref(),
            Ok(*expected),
            "{source}"
        );
    }
}

#[test]
fn one_expression_keeps_its_type() {
    let cases = [
        ("{{ n + 1 }}", json!(6)),
        ("{{ f }}", json!(2.5)),
        ("{{ [n, {'a': none}] }}", json!([5, {"a": null}])),
        ("{{ missing }}", json!(null)),
        ("{{ n > 3 }}", json!(true)),
        ("{{ '7' }}", json!("7")),
        ("{{ n }} ", json!("5 ")),
        ("{{ n }}{{ n }}", json!("55")),
        ("plain", json!("plain")),
    ];
    for (source, expected) in cases {
        assert_eq!(evaluate(source, &context()), Ok(expected), "{source}");
    }
}

#[test]
fn values_are_never_rendered() {
    let context = json!({"note": "{{ secret }}{% raw %}{{ '{{' }}", "secret": "s3cret"});
    let once = render("{{ note }}", &context);
    assert_eq!(once.as_deref(), Ok("{{ secret }}{% raw %}{{ '{{' }}"));
    assert_eq!(
        evaluate("{{ note }}", &context),
        Ok(context["note"].clone())
    );
    let through = render("{% set x = note ~ '' %}{{ x | string | trim }}", &context);
    assert_eq!(through.as_deref(), Ok("{{ secret }}{% raw %}{{ '{{' }}"));
}

#[test]
fn a_template_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Template>();
}

#[test]
fn templates_of_one_context_share_what_they_say_and_nothing_else() {
    let limits = Limits::message();
    let context = json!({ "n": 3, "x": 0.5, "s": "a}}b", "m": { "n": 7 } });
    let sources = [
        "a {{ n }} b {{ (x * 100) | int }}%",
        "c {{ n }} d {{ (x * 100) | int }}% {{ n }}",
        "{{ m.n }} {{ n * 2 }} {{ n ~ 2 }} {{ n + 2 }} {{ x }} {{ 'n' }} {{ n | string }}",
        "{{ s }} {{ s | upper }} {{ s | replace('a', 'b') }} {{ s | replace('b', 'a') }}",
        "{{ missing }} {{ n if x else 1 }} {{ [n, x] }} {{ \"s\" }}",
        "{% set n = 9 %}{{ n }} {{ (x * 100) | int }}",
        "{% for n in [1, 2] %}{{ n }}{% endfor %}{{ n }}",
        // One more than is put together from what is known.
        "{{ n }}{{ n }}{{ n }}{{ n }}{{ n }}{{ n }}{{ n }}{{ n }}{{ x }} end",
        "{{ n }}{{ n }}{{ n }}{{ n }}{{ n }}{{ n }}{{ n }}{{ x }} end",
        "no expression",
        "",
    ];
    let mut memo = Memo::new();
    for source in sources.into_iter().chain(sources) {
        let template = Template::compile(source, &limits).unwrap();
        let alone = template.render(&context, &limits).unwrap();
        let shared = template.render_with(&context, &limits, &mut memo).unwrap();
        assert_eq!(shared, alone, "{source}");
    }
}
