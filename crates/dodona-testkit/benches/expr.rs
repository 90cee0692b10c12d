//! What a condition costs, against simpleeval with a cached parse and against the expression
//! languages of other crates, each with its program compiled once and its context at hand.
//!
//! `cargo xtask bench expr [-- --json] [-- --quick]`

use std::fmt::Display;
use std::hint::black_box;

use anyhow::{Context, Result, anyhow, ensure};
use dodona_expr::{CallError, Expr, ExprSet, FunctionId, Mapping, Schema, Scope, Slot, Value};
use dodona_proto::RULE_CONTEXT;
use dodona_testkit::measure::{self, Figure, Row, per_operation_on_cpu, side_by_side};
use dodona_testkit::{Lines, Python};
use evalexpr::ContextWithMutableVariables as _;
use serde_json::{Value as Json, json};

/// Evaluates as often as it is asked to, and tells the nanoseconds of processor time for one round
/// through its expressions.
const PEER: &str = r#"
import json, sys, time
from types import SimpleNamespace
from simpleeval import EvalWithCompoundTypes
parsed = {}
for line in sys.stdin:
    case = json.loads(line)
    context = json.loads(case["context"], object_hook=lambda fields: SimpleNamespace(**fields))
    names = {"context": context, "True": True, "False": False, "None": None}
    evaluator = EvalWithCompoundTypes(functions={"any": any}, names=names)
    trees = [(source, parsed.setdefault(source, evaluator.parse(source))) for source in case["sources"]]
    holds = sum(bool(evaluator.eval(source, tree)) for source, tree in trees)
    begun = time.process_time_ns()
    for _ in range(case["times"]):
        for source, tree in trees:
            evaluator.eval(source, tree)
    print(json.dumps({"holds": holds, "ns": (time.process_time_ns() - begun) / case["times"]}), flush=True)
"#;

/// One condition, as each language writes it.
#[derive(Clone)]
struct Case {
    python: String,
    cel: String,
    rhai: String,
    /// It has no lists.
    evalexpr: Option<String>,
}

/// `what`, the cases that are evaluated one after the other, and the ratio to reach.
struct Table {
    what: &'static str,
    cases: Vec<Case>,
    times: u64,
    target: &'static str,
}

dodona_testkit::allocate_as_shipped!();

fn main() -> Result<()> {
    // Cargo and others pass arguments of their own; those are not ours to refuse.
    let asked = |option: &str| std::env::args().any(|argument| argument == option);
    let (rounds, times) = match (asked("--bench"), asked("--quick")) {
        (true, false) => (15, 20_000),
        (_, true) => (3, 5_000),
        // `cargo test` only wants to know that it works.
        (false, false) => (1, 10),
    };
    let mut simpleeval = Python::with(&["simpleeval==1.0.8"])?.lines(PEER)?;
    let mut rows = Vec::new();
    for table in tables(times) {
        measure_table(&table, rounds, &mut simpleeval, &mut rows)?;
    }
    if asked("--json") {
        println!("{:#}", measure::as_json(&rows));
    } else {
        print!("{}", measure::table(&rows));
    }
    Ok(())
}

fn tables(times: u64) -> Vec<Table> {
    let same = |text: &str| Case {
        python: text.to_owned(),
        cel: text.replace(" and ", " && "),
        rhai: text.replace(" and ", " && ").replace('\'', "\""),
        evalexpr: Some(text.replace(" and ", " && ").replace('\'', "\"")),
    };
    let simple = same("context.turn.token_usage > 0.8");
    let typical = same(
        "context.turn.token_usage > 0.7 and context.history.total_tool_calls > 5 \
         and context.user.id != 'bob'",
    );
    let history = Case {
        python: "any(t.name == 'code_search' and not t.success for t in context.history.tools)"
            .into(),
        cel: "context.history.tools.exists(t, t.name == 'code_search' && !t.success)".into(),
        rhai: "context.history.tools.some(|t| t.name == \"code_search\" && !t.success)".into(),
        evalexpr: None,
    };
    // 50 conditions, each in 20 rules with a threshold of its own beside it.
    let rules = (0..1_000).map(|rule: u32| {
        let (turn, usage) = (rule % 50, f64::from(rule) / 1_000.0);
        same(&format!(
            "context.turn.number + context.turn.iteration_count > {turn} and context.turn.token_usage > {usage:?}"
        ))
    });
    let table = |what, cases, times, target| Table {
        what,
        cases,
        times,
        target,
    };
    vec![
        table(
            "token_usage > 0.8",
            vec![simple],
            times,
            "≥ 200× simpleeval, faster than the rest",
        ),
        table("three terms", vec![typical], times, ""),
        table(
            "any() over 20 tool calls",
            vec![history],
            times.div_ceil(10),
            "",
        ),
        table(
            "1 000 conditions, in 50 groups",
            rules.collect(),
            times.div_ceil(1_000),
            "",
        ),
    ]
}

