//! Templates at random, within the language that both sides have.
//!
//! Expressions have types, so that most of them mean something; now and then one of another type
//! slips in, because faults have to agree as well.

use dodona_testkit::Chance;
use serde_json::{Value, json};

pub(super) struct Generate {
    chance: Chance,
    /// Names of whole numbers that loops and assignments have brought.
    numbers: Vec<&'static str>,
    in_loop: bool,
}

impl Generate {
    pub(super) fn new(chance: Chance) -> Self {
        Self {
            chance,
            numbers: Vec::new(),
            in_loop: false,
        }
    }

    /// A template with a context.
    pub(super) fn case(&mut self) -> Value {
        (self.numbers, self.in_loop) = (vec!["n", "m"], false);
        let template = self.body(3);
        json!({"template": template, "context": self.context()})
    }

    fn below(&mut self, end: usize) -> usize {
        self.chance.below(end as u64) as usize
    }

    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    fn context(&mut self) -> Value {
        let word = |this: &mut Self| this.pick(WORDS).to_owned();
        let row = |this: &mut Self| {
            let name = word(this);
            json!({"name": name, "ms": this.below(50), "ok": this.below(2) == 0, "sub": {"x": this.below(4)}})
        };
        let rows: Vec<Value> = (0..self.below(4)).map(|_| row(self)).collect();
        let words: Vec<String> = (0..self.below(5)).map(|_| word(self)).collect();
        let ints: Vec<i64> = (0..self.below(6))
            .map(|_| self.below(20) as i64 - 5)
            .collect();
        let floats = [0.5, 2.25, -1.75, 100.0, 0.1, 1e20, 1.5e-7, 42.55];
        json!({
            "n": self.below(12) as i64 - 3, "m": self.below(1000), "f": self.pick(&floats),
            "s": word(self), "t": word(self), "l": ints, "w": words, "r": rows,
            "d": {"b": self.below(9), "A": word(self), "c": null}, "nothing": null, "yes": self.below(2) == 0,
        })
    }

    fn body(&mut self, depth: usize) -> String {
        let count = 1 + self.below(3);
        (0..count).map(|_| self.statement(depth)).collect()
    }

