//! Why an expression is what it is: every term with its value.

use serde_json::{Value as Json, json};

use crate::error::{Error, Span};
use crate::eval::{Machine, Outcome, Trace};
use crate::expr::Expr;
use crate::ir::Id;
use crate::scope::Scope;
use crate::value::Value;

/// How many elements of a term's value are shown to programs.
const SHOWN: usize = 1_000;

/// An evaluation with all its terms.
#[derive(Debug)]
pub struct Explanation<'a> {
    /// What the expression is.
    pub result: Result<Value<'a>, Error>,
    /// The whole expression as a term.
    pub root: Term<'a>,
}

/// A term of an expression.
#[derive(Debug)]
pub struct Term<'a> {
    /// Where it stands.
    pub span: Span,
    /// How it is written.
    pub text: String,
    /// What became of it.
    pub outcome: TermOutcome<'a>,
    /// How often it was evaluated: terms of a comprehension more than once, and then the outcome
    /// is the last one.
    pub times: u32,
    /// The terms that it is made of, as far as they are not constant.
    pub terms: Vec<Term<'a>>,
}

/// What became of a term.
#[derive(Debug)]
pub enum TermOutcome<'a> {
    /// It has a value.
    Value(Value<'a>),
    /// It failed, or one of its terms did.
    Failed(String),
    /// The answer was known without it.
    NotReached,
}

impl Expr {
    /// Evaluates, and keeps the value of every term. Slower than [`eval`](Self::eval), with the
    /// same result.
    pub fn explain<'a>(&'a self, scope: &'a dyn Scope) -> Explanation<'a> {
        let mut machine = Machine::new(&self.program, scope, self.limits()).traced();
        let result = machine.eval(self.program.root);
        let result = result.map_err(|fault| self.located(fault));
        let trace = machine.into_trace();
        Explanation {
            result,
            root: self.term(self.program.root, trace.as_deref()),
        }
    }

    fn term<'a>(&'a self, id: Id, trace: Option<&Trace<'a>>) -> Term<'a> {
        let span = self.program.span(id);
        let known = self.program.known(id).map(Value::borrowed);
        let outcome = match trace.and_then(|trace| trace.outcome(id)) {
            Some(Outcome::Value(value)) => TermOutcome::Value(value.clone()),
            Some(Outcome::Failed(_)) if self.is_field(id) => {
                TermOutcome::Failed(self.about_owner(span).message().to_owned())
            }
            Some(Outcome::Failed(message)) => TermOutcome::Failed(message.clone()),
            // A constant is what it is, whether somebody looked or not.
            None => known.map_or(TermOutcome::NotReached, TermOutcome::Value),
        };
        let children = self.program.op(id).children().into_iter();
        let terms = children
            .filter(|&child| !self.speaks_for_itself(child))
            .map(|child| self.term(child, trace));
        Term {
            span,
            text: span.of(self.source()).to_owned(),
            outcome,
            times: trace.map_or(0, |trace| trace.times(id)),
            terms: terms.collect(),
        }
    }

    /// Whether a term is a literal: its text is its value.
    fn speaks_for_itself(&self, id: Id) -> bool {
        let text = self.program.span(id).of(self.source());
        let known = self.program.known(id);
        known.is_some_and(|value| value.as_str().is_some() || value.short_repr() == text)
    }
}

impl Term<'_> {
    /// This term and all below it, for programs. Of large values the rest is null.
    pub fn to_json(&self) -> Json {
        let mut json = json!({
            "text": self.text,
            "span": [self.span.start, self.span.end],
        });
        match &self.outcome {
            TermOutcome::Value(value) => json["value"] = value.to_json_within(SHOWN),
            TermOutcome::Failed(message) => json["error"] = Json::from(message.as_str()),
            TermOutcome::NotReached => json["reached"] = Json::Bool(false),
        }
        if self.times > 1 {
            json["times"] = Json::from(self.times);
        }
        if !self.terms.is_empty() {
            json["terms"] = self.terms.iter().map(Term::to_json).collect();
        }
        json
    }
}

impl std::fmt::Display for Term<'_> {
    /// One line for each term, those it is made of indented below it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.write(f, 0)
    }
}

impl Term<'_> {
    fn write(&self, f: &mut std::fmt::Formatter<'_>, depth: usize) -> std::fmt::Result {
        let indent = "  ".repeat(depth);
        write!(f, "{indent}{}   →   ", self.text)?;
        match &self.outcome {
            TermOutcome::Value(value) => write!(f, "{}", value.short_repr())?,
            TermOutcome::Failed(message) => write!(f, "error: {message}")?,
            TermOutcome::NotReached => f.write_str("not reached")?,
        }
        if self.times > 1 {
            write!(f, "   (last of {})", self.times)?;
        }
        writeln!(f)?;
        for term in &self.terms {
            term.write(f, depth + 1)?;
        }
        Ok(())
    }
}
