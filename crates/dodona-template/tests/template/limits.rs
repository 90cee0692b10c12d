//! Templates that try to hang, to flood or to abort.

use dodona_template::{ErrorKind, Limits, Template, TemplateError};
use proptest::prelude::*;
use serde_json::{Value, json};

/// A context with something of everything that grows.
fn context() -> Value {
    json!({
        "n": 1_000_000_000_000_i64,
        "s": "x".repeat(1000),
        "list": (0..500).collect::<Vec<_>>(),
        "words": "many words of a text ".repeat(50),
        "dict": {"a": [1, 2, {"b": "c"}]},
    })
}

fn render(source: &str, limits: &Limits) -> Result<String, TemplateError> {
    Template::compile(source, limits)?.render(&context(), limits)
}

/// Each must end with a limit, whatever the limits are.
const BOMBS: &[&str] = &[
    // Repeats.
    "{{ 'x' * 100000000 }}",
    "{{ 100000000 * 'x' }}",
    "{{ 'xx' * 9223372036854775807 }}",
    "{{ [1] * 100000000 }}",
    "{{ (1, 2) * 9223372036854775807 }}",
    "{{ s * n }}",
    "{{ ([list] * 1000) * 1000 }}",
    "{{ ('x' * 500000) ~ ('x' * 500000) ~ ('x' * 50000000) }}",
    // Widths.
    "{{ '%1000000000d' | format(1) }}",
    "{{ '%.1000000000f' | format(1.5) }}",
    "{{ '%*d' | format(1000000000000, 1) }}",
    "{{ '%1000000000s' % 's' }}",
    "{{ '%.99999999999999999999d' % 7 }}",
    "{{ '%.99999e' % 7 }}{{ '%.70000f' % 7 }}",
    "{{ '{:.99999g}'.format(7.5) }}",
    "{{ '{:.65536%}'.format(7.5) }}",
    "{{ '{:.65535}'.format(0.00012) }}",
    "{{ '{:>1000000000}'.format(1) }}",
    "{{ '{:.1000000000f}'.format(1.0) }}",
    "{{ '{:0999999999999999999999d}'.format(1) }}",
    "{{ 'x'.center(1000000000000) }}",
    "{{ 'x'.ljust(n) }}{{ 'x'.rjust(n) }}",
    "{{ '1'.zfill(n) }}",
    "{{ 'x' | center(n) }}",
    "{{ 'a\nb' | indent(n) }}",
    "{{ {'a': 1} | tojson(indent=n) }}",
    // Filters that multiply.
    "{{ s | replace('', s * 100) }}",
    "{{ (s * 100) | replace('x', s * 100) }}",
    "{{ (s * 100).replace('x', s * 100) }}",
    "{{ list | join(s * 100) }}{{ list | join(s * 1000) }}",
    "{{ (s * 100).join(words.split()) }}",
    "{{ ('\n' * 100000) | indent(1000, blank=true) }}",
    "{{ [1] | batch(n, 'x') }}",
    "{{ [1] | slice(n) }}",
    "{{ range(n) | list }}",
    "{{ range(0, n, 2) | length }}",
    "{% for i in range(n) %}{% endfor %}",
    // Loops.
    "{% for a in list %}{% for b in list %}{% for c in list %}x{% endfor %}{% endfor %}{% endfor %}",
    "{% for a in list %}{% for b in list %}{{ s }}{% endfor %}{% endfor %}",
    "{% for a in list %}{% for b in list %}{% set x = list | sort %}{% endfor %}{% endfor %}",
    "{% for a in list %}{% for b in list %}{% if list == list ~ '' or list == list %}{% endif %}{% endfor %}{% endfor %}",
    "{% for a in list %}{% for b in list %}{% set x = words.split() %}{% endfor %}{% endfor %}",
    "{% for a in list %}{% for b in list %}{{ (s ~ b) in (s * 100) }}{% endfor %}{% endfor %}",
    "{% set x %}{% for a in list %}{% for b in list %}{{ s }}{% endfor %}{% endfor %}{% endset %}",
    "{% filter upper %}{% for a in list %}{% for b in list %}text{{ s }}{% endfor %}{% endfor %}{% endfilter %}",
    // Macros.
    "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "{% macro m(x) %}{{ m([x, x]) }}{% endmacro %}{{ m(1) }}",
    "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}",
    "{% macro m(x=m()) %}{% endmacro %}{{ m() }}",
    "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(30) }}",
    "{% macro m(x) %}{% for i in [1, 2] %}{{ m(x ~ x) }}{% endfor %}{% endmacro %}{{ m('x') }}",
    // Elements of elements.
    "{{ (list * 100) | map('string') | map('list') | map('length') | sum }}{{ (list * 100) | map('center', 1000) | list }}",
    "{{ (list * 1000) | unique | list }}",
    "{{ (words * 40).split() | groupby(0) }}{% for a in list %}{{ (words * 40).split() | sort }}{% endfor %}",
];