    fn statement(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.emit(1);
        }
        match self.below(12) {
            0 => self
                .pick(&["text ", "\n", "a {b} c", " - ", "é "])
                .to_owned(),
            1 => {
                let (condition, body) = (self.boolean(2), self.body(depth - 1));
                let (other, end) = (self.boolean(1), self.body(depth - 1));
                match self.below(3) {
                    0 => format!("{{% if {condition} %}}{body}{{% endif %}}"),
                    1 => format!("{{% if {condition} %}}{body}{{% else %}}{end}{{% endif %}}"),
                    _ => format!(
                        "{{%- if {condition} %}}{body}{{% elif {other} -%}} {end}{{% endif %}}"
                    ),
                }
            }
            2 | 3 => self.for_loop(depth),
            4 => {
                let value = self.number(2);
                self.numbers.push("set_");
                format!("{{% set set_ = {value} %}}")
            }
            5 => {
                let (value, body) = (self.number(2), self.body(depth - 1));
                format!("{{% with w_ = {value} %}}{body}{{{{ w_ }}}}{{% endwith %}}")
            }
            6 => {
                let (filter, body) = (self.pick(&["upper", "title", "trim"]), self.body(depth - 1));
                match self.below(2) {
                    0 => format!("{{% filter {filter} %}}{body}{{% endfilter %}}"),
                    _ => format!("{{% set b_ %}}{body}{{% endset %}}{{{{ b_ | {filter} }}}}"),
                }
            }
            _ => self.emit(3),
        }
    }

    fn for_loop(&mut self, depth: usize) -> String {
        let list = self.numbers_list(2);
        let outside = (
            self.numbers.len(),
            std::mem::replace(&mut self.in_loop, true),
        );
        let condition = match self.below(3) {
            0 => {
                self.numbers.push("i_");
                self.in_loop = outside.1;
                format!(" if {}", self.boolean(1))
            }
            _ => String::new(),
        };
        self.in_loop = true;
        self.numbers.push("i_");
        let inner = self.body(depth - 1);
        let extra = match self.below(5) {
            0 => "{% if loop.index == 2 %}{% break %}{% endif %}",
            1 => "{% if i_ == 3 %}{% continue %}{% endif %}",
            2 => "{{ loop.cycle('x', i_, n) }}{{ loop.changed(i_ % 2) }}",
            3 => {
                "{{ loop.previtem }}{{ loop.nextitem }}{{ loop.depth }}{{ loop.first }}{{ loop.last }}"
            }
            _ => "{{ loop.revindex }}/{{ loop.length }}",
        };
        self.numbers.truncate(outside.0);
        self.in_loop = outside.1;
        // In Jinja2 a round that is cut short does not count, and `else` runs as well.
        let other = match extra.contains("{% break") || extra.contains("{% continue") {
            true => String::new(),
            false => format!("{{% else %}}{}", self.emit(1)),
        };
        format!("{{% for i_ in {list}{condition} %}}{extra}{inner}{other}{{% endfor %}}")
    }

    fn emit(&mut self, depth: usize) -> String {
        let value = self.any(depth);
        match self.below(9) {
            0 => format!("{{{{- {value} -}}}} "),
            1 => format!(
                "{{{{ {value} | tojson{} }}}}",
                self.pick(&["", "(2)", "(indent=1)"])
            ),
            _ => format!("{{{{ {value} }}}}"),
        }
    }

    fn any(&mut self, depth: usize) -> String {
        match self.below(7) {
            0 | 1 => self.number(depth),
            2 | 3 => self.text(depth),
            4 => self.list(depth),
            5 => self.boolean(depth),
            _ => self.dict(depth),
        }
    }

    fn number(&mut self, depth: usize) -> String {
        if depth == 0 || self.below(5) == 0 {
            return match self.below(9) {
                0 => "nothing".into(),
                1 => self.pick(&["f", "2.5", "0.1", "1e3", "d.b", "3.0"]).into(),
                2 if self.in_loop => self
                    .pick(&["loop.index", "loop.index0", "loop.revindex0"])
                    .into(),
                3 | 4 => self.pick(&["0", "1", "7", "12", "-3"]).into(),
                _ => {
                    let index = self.below(self.numbers.len());
                    self.numbers[index].into()
                }
            };
        }
        if self.below(25) == 0 {
            return self.any(depth - 1);
        }
        let depth = depth - 1;
        match self.below(11) {
            0..=3 => {
                let op = self.pick(&["+", "-", "*", "//", "%", "/"]);
                format!("({} {op} {})", self.number(depth), self.number(depth))
            }
            4 => format!(
                "({} ** {})",
                self.number(depth),
                self.pick(&["2", "0", "-1", "3"])
            ),
            5 => format!("-{}", self.number(0)),
            6 => format!("({} | {})", self.number(depth), self.pick(NUMBER_FILTERS)),
            7 => format!("({} | {})", self.text(depth), self.pick(TEXT_TO_NUMBER)),
            8 => format!(
                "({} | {})",
                self.numbers_list(depth),
                self.pick(&["sum", "min", "max", "first", "last", "length"])
            ),
            9 => format!("({} | sum(attribute='ms'))", self.rows()),
            _ => format!(
                "({} if {} else {})",
                self.number(depth),
                self.boolean(depth),
                self.number(depth)
            ),
        }
    }

    fn text(&mut self, depth: usize) -> String {
        if depth == 0 || self.below(5) == 0 {
            return self
                .pick(&[
                    "s",
                    "t",
                    "'ab'",
                    "\"it's\"",
                    "''",
                    "'a b  c'",
                    "d.A",
                    "'Hello World'",
                    "missing",
                ])
                .into();
        }
        if self.below(25) == 0 {
            return self.any(depth - 1);
        }
        let depth = depth - 1;
        match self.below(12) {
            0 | 1 => format!("({} ~ {})", self.text(depth), self.any(depth)),
            2 => format!("({} + {})", self.text(depth), self.text(depth)),
            3 => format!(
                "({} * {})",
                self.text(depth),
                self.pick(&["0", "2", "3", "-1"])
            ),
            4..=6 => format!("({} | {})", self.text(depth), self.pick(TEXT_FILTERS)),
            7 | 8 => format!(
                "{}.{}",
                self.pick(&["s", "t", "'a,b,,c'", "' x y '"]),
                self.pick(TEXT_METHODS)
            ),
            9 => format!(
                "({} | join({}))",
                self.list(depth),
                self.pick(&["", "', '", "1", "d='-'"])
            ),
            10 => self.format(depth),
            _ => format!(
                "{}{}",
                self.pick(&["s", "t", "'Hello World'", "d.A", "n"]),
                self.pick(SLICES)
            ),
        }
    }

    fn format(&mut self, depth: usize) -> String {
        match self.below(5) {
            0 => format!(
                "('%s|%5s|%-5s|%r' | format({0}, s, t, {0}))",
                self.number(depth)
            ),
            1 => format!(
                "('{}' | format({}))",
                self.pick(&["%d", "%05d", "%+d", "%x", "%.2f", "%8.3f", "%e", "%g", "%s"]),
                self.number(depth)
            ),
            2 => format!("('%(a)s %(b)s' % {{'a': {}, 'b': s}})", self.number(depth)),
            3 => format!(
                "'{}'.format({})",
                self.pick(&["{}", "{:>6}", "{:<6}|", "{:^7}", "{0!r}", "{:,}", "{:+}"]),
                self.number(depth)
            ),
            _ => format!(
                "'{}'.format({})",
                self.pick(&["{:.2f}", "{:08.3f}", "{:e}", "{:g}", "{:.3}", "{:.1%}"]),
                self.number(depth)
            ),
        }
    }

    fn boolean(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self
                .pick(&["yes", "true", "false", "none", "n", "s", "l", "missing"])
                .into();
        }
        let depth = depth - 1;
        match self.below(10) {
            0 | 1 => format!(
                "({} {} {})",
                self.number(depth),
                self.pick(COMPARISONS),
                self.number(depth)
            ),
            2 => format!(
                "({} {} {})",
                self.text(depth),
                self.pick(COMPARISONS),
                self.text(depth)
            ),
            3 => format!(
                "({} < {} <= {})",
                self.number(depth),
                self.number(depth),
                self.number(depth)
            ),
            4 => format!(
                "({} {} {})",
                self.number(depth),
                self.pick(&["in", "not in"]),
                self.numbers_list(depth)
            ),
            5 => format!(
                "({} in {})",
                self.text(depth),
                self.pick(&["s", "w", "d", "'abc'", "missing"])
            ),
            6 => format!(
                "({} {} {})",
                self.boolean(depth),
                self.pick(&["and", "or"]),
                self.boolean(depth)
            ),
            7 => format!("not {}", self.boolean(depth)),
            8 => format!(
                "({} is {}{})",
                self.any(depth),
                self.pick(&["", "not "]),
                self.pick(TESTS)
            ),
            _ => format!(
                "({} is {} {})",
                self.number(depth),
                self.pick(&["eq", "gt", "le", "ne"]),
                self.pick(&["1", "n", "m", "2.5"])
            ),
        }
    }

    fn rows(&mut self) -> String {
        match self.below(5) {
            0 => "(r | sort(attribute='ms'))".into(),
            1 => "(r | selectattr('ok'))".into(),
            2 => "(r | rejectattr('ms', 'gt', 20))".into(),
            3 => "(r | sort(attribute='name,ms', reverse=true))".into(),
            _ => "r".into(),
        }
    }

    fn numbers_list(&mut self, depth: usize) -> String {
        if depth == 0 || self.below(4) == 0 {
            return self
                .pick(&[
                    "l",
                    "[]",
                    "[3, 1, 2]",
                    "missing",
                    "(range(4) | list)",
                    "(range(1, 9, 3) | list)",
                    "(1, 2)",
                ])
                .into();
        }
        let depth = depth - 1;
        match self.below(8) {
            0 => format!("[{}, {}]", self.number(depth), self.number(depth)),
            1 => format!("(l + [{}])", self.number(depth)),
            2 => format!(
                "({} | {} | list)",
                self.numbers_list(depth),
                self.pick(NUMBERS_FILTERS)
            ),
            3 => format!("({} | map(attribute='ms') | list)", self.rows()),
            4 => format!("({} | map(attribute='sub.x') | list)", self.rows()),
            5 => format!("(l{})", self.pick(SLICES)),
            6 => format!("(l * {})", self.pick(&["0", "2", "-1"])),
            _ => format!("({} | map('abs') | list)", self.numbers_list(depth)),
        }
    }

    fn list(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self
                .pick(&["l", "w", "r", "[]", "missing", "['b', 'A', 'c']", "(1,)"])
                .into();
        }
        let depth = depth - 1;
        match self.below(12) {
            0 => self.numbers_list(depth),
            1 => format!(
                "[{}, {}, {}]",
                self.any(depth),
                self.any(depth),
                self.any(depth)
            ),
            2 => format!("({}, {})", self.any(depth), self.any(depth)),
            3 => format!("(w | {} | list)", self.pick(WORDS_FILTERS)),
            4 => format!("({} | list)", self.text(depth)),
            5 => format!("({} | map(attribute='name') | list)", self.rows()),
            6 => format!(
                "({} | groupby('{}'))",
                self.rows(),
                self.pick(&["name", "ok", "sub.x"])
            ),
            7 => format!(
                "(d | {})",
                self.pick(&[
                    "items | list",
                    "list",
                    "dictsort(by='key')",
                    "dictsort(true, reverse=true)"
                ])
            ),
            8 => format!(
                "({} | {} | list)",
                self.list(depth),
                self.pick(&["batch(2)", "batch(2, 'x')", "slice(2)", "slice(3, 0)"])
            ),
            9 => format!(
                "{}.{}",
                self.pick(&["s", "'a,b,,c'", "' x  y '"]),
                self.pick(SPLITS)
            ),
            10 => format!(
                "({})[{}]",
                self.list(depth),
                self.pick(&["0", "-1", "1:", "::-1", "9"])
            ),
            _ => format!("(d.{}() | list)", self.pick(&["items", "keys", "values"])),
        }
    }

    fn dict(&mut self, depth: usize) -> String {
        if depth == 0 {
            return "d".into();
        }
        let depth = depth - 1;
        match self.below(5) {
            0 => format!("{{'k': {}, 'z': {}}}", self.any(depth), self.any(depth)),
            1 => format!("dict(a={}, b=1)", self.any(depth)),
            2 => format!("{{'a': {{'b': {}}}}}", self.any(depth)),
            3 => format!("({} | default({}, true))", self.any(depth), self.any(depth)),
            _ => format!("d.get({}, {})", self.text(depth), self.number(depth)),
        }
    }
}