fn measure_table(
    table: &Table,
    rounds: usize,
    simpleeval: &mut Lines,
    rows: &mut Vec<Row>,
) -> Result<()> {
    let (document, turn) = (document(), Turn::new());
    let ours = Ours::new(&table.cases)?;
    let holds = ours.count(&turn)?;
    let mut add = |against: &str,
                   target: &str,
                   times: u64,
                   peer: &mut dyn FnMut() -> Result<usize>|
     -> Result<()> {
        let theirs = peer()?;
        ensure!(
            theirs == holds,
            "{}: {holds} hold, {against} says {theirs}",
            table.what
        );
        let (ours, theirs) = side_by_side(
            rounds,
            || ours.timed(times * 10, &turn),
            || timed(times, &mut *peer),
        );
        rows.push(row(table.what, against, target, ours, theirs));
        Ok(())
    };
    let cel = Cel::new(&table.cases, &document)?;
    add("cel", table.target, table.times, &mut || cel.count())?;
    let mut rhai = Rhai::new(&table.cases, &document)?;
    add("rhai", table.target, table.times, &mut || rhai.count())?;
    if let Some(evalexpr) = Evalexpr::new(&table.cases, &document)? {
        add("evalexpr", table.target, table.times, &mut || {
            evalexpr.count()
        })?;
    }
    rows.push(against_simpleeval(
        table,
        rounds,
        holds,
        simpleeval,
        || ours.timed(table.times * 10, &turn),
    )?);
    Ok(())
}

fn row(
    what: &str,
    against: &str,
    target: &str,
    ours: measure::Sample,
    peer: measure::Sample,
) -> Row {
    Row {
        what: what.into(),
        against: against.into(),
        target: target.into(),
        figure: Figure::Rate,
        ours,
        peer,
    }
}

fn timed<T>(times: u64, mut work: impl FnMut() -> Result<T>) -> f64 {
    per_operation_on_cpu(times, || {
        for _ in 0..times {
            black_box(work()).ok();
        }
    })
}

fn against_simpleeval(
    table: &Table,
    rounds: usize,
    holds: usize,
    peer: &mut Lines,
    ours: impl FnMut() -> f64,
) -> Result<Row> {
    let sources: Vec<&str> = table
        .cases
        .iter()
        .map(|case| case.python.as_str())
        .collect();
    let times = table.times.div_ceil(20);
    let context = document()["context"].to_string();
    let question = json!({"sources": sources, "times": times, "context": context});
    let answer = peer.ask(&question)?;
    ensure!(
        answer["holds"] == holds,
        "{}: {holds} hold, simpleeval says {answer}",
        table.what
    );
    let mut fault = None;
    let theirs = || {
        let nanos = peer
            .ask(&question)
            .and_then(|answer| answer["ns"].as_f64().context("no time"));
        nanos.unwrap_or_else(|error| {
            fault = Some(error);
            f64::NAN
        })
    };
    let (ours, theirs) = side_by_side(rounds, ours, theirs);
    match fault {
        Some(error) => Err(error),
        None => Ok(row(
            table.what,
            "simpleeval, cached parse",
            table.target,
            ours,
            theirs,
        )),
    }
}

/// A turn after twenty tool calls, as every peer gets it.
fn document() -> Json {
    let turn = Turn::new();
    let tool = |tool: &Tool| json!({"name": tool.name, "success": tool.success});
    let tools: Vec<Json> = turn.tools.iter().map(tool).collect();
    json!({"context": {
        "turn": {
            "number": turn.number,
            "iteration_count": turn.iteration_count,
            "token_usage": turn.token_usage,
        },
        "history": {"total_tool_calls": turn.tools.len(), "tools": tools},
        "user": {"id": turn.user},
    }})
}

