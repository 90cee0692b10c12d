//! Random expressions: mostly of one type, so that most have a value, with some junk.

use dodona_testkit::Chance;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    Int,
    Float,
    Str,
    Bool,
    Ints,
    Strs,
    Dict,
    Any,
}

pub(crate) struct Generator {
    chance: Chance,
    /// Variables of comprehensions around this place.
    locals: Vec<(String, Kind)>,
}

impl Generator {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            chance: Chance::from_seed(seed),
            locals: Vec::new(),
        }
    }

    pub(crate) fn expression(&mut self) -> String {
        let kinds = [
            Kind::Bool,
            Kind::Bool,
            Kind::Int,
            Kind::Float,
            Kind::Str,
            Kind::Ints,
            Kind::Strs,
            Kind::Dict,
            Kind::Any,
        ];
        let kind = self.pick(&kinds);
        self.of(kind, 4)
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::try_from(self.chance.below(from.len() as u64)).unwrap()]
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.chance.below(n) == 0
    }

    /// A term of this kind; rarely one of another.
    fn of(&mut self, kind: Kind, depth: u32) -> String {
        if self.one_in(60) {
            let kinds = [Kind::Int, Kind::Float, Kind::Str, Kind::Ints, Kind::Dict];
            let other = self.pick(&kinds);
            return self.leaf(other);
        }
        if depth == 0 {
            return self.leaf(kind);
        }
        let depth = depth - 1;
        if self.one_in(12) {
            let (a, b, c) = (
                self.of(kind, depth),
                self.of(Kind::Bool, depth),
                self.of(kind, depth),
            );
            return format!("({a} if {b} else {c})");
        }
        if self.one_in(14) {
            let op = self.pick(&["and", "or"]);
            let (a, b) = (self.of(kind, depth), self.of(kind, depth));
            return format!("({a} {op} {b})");
        }
        match kind {
            Kind::Int => self.int(depth),
            Kind::Float => self.float(depth),
            Kind::Str => self.text(depth),
            Kind::Bool => self.truth(depth),
            Kind::Ints => self.ints(depth),
            Kind::Strs => self.strs(depth),
            Kind::Dict => self.dict(depth),
            Kind::Any => {
                let kinds = [Kind::Int, Kind::Float, Kind::Str, Kind::Bool, Kind::Ints];
                let other = self.pick(&kinds);
                self.of(other, depth)
            }
        }
    }

    fn leaf(&mut self, kind: Kind) -> String {
        let known: Vec<String> = self
            .locals
            .iter()
            .filter(|(_, of)| *of == kind)
            .map(|(name, _)| name.clone())
            .collect();
        if !known.is_empty() && !self.one_in(3) {
            let at = usize::try_from(self.chance.below(known.len() as u64)).unwrap();
            return known[at].clone();
        }
        let leaves: &[&str] = match kind {
            Kind::Int => &[
                "n",
                "0",
                "1",
                "2",
                "3",
                "-1",
                "-7",
                "10",
                "255",
                "1000",
                "xs[0]",
                "d.a",
                "d['a']",
                "9007199254740993",
                "-9223372036854775808",
                "9223372036854775807",
                "1_000",
                "0xff",
            ],
            Kind::Float => &[
                "f",
                "0.5",
                "1.0",
                "-2.5",
                "1e10",
                "1e-5",
                "0.1",
                "3.14159",
                "1e16",
                "2.675",
                "-0.0",
                "1e300",
                "123456.789",
                "100.0",
            ],
            Kind::Str => &[
                "s",
                "''",
                "'a'",
                "'abc'",
                "'A b'",
                "'häuser'",
                "'  x y '",
                "'a,b,,c'",
                "\"it's\"",
                "'line\\nbreak'",
                "'12'",
                "'-7'",
                "'3.5'",
                "ws[0]",
                "'%d'",
                "'日本'",
                "'Straße'",
            ],
            Kind::Bool => &[
                "True",
                "False",
                "d.ok",
                "nothing is None",
                "n == 7",
                "not nothing",
            ],
            Kind::Ints => &[
                "xs",
                "[]",
                "[1, 2, 3]",
                "[0]",
                "d.b.c",
                "(1, 2, 3)",
                "[5, 3, 8, 1]",
                "{1, 2}",
            ],
            Kind::Strs => &[
                "ws",
                "['a', 'b']",
                "[]",
                "('x', 'y', 'z')",
                "['b', 'a', 'C']",
            ],
            Kind::Dict => &["d", "{}", "{'a': 1, 'b': 2}", "{1: 'x', 'y': 2.5}"],
            Kind::Any => &["nothing", "n", "s", "xs", "d", "f", "None"],
        };
        self.pick(leaves).to_owned()
    }

    fn number(&mut self, depth: u32) -> String {
        let kind = self.pick(&[Kind::Int, Kind::Int, Kind::Float]);
        self.of(kind, depth)
    }

    fn int(&mut self, depth: u32) -> String {
        let (a, b) = (self.of(Kind::Int, depth), self.of(Kind::Int, depth));
        match self.chance.below(20) {
            0 => format!("({a} + {b})"),
            1 => format!("({a} - {b})"),
            2 => format!("{a} * {b}"),
            3 => format!("({a} // {b})"),
            4 => format!("({a} % {b})"),
            5 => format!("({a} ** {})", self.pick(&["2", "3", "0", "1", b.as_str()])),
            6 => {
                let op = self.pick(&["&", "|", "^"]);
                format!("({a} {op} {b})")
            }
            7 => {
                let op = self.pick(&["<<", ">>"]);
                format!("({a} {op} {})", self.pick(&["1", "2", "5", "63", "70"]))
            }
            8 => {
                let op = self.pick(&["-", "~", "+"]);
                format!("{op}({a})")
            }
            9 => format!("len({})", self.collection(depth)),
            10 => format!("int({})", self.number(depth)),
            11 => format!("abs({a})"),
            12 => format!("round({})", self.of(Kind::Float, depth)),
            13 => {
                let function = self.pick(&["min", "max", "sum", "len"]);
                format!("{function}({})", self.of(Kind::Ints, depth))
            }
            14 => {
                let method = self.pick(&["find", "rfind", "count", "index"]);
                let (text, part) = (self.of(Kind::Str, depth), self.of(Kind::Str, 0));
                format!("{text}.{method}({part})")
            }
            15 => format!("{}[{a}]", self.of(Kind::Ints, depth)),
            16 => format!("list({}).count({a})", self.of(Kind::Ints, depth)),
            17 => format!(
                "int({})",
                self.pick(&["'12'", "' 7 '", "'0x1f', 16", "'1_0'", "'x'", "'11', 2"])
            ),
            18 => format!("round({a}, {})", self.pick(&["-1", "-2", "0", "1", "-20"])),
            _ => format!("{}.get('a', {b})", self.of(Kind::Dict, depth)),
        }
    }

    fn float(&mut self, depth: u32) -> String {
        let (a, b) = (self.number(depth), self.of(Kind::Float, depth));
        match self.chance.below(12) {
            0 => format!("({a} + {b})"),
            1 => format!("({b} - {a})"),
            2 => format!("({a} * {b})"),
            3 | 4 => format!("({a} / {})", self.number(depth)),
            5 => format!("({a} // {b})"),
            6 => format!("({a} % {b})"),
            // A negative base would make a complex number of a fraction.
            7 => format!(
                "(abs({b}) ** {})",
                self.pick(&["2", "0.5", "-1", "0", "3.0"])
            ),
            8 => format!("float({a})"),
            9 => format!(
                "round({b}, {})",
                self.pick(&["0", "1", "2", "3", "-1", "-3", "10"])
            ),
            10 => format!("abs({b})"),
            _ => format!(
                "float({})",
                self.pick(&[
                    "'1.5'", "'1e3'", "' -2 '", "'inf'", "'1_0.5'", "'x'", "'.5'", "'5.'"
                ])
            ),
        }
    }

    fn collection(&mut self, depth: u32) -> String {
        let kind = self.pick(&[Kind::Str, Kind::Ints, Kind::Strs, Kind::Dict]);
        self.of(kind, depth)
    }

    fn truth(&mut self, depth: u32) -> String {
        match self.chance.below(12) {
            0 | 1 => {
                let op = self.pick(&["<", "<=", ">", ">=", "==", "!="]);
                format!("({} {op} {})", self.number(depth), self.number(depth))
            }
            2 => {
                let kind = self.pick(&[Kind::Str, Kind::Ints, Kind::Strs]);
                let op = self.pick(&["<", "<=", ">", ">=", "==", "!="]);
                format!("({} {op} {})", self.of(kind, depth), self.of(kind, depth))
            }
            3 => {
                let (a, b, c) = (self.number(depth), self.number(depth), self.number(depth));
                let (one, two) = (self.pick(&["<", "<=", "=="]), self.pick(&["<", ">", "!="]));
                format!("({a} {one} {b} {two} {c})")
            }
            4 => {
                let op = self.pick(&["in", "not in"]);
                format!(
                    "({} {op} {})",
                    self.of(Kind::Int, depth),
                    self.of(Kind::Ints, depth)
                )
            }
            5 => {
                let op = self.pick(&["in", "not in"]);
                let kind = self.pick(&[Kind::Str, Kind::Strs, Kind::Dict]);
                format!(
                    "({} {op} {})",
                    self.of(Kind::Str, depth),
                    self.of(kind, depth)
                )
            }
            6 => format!("(not {})", self.of(Kind::Any, depth)),
            7 => {
                let op = self.pick(&["is", "is not"]);
                format!("({} {op} None)", self.of(Kind::Any, depth))
            }
            8 => {
                let function = self.pick(&["any", "all"]);
                self.loop_over(depth, Kind::Bool, |element, rest| {
                    format!("{function}([{element} {rest}])")
                })
            }
            9 => {
                let method = self.pick(&["startswith", "endswith"]);
                format!(
                    "{}.{method}({})",
                    self.of(Kind::Str, depth),
                    self.of(Kind::Str, 0)
                )
            }
            10 => {
                let method = self.pick(&[
                    "isalpha",
                    "isdigit",
                    "isupper",
                    "islower",
                    "isspace",
                    "istitle",
                    "isalnum",
                    "isdecimal",
                    "isnumeric",
                    "isidentifier",
                    "isascii",
                    "isprintable",
                ]);
                format!("{}.{method}()", self.of(Kind::Str, depth))
            }
            _ => format!("bool({})", self.of(Kind::Any, depth)),
        }
    }

    fn text(&mut self, depth: u32) -> String {
        let (a, b) = (self.of(Kind::Str, depth), self.of(Kind::Str, depth));
        match self.chance.below(20) {
            0 => format!("({a} + {b})"),
            1 => format!("({a} * {})", self.pick(&["0", "2", "3", "-1"])),
            2 => {
                let method = self.pick(&[
                    "upper",
                    "lower",
                    "title",
                    "capitalize",
                    "swapcase",
                    "strip",
                    "lstrip",
                    "rstrip",
                    "casefold",
                    "expandtabs",
                ]);
                format!("{a}.{method}()")
            }
            3 => format!("{a}.replace({b}, {})", self.of(Kind::Str, 0)),
            4 => format!("{a}[{}]", self.of(Kind::Int, 0)),
            5 | 6 => format!("{a}[{}]", self.slice()),
            7 => format!("str({})", self.printable(depth)),
            8 => format!("{a}.join({})", self.of(Kind::Strs, depth)),
            9 => {
                let method = self.pick(&["center", "ljust", "rjust", "zfill"]);
                format!("{a}.{method}({})", self.pick(&["0", "5", "8", "12", "-3"]))
            }
            10 => {
                let method =
                    self.pick(&["strip", "lstrip", "rstrip", "removeprefix", "removesuffix"]);
                format!("{a}.{method}({b})")
            }
            11 => format!(
                "{}[{}]",
                self.of(Kind::Strs, depth),
                self.pick(&["0", "1", "-1", "5"])
            ),
            12 => {
                let method = self.pick(&["min", "max"]);
                format!("{method}({})", self.of(Kind::Strs, depth))
            }
            13 | 14 => self.f_string(depth),
            15 => self.percent(depth),
            16 => format!(
                "{a}.{}({})[{}]",
                self.pick(&["partition", "rpartition"]),
                self.pick(&["','", "' '", "'a'"]),
                self.pick(&["0", "1", "2"])
            ),
            17 => format!("str({})", self.number(depth)),
            18 => format!(
                "{a}.replace({b}, 'x', {})",
                self.pick(&["0", "1", "2", "-1"])
            ),
            _ => format!("({a} or {b})"),
        }
    }

    /// Sets print in an order of their own.
    fn printable(&mut self, depth: u32) -> String {
        let kind = self.pick(&[Kind::Int, Kind::Float, Kind::Str, Kind::Bool, Kind::Strs]);
        if kind == Kind::Strs {
            return format!("list({})", self.of(kind, depth));
        }
        self.of(kind, depth)
    }

    fn slice(&mut self) -> String {
        let bounds = [
            "",
            "",
            "0",
            "1",
            "2",
            "-1",
            "-2",
            "5",
            "100",
            "-100",
            "9223372036854775807",
            "-9223372036854775808",
            "None",
        ];
        let steps = [
            "",
            "",
            "",
            ":1",
            ":2",
            ":-1",
            ":-2",
            ":9223372036854775807",
            ":-9223372036854775808",
            ":0",
        ];
        format!(
            "{}:{}{}",
            self.pick(&bounds),
            self.pick(&bounds),
            self.pick(&steps)
        )
    }

    fn f_string(&mut self, depth: u32) -> String {
        let (value, specs): (String, &[&str]) = match self.chance.below(3) {
            0 => (
                self.of(Kind::Int, depth.min(1)),
                &[
                    "", ":5", ":<6", ":^7", ":+", ":05", ":,", ":x", ":#b", ":_", ":e", ":.2f",
                    ":>+8,", ":010,", ":%", ":c", ":*^9", ":n", ":.2",
                ],
            ),
            1 => (
                self.of(Kind::Float, depth.min(1)),
                &[
                    "", ":.2f", ":.0f", ":10.3f", ":e", ":.3e", ":g", ":.3g", ":.10g", ":%",
                    ":.1%", ":,.2f", ":+.1f", ":08.2f", ":.3", ":_", ":#.3g", ":z.1f", ":G",
                    ":<12",
                ],
            ),
            _ => (
                self.of(Kind::Str, depth.min(1)),
                &[
                    "", ":5", ":>8", ":^9", ":*<7", ":.2", ":10.3", ":s", ":05", ":d",
                ],
            ),
        };
        let spec = self.pick(specs);
        // Quotes of the other kind inside, as Python before 3.12 wants it.
        if value.contains('"') || value.contains('\\') || value.contains('{') {
            return "'plain'".to_owned();
        }
        format!("f\"<{{{value}{spec}}}>\"")
    }

    fn percent(&mut self, depth: u32) -> String {
        let (spec, kind) = self.pick(&[
            ("%d", Kind::Int),
            ("%5d", Kind::Int),
            ("%-6d|", Kind::Int),
            ("%05d", Kind::Int),
            ("%+d", Kind::Int),
            ("%x", Kind::Int),
            ("%#o", Kind::Int),
            ("%s", Kind::Int),
            ("%r", Kind::Str),
            ("%s", Kind::Str),
            ("%10s", Kind::Str),
            ("%-10s|", Kind::Str),
            ("%.2s", Kind::Str),
            ("%f", Kind::Float),
            ("%.1f", Kind::Float),
            ("%10.3f", Kind::Float),
            ("%e", Kind::Float),
            ("%g", Kind::Float),
            ("%G", Kind::Float),
            ("%d", Kind::Float),
            ("%08.2f", Kind::Float),
            ("%a", Kind::Str),
            ("%%%d", Kind::Int),
            ("% d", Kind::Int),
            ("%i", Kind::Bool),
        ]);
        let value = self.of(kind, depth.min(1));
        if self.one_in(2) {
            return format!("'{spec}' % ({value},)");
        }
        format!("'a{spec}b' % ({value})")
    }

    fn ints(&mut self, depth: u32) -> String {
        let (a, b) = (self.of(Kind::Ints, depth), self.of(Kind::Int, depth));
        match self.chance.below(12) {
            0 => format!("[{b}, *sorted({a})]"),
            1 => format!("sorted({a})"),
            2 => format!("sorted({a}, reverse=True)"),
            3 => format!("list(reversed(sorted({a})))"),
            4 | 5 => format!("sorted({a})[{}]", self.slice()),
            6 | 7 => self.loop_over(depth, Kind::Int, |element, rest| {
                format!("[{element} {rest}]")
            }),
            8 => format!("(sorted({a}) + [{b}])"),
            9 => format!("(sorted({a}) * {})", self.pick(&["0", "2", "-1"])),
            10 => format!("tuple(sorted({a}))"),
            _ => {
                let op = self.pick(&["|", "&", "-", "^"]);
                let (one, two) = (self.of(Kind::Ints, depth), self.of(Kind::Ints, 0));
                format!("sorted(set({one}) {op} set({two}))")
            }
        }
    }

    fn strs(&mut self, depth: u32) -> String {
        let (a, b) = (self.of(Kind::Strs, depth), self.of(Kind::Str, depth));
        match self.chance.below(11) {
            0 => format!("[{b}, *{a}]"),
            1 => format!("sorted({a})"),
            2 => format!("{b}.split()"),
            3 => format!(
                "{b}.split({})",
                self.pick(&["','", "' '", "'a'", "',', 1", "None, 1", "''", "maxsplit=1"])
            ),
            4 => format!(
                "{b}.rsplit({})",
                self.pick(&["','", "' '", "'a'", "',', 1", "None, 1"])
            ),
            5 => format!("{b}.splitlines()"),
            6 => format!("list({b})"),
            7 => self.loop_over(depth, Kind::Str, |element, rest| {
                format!("[{element} {rest}]")
            }),
            8 => format!("sorted({a}, key=len)"),
            9 => format!("list({a})[{}]", self.slice()),
            _ => format!("list({}.keys())", self.of(Kind::Dict, 0)),
        }
    }

    fn dict(&mut self, depth: u32) -> String {
        let (a, b) = (self.of(Kind::Dict, depth), self.of(Kind::Any, depth));
        match self.chance.below(6) {
            0 => format!("{{'k': {b}, **dict({a})}}"),
            1 => format!("({a} | {{'z': {b}}})"),
            2 => format!(
                "{{{}: {b}, {}: 2}}",
                self.of(Kind::Str, 0),
                self.of(Kind::Int, 0)
            ),
            3 => self.loop_over(depth, Kind::Int, |element, rest| {
                format!("{{{element}: 1 {rest}}}")
            }),
            4 => format!("dict({a})"),
            _ => format!("{{k: v for k, v in {a}.items() if v}}"),
        }
    }

    /// A loop with a variable that its terms use.
    fn loop_over(
        &mut self,
        depth: u32,
        element: Kind,
        write: impl FnOnce(String, String) -> String,
    ) -> String {
        let name = format!("v{}", self.locals.len());
        let over = self.pick(&[Kind::Ints, Kind::Strs]);
        let of = if over == Kind::Ints {
            Kind::Int
        } else {
            Kind::Str
        };
        let mut items = self.of(over, depth.min(1));
        // What a loop over a set finds first is not told by Python.
        if over == Kind::Ints {
            items = format!("sorted({items})");
        }
        self.locals.push((name.clone(), of));
        let made = self.of(element, depth.min(2));
        let condition = if self.one_in(2) {
            format!(" if {}", self.of(Kind::Bool, depth.min(1)))
        } else {
            String::new()
        };
        self.locals.pop();
        write(made, format!("for {name} in {items}{condition}"))
    }
}