/// Sharing makes these small to hold and endless to walk.
fn doublings() -> Vec<String> {
    let text = "{% set x = x ~ x %}".repeat(100);
    let lists = "{% set x = [x, x] %}".repeat(80);
    let sums = "{% set x = x + x %}".repeat(80);
    let dicts = "{% set x = {'a': x, 'b': x} %}".repeat(80);
    let tuples = "{% set x = (x, x, x) %}".repeat(80);
    vec![
        format!("{{% set x = 'ab' %}}{text}{{{{ x }}}}"),
        format!("{{% set x = [1] %}}{sums}{{{{ x }}}}"),
        format!("{{% set x = 1 %}}{lists}{{{{ x }}}}"),
        format!("{{% set x = 1 %}}{lists}{{{{ x == x ~ '' }}}}"),
        format!("{{% set x = 1 %}}{dicts}{{{{ x | tojson }}}}"),
        format!(
            "{{% set x = 1 %}}{tuples}{{% set y = x %}}{{{{ x == y and x < y and x in [y] }}}}"
        ),
        format!("{{% set x = 1 %}}{tuples}{{{{ '%s' % (x,) }}}}"),
    ]
}

#[test]
fn a_whole_number_may_have_more_digits_than_the_standard_library_pads() {
    let text = render("{{ ('%.70000d' % 7) | length }}", &Limits::prompt());
    assert_eq!(text.unwrap(), "70000");
}

#[test]
fn bombs_end_with_a_limit() {
    let doublings = doublings();
    let bombs = BOMBS
        .iter()
        .copied()
        .chain(doublings.iter().map(String::as_str));
    for bomb in bombs {
        for limits in [Limits::message(), Limits::prompt()] {
            match render(bomb, &limits) {
                Err(error) => assert_eq!(error.kind, ErrorKind::Limit, "{bomb}: {error}"),
                Ok(text) => panic!("{bomb}: {} bytes", text.len()),
            }
        }
    }
}