/// The host of our own expressions: plain fields, borrowed.
struct Turn {
    number: i64,
    iteration_count: i64,
    token_usage: f64,
    tools: Vec<Tool>,
    user: String,
    /// What each slot of the schema reads.
    readers: Vec<Reader>,
}

struct Tool {
    name: String,
    success: bool,
}

type Reader = for<'a> fn(&'a Turn) -> Option<Value<'a>>;

impl Turn {
    fn new() -> Self {
        let tool = |n: u32| Tool {
            name: ["vault_search", "vault_read", "code_search"][n as usize % 3].to_owned(),
            success: true,
        };
        Self {
            number: 12,
            iteration_count: 4,
            token_usage: 0.85,
            tools: (0..20).map(tool).collect(),
            user: "alice".to_owned(),
            readers: schema().paths().map(reader).collect(),
        }
    }
}

fn reader(path: &str) -> Reader {
    match path {
        "context.turn.number" => |turn| Some(Value::Int(turn.number)),
        "context.turn.iteration_count" => |turn| Some(Value::Int(turn.iteration_count)),
        "context.turn.token_usage" => |turn| Some(Value::Float(turn.token_usage)),
        "context.history.tools" => |turn| Some(Value::sequence(&turn.tools)),
        "context.history.total_tool_calls" => {
            |turn| i64::try_from(turn.tools.len()).ok().map(Value::Int)
        }
        "context.user.id" => |turn| Some(Value::str(&turn.user)),
        _ => |_| None,
    }
}

fn schema() -> Schema {
    Schema::parse(RULE_CONTEXT).expect("the vocabulary of rules is a schema")
}

impl Scope for Turn {
    fn field(&self, slot: Slot) -> Option<Value<'_>> {
        self.readers[slot.index()](self)
    }

    fn call<'a>(&'a self, _: FunctionId, _: &[Value<'a>]) -> Result<Value<'a>, CallError> {
        Err(CallError::new("no function is measured here"))
    }
}

impl Mapping for Tool {
    fn len(&self) -> usize {
        2
    }

    fn get(&self, key: &str) -> Option<Value<'_>> {
        match key {
            "name" => Some(Value::str(&self.name)),
            "success" => Some(Value::Bool(self.success)),
            _ => None,
        }
    }

    fn entries(&self) -> Box<dyn Iterator<Item = (&str, Value<'_>)> + '_> {
        let entry = |name| self.get(name).map(|value| (name, value));
        Box::new(["name", "success"].into_iter().filter_map(entry))
    }

    fn is_record(&self) -> bool {
        true
    }
}

/// Ours: one condition by itself, several as a set.
enum Ours {
    One(Expr),
    Many(ExprSet),
}

impl Ours {
    fn new(cases: &[Case]) -> Result<Self> {
        let schema = schema();
        let exprs = cases
            .iter()
            .map(|case| Expr::compile(&case.python, &schema));
        let mut exprs: Vec<Expr> = exprs.collect::<Result<_, _>>()?;
        Ok(match exprs.pop() {
            Some(only) if exprs.is_empty() => Self::One(only),
            last => {
                exprs.extend(last);
                Self::Many(ExprSet::new(exprs))
            }
        })
    }

    /// One evaluation takes less than counting would.
    fn timed(&self, times: u64, turn: &Turn) -> f64 {
        match self {
            Self::One(expr) => per_operation_on_cpu(times, || {
                for _ in 0..times {
                    black_box(expr.test(black_box(turn))).ok();
                }
            }),
            Self::Many(_) => timed(times, || self.count(turn)),
        }
    }

    /// How many of the conditions hold.
    fn count(&self, turn: &Turn) -> Result<usize> {
        let turn: &dyn Scope = black_box(turn);
        match self {
            Self::One(expr) => Ok(usize::from(expr.test(turn)?)),
            Self::Many(set) => {
                let mut run = set.run(turn);
                count((0..set.len()).map(|index| run.test(index)))
            }
        }
    }
}

fn count<E>(answers: impl Iterator<Item = Result<bool, E>>) -> Result<usize>
where
    anyhow::Error: From<E>,
{
    let mut holds = 0;
    for answer in answers {
        holds += usize::from(answer?);
    }
    Ok(holds)
}