const WORDS: &[&str] = &[
    "abc",
    "Zed",
    "a b",
    "Hello World",
    "42",
    "3.7",
    "-8",
    "",
    "x,y,z",
    "line one\nline two\n",
    "it's",
    "\"quoted\"",
    "tab\there",
    "ÄÖ",
    "back\\slash",
    "  padded ",
    "<b>&",
    "1e5",
    "UPPER",
    "a-b(c)",
];
const NUMBER_FILTERS: &[&str] = &[
    "int",
    "float",
    "abs",
    "round",
    "round(1)",
    "round(2, 'ceil')",
    "round(0, 'floor')",
    "round(-1)",
    "string",
    "default(5)",
    "filesizeformat",
];
const TEXT_TO_NUMBER: &[&str] = &[
    "length",
    "int",
    "int(7)",
    "float",
    "float(1.5)",
    "wordcount",
    "count",
    "int(base=16)",
];
const TEXT_FILTERS: &[&str] = &[
    "upper",
    "lower",
    "title",
    "capitalize",
    "trim",
    "trim('abc')",
    "replace('a', 'bb')",
    "replace('', '-')",
    "replace(' ', '_', 1)",
    "center(12)",
    "indent",
    "indent(2, true)",
    "indent(1, blank=true)",
    "indent('> ', first=true)",
    "truncate(6)",
    "truncate(5, true)",
    "truncate(4, false, '', 0)",
    "string",
    "default('none', true)",
    "urlencode",
    "first",
    "last",
];
const TEXT_METHODS: &[&str] = &[
    "upper()",
    "lower()",
    "title()",
    "capitalize()",
    "swapcase()",
    "strip()",
    "lstrip()",
    "rstrip('c')",
    "replace('a', 'xy')",
    "replace('', '.', 2)",
    "center(9, '*')",
    "ljust(8)",
    "rjust(8, '-')",
    "zfill(7)",
    "startswith('a')",
    "endswith(('c', 'd'))",
    "find('b')",
    "rfind(',')",
    "count(',')",
    "count('')",
    "isalpha()",
    "isdigit()",
    "isupper()",
    "islower()",
    "isspace()",
    "isalnum()",
    "removeprefix('a')",
    "partition(',')",
    "rpartition(' ')",
    "join(['1', '2'])",
    "join(w)",
];
const SPLITS: &[&str] = &[
    "split()",
    "split(',')",
    "split(',', 1)",
    "rsplit(',', 1)",
    "split(none, 1)",
    "rsplit(none, 1)",
    "splitlines()",
    "splitlines(true)",
];
const SLICES: &[&str] = &[
    "[0]", "[-1]", "[1:]", "[:2]", "[::-1]", "[1:4:2]", "[-3:-1]", "[5:1:-2]", "[:]", "[99]",
    "[0:2:-1]",
];
const COMPARISONS: &[&str] = &["==", "!=", "<", "<=", ">", ">="];
const TESTS: &[&str] = &[
    "defined",
    "undefined",
    "none",
    "string",
    "number",
    "integer",
    "float",
    "boolean",
    "mapping",
    "sequence",
    "iterable",
    "true",
    "false",
    "odd",
    "even",
    "divisibleby(3)",
    "lower",
    "upper",
    "in [1, 2]",
    "sameas true",
    "callable",
    "in(w)",
];
const NUMBERS_FILTERS: &[&str] = &[
    "sort",
    "sort(reverse=true)",
    "reverse",
    "unique",
    "select('odd')",
    "reject('gt', 3)",
    "select",
    "map('string')",
    "map('round')",
    "list",
];
const WORDS_FILTERS: &[&str] = &[
    "sort",
    "sort(case_sensitive=true)",
    "sort(true)",
    "unique",
    "map('upper')",
    "map('length')",
    "reverse",
    "select('string')",
    "reject('in', 'abc')",
    "map('replace', 'a', '4')",
    "select('>', 'Z')",
    "map('truncate', 4, true)",
];