/// Sources that would overflow the stack of a parser, or of what drops its tree.
fn deep_sources() -> Vec<String> {
    let nest = |open: &str, inner: &str, close: &str, times: usize| {
        format!("{}{inner}{}", open.repeat(times), close.repeat(times))
    };
    let expression = |inner: String| format!("{{{{ {inner} }}}}");
    let mut sources = vec![
        expression(nest("(", "1", ")", 50_000)),
        expression(nest("[", "", "]", 50_000)),
        expression(nest("{1:", "1", "}", 30_000)),
        expression(nest("a[", "1", "]", 30_000)),
        expression(nest("f(", "1", ")", 30_000)),
        expression("-".repeat(100_000) + "1"),
        expression("not ".repeat(50_000) + "1"),
        expression("1".to_owned() + &"+1".repeat(50_000)),
        expression("1".to_owned() + &"~1".repeat(50_000)),
        expression("1".to_owned() + &"**1".repeat(50_000)),
        expression("1".to_owned() + &" and 1".repeat(30_000)),
        expression("1".to_owned() + &" or 1".repeat(30_000)),
        expression("1".to_owned() + &" if 1 else 1".repeat(15_000)),
        expression("1".to_owned() + &" if 1".repeat(30_000)),
        expression("1".to_owned() + &" is odd".repeat(30_000)),
        expression("1".to_owned() + &" < 1".repeat(50_000)),
        expression("1".to_owned() + &" in 1".repeat(30_000)),
        expression("a".to_owned() + &".a".repeat(50_000)),
        expression("a".to_owned() + &"[0]".repeat(50_000)),
        expression("a".to_owned() + &"()".repeat(50_000)),
        expression("a".to_owned() + &"[::]".repeat(50_000)),
        expression("a".to_owned() + &"|e".repeat(50_000)),
        expression("a".to_owned() + &"|list()".repeat(30_000)),
        "{% filter upper".to_owned() + &"|upper".repeat(30_000) + " %}{% endfilter %}",
        "{% set x | upper".to_owned() + &"|upper".repeat(30_000) + " %}{% endset %}",
        "{% for ".to_owned() + &nest("(", "a", ",)", 30_000) + " in x %}{% endfor %}",
        "{% if 1 %}".to_owned() + &"{% elif 1 %}".repeat(20_000) + "{% endif %}",
    ];
    for (open, close) in [
        ("{% if 1 %}", "{% endif %}"),
        ("{% for x in y %}", "{% endfor %}"),
        ("{% with %}", "{% endwith %}"),
        ("{% set x %}", "{% endset %}"),
        ("{% filter upper %}", "{% endfilter %}"),
        ("{% macro m() %}", "{% endmacro %}"),
        ("{% call m() %}", "{% endcall %}"),
        ("{% autoescape 1 %}", "{% endautoescape %}"),
    ] {
        sources.push(nest(open, "x", close, 8_000));
        sources.push(open.repeat(16_000));
    }
    sources
}

#[test]
fn deep_sources_are_refused_and_not_followed() {
    let limits = Limits {
        source_bytes: 1_000_000,
        ..Limits::prompt()
    };
    for source in deep_sources() {
        let error = Template::compile(&source, &limits).expect_err("it is too deep");
        let begin: String = source.chars().take(40).collect();
        // What is nested in a place that the parser does not allow is a syntax error as well.
        let kinds = [ErrorKind::Limit, ErrorKind::Syntax, ErrorKind::Unsupported];
        assert!(kinds.contains(&error.kind), "{begin}: {error}");
        let message = Template::compile(&source, &Limits::message()).expect_err("too long");
        assert_eq!(message.kind, ErrorKind::Limit, "{begin}");
    }
}

#[test]
fn a_deep_template_within_the_limits_runs_on_a_small_stack() {
    let expression =
        |depth: usize| format!("{{{{ {}1{} }}}}", "(".repeat(depth), ")".repeat(depth));
    let chain = |length: usize| format!("{{{{ 1{} }}}}", " + 1".repeat(length));
    let tags = |depth: usize| "{% if 1 %}".repeat(depth) + "x" + &"{% endif %}".repeat(depth);
    let call = "{% macro m(n) %}{{ [m(n - 1)] | join if n }}{% endmacro %}{{ m(25) }}";
    let sources = [expression(100), chain(100), tags(100), call.to_owned()];
    // The smallest stack that anything here runs on; tests are not optimised, so frames are large.
    let small = std::thread::Builder::new().stack_size(1024 * 1024);
    let run = small.spawn(move || {
        for source in sources {
            // Whether it fits the depth is the limit's affair; that nothing overflows is ours.
            let _ = render(&source, &Limits::prompt());
        }
    });
    run.expect("a thread starts")
        .join()
        .expect("it does not overflow");
}