/// Errors of the peers come in many types.
fn told(error: impl Display) -> anyhow::Error {
    anyhow!("{error}")
}

struct Cel {
    programs: Vec<cel::Program>,
    context: cel::Context<'static, 'static>,
}

impl Cel {
    fn new(cases: &[Case], document: &Json) -> Result<Self> {
        let programs = cases
            .iter()
            .map(|case| cel::Program::compile(&case.cel).map_err(told));
        let mut context = cel::Context::default();
        context
            .add_variable("context", &document["context"])
            .map_err(told)?;
        Ok(Self {
            programs: programs.collect::<Result<_>>()?,
            context,
        })
    }

    fn count(&self) -> Result<usize> {
        let answers = self
            .programs
            .iter()
            .map(|program| match program.execute(&self.context) {
                Ok(cel::Value::Bool(answer)) => Ok(answer),
                other => Err(anyhow!("cel answers {other:?}")),
            });
        count(answers)
    }
}

struct Rhai {
    engine: rhai::Engine,
    programs: Vec<rhai::AST>,
    scope: rhai::Scope<'static>,
}

impl Rhai {
    fn new(cases: &[Case], document: &Json) -> Result<Self> {
        let engine = rhai::Engine::new();
        let compiled = cases
            .iter()
            .map(|case| engine.compile_expression(&case.rhai).map_err(told));
        // An expression may not hold a closure; a script may.
        let programs = compiled
            .zip(cases)
            .map(|(program, case)| program.or_else(|_| engine.compile(&case.rhai).map_err(told)));
        let programs = programs.collect::<Result<_>>()?;
        let mut scope = rhai::Scope::new();
        scope.push_constant_dynamic("context", dynamic(&document["context"]));
        Ok(Self {
            engine,
            programs,
            scope,
        })
    }

    fn count(&mut self) -> Result<usize> {
        let answers = self.programs.iter().map(|program| {
            self.engine
                .eval_ast_with_scope(&mut self.scope, program)
                .map_err(told)
        });
        count(answers)
    }
}

fn dynamic(json: &Json) -> rhai::Dynamic {
    match json {
        Json::Null => rhai::Dynamic::UNIT,
        Json::Bool(value) => (*value).into(),
        Json::Number(number) => match number.as_i64() {
            Some(value) => value.into(),
            None => number.as_f64().unwrap_or_default().into(),
        },
        Json::String(text) => text.clone().into(),
        Json::Array(items) => items.iter().map(dynamic).collect::<Vec<_>>().into(),
        Json::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(name, value)| (name.into(), dynamic(value)));
            fields.collect::<rhai::Map>().into()
        }
    }
}

struct Evalexpr {
    programs: Vec<evalexpr::Node>,
    context: evalexpr::HashMapContext,
}

impl Evalexpr {
    /// None where a case cannot be written in it.
    fn new(cases: &[Case], document: &Json) -> Result<Option<Self>> {
        let Some(sources) = cases
            .iter()
            .map(|case| case.evalexpr.as_ref())
            .collect::<Option<Vec<_>>>()
        else {
            return Ok(None);
        };
        let programs = sources
            .into_iter()
            .map(|source| evalexpr::build_operator_tree(source));
        let mut context = evalexpr::HashMapContext::new();
        flatten("context", &document["context"], &mut context)?;
        Ok(Some(Self {
            programs: programs.collect::<Result<_, _>>()?,
            context,
        }))
    }

    fn count(&self) -> Result<usize> {
        count(
            self.programs
                .iter()
                .map(|program| program.eval_boolean_with_context(&self.context)),
        )
    }
}

/// It has no fields: a path is one name.
fn flatten(path: &str, json: &Json, context: &mut evalexpr::HashMapContext) -> Result<()> {
    let value = match json {
        Json::Object(fields) => {
            for (name, value) in fields {
                flatten(&format!("{path}.{name}"), value, context)?;
            }
            return Ok(());
        }
        Json::Bool(value) => (*value).into(),
        Json::Number(number) if number.is_i64() => number.as_i64().unwrap_or_default().into(),
        Json::Number(number) => number.as_f64().unwrap_or_default().into(),
        Json::String(text) => text.clone().into(),
        _ => return Ok(()),
    };
    context.set_value(path.into(), value)?;
    Ok(())
}