#[test]
fn very_many_names_are_no_work() {
    let limits = Limits {
        source_bytes: 1_000_000,
        ..Limits::prompt()
    };
    let names = |from: &str| {
        (0..20_000)
            .map(|n| from.replace('#', &n.to_string()))
            .collect::<String>()
    };
    // Each would be minutes of work if names were looked for one by one.
    let all_known = names("{% set a# = # %}");
    assert!(Template::compile(&all_known, &limits).is_ok());
    let reads = format!("{all_known}{{% for i in range(50000) %}}{{{{ a0 }}}}{{% endfor %}}");
    assert!(render(&reads, &limits).is_ok());
    let in_a_scope = format!(
        "{{% with %}}{all_known}{{% for i in range(50000) %}}{{% if a0 %}}{{% endif %}}{{% endfor %}}{{% endwith %}}"
    );
    let error = render(&in_a_scope, &limits).expect_err("it is paid for");
    assert_eq!(error.kind, ErrorKind::Limit);
}

#[test]
fn a_longer_source_than_allowed_is_refused() {
    let limits = Limits::message();
    assert!(Template::compile(&"x".repeat(4096), &limits).is_ok());
    let error = Template::compile(&"x".repeat(4097), &limits).expect_err("it is too long");
    assert_eq!((error.kind, error.place), (ErrorKind::Limit, None));
}

#[test]
fn the_output_has_a_bound_of_its_own() {
    let limits = Limits {
        output_bytes: 10,
        ..Limits::message()
    };
    assert_eq!(
        render("{{ 'x' * 10 }}", &limits).as_deref(),
        Ok("xxxxxxxxxx")
    );
    let error = render("{{ 'x' * 10 }}y", &limits).expect_err("one too many");
    assert_eq!(error.kind, ErrorKind::Limit);
}

/// Pieces that templates are made of, to be put together at random.
const PIECES: &[&str] = &[
    "{{",
    "}}",
    "{%",
    "%}",
    "{#",
    "#}",
    "-",
    "+",
    "*",
    "**",
    "//",
    "%",
    "~",
    "|",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    ".",
    "=",
    "==",
    "<",
    " in ",
    " is ",
    " not ",
    " and ",
    " if ",
    " else ",
    "for x in ",
    "endfor",
    "set x = ",
    "endset",
    "with ",
    "endwith",
    "macro m(a=1)",
    "endmacro",
    "m(1)",
    "loop.index",
    "loop",
    "x",
    "n",
    "s",
    "list",
    "dict",
    "words",
    "0",
    "1",
    "-1",
    "2.5",
    "9223372036854775807",
    "'a'",
    "\"é\"",
    "none",
    "true",
    "map",
    "sort",
    "replace",
    "join",
    "format",
    "batch",
    "slice",
    "round",
    "int",
    "groupby",
    "tojson",
    "truncate",
    ".items()",
    ".split()",
    ".format(",
    "range(",
    "[::-1]",
    "[1:]",
    "\n",
    " ",
    "text",
    "raw",
    "endraw",
    "filter ",
    "do ",
];

proptest! {
    #[test]
    fn nothing_panics_and_nothing_exceeds_its_limits(
        pieces in prop::collection::vec(prop::sample::select(PIECES), 1..40),
    ) {
        let source = pieces.concat();
        let limits = Limits::message();
        if let Ok(template) = Template::compile(&source, &limits)
            && let Ok(text) = template.render(&context(), &limits)
        {
            prop_assert!(text.len() <= limits.output_bytes);
        }
    }

    #[test]
    fn any_expression_ends(
        pieces in prop::collection::vec(prop::sample::select(&PIECES[6..]), 1..16),
    ) {
        let source = format!("{{{{ {} }}}}", pieces.join(" "));
        let limits = Limits::message();
        if let Ok(template) = Template::compile(&source, &limits) {
            let _ = template.render(&context(), &limits);
            let _ = template.evaluate(&context(), &limits);
        }
    }
}
