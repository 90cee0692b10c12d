//! Rendering: walks the program's statements.

use crate::error::{Fault, Result};
use crate::memo::{Memo, Outline};
use crate::meter::Meter;
use crate::object::Object;
use crate::program::{Apply, Block, For, Macro, Name, Program, SetBlock, Stmt, Target};
use crate::show::{Sink, write_str};
use crate::value::{Seq, Value};

/// Names of scopes that are looked through for the price of one step.
const NAMES_PER_STEP: usize = 16;

/// The most room for a text that is taken before it is known how long it gets.
const MOST_ROOM: usize = 4 * 1024;

/// A rendering under way.
pub(crate) struct Run<'v> {
    pub(crate) program: &'v Program,
    pub(crate) root: &'v dyn Object,
    pub(crate) meter: Meter,
    /// What was set outside of every scope, by name; empty until something is.
    pub(crate) globals: Vec<Option<Value<'v>>>,
    /// What was set inside of scopes, innermost last.
    pub(crate) locals: Vec<(Name, Value<'v>)>,
    /// Where the locals of the running macro begin: it does not see its caller's.
    pub(crate) frame: usize,
    /// Where the innermost scope begins; `None` outside of every scope.
    scope: Option<usize>,
    pub(crate) loops: Vec<Loop<'v>>,
    output: String,
    /// Texts that are written into instead of the output, innermost last.
    captures: Vec<String>,
}

/// A loop under way.
pub(crate) struct Loop<'v> {
    pub(crate) items: Seq<'v>,
    pub(crate) index: usize,
    /// What `loop.changed` was last asked about.
    pub(crate) seen: Option<Vec<Value<'v>>>,
}

/// Where to go on after a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    Break,
    Continue,
}

impl Sink for Run<'_> {
    fn push(&mut self, piece: &str) -> Result<()> {
        if let Some(capture) = self.captures.last_mut() {
            return self.meter.push(capture, piece);
        }
        self.meter.read(piece.len())?;
        let limit = self.meter.limits().output_bytes;
        if self.output.len() + piece.len() > limit {
            return Err(Fault::limit(format!(
                "the text is longer than {limit} bytes"
            )));
        }
        self.output.push_str(piece);
        Ok(())
    }

    fn meter(&mut self) -> &mut Meter {
        &mut self.meter
    }
}

impl<'v> Run<'v> {
    pub(crate) fn new(program: &'v Program, root: &'v dyn Object, meter: Meter) -> Self {
        Self {
            program,
            root,
            meter,
            globals: Vec::new(),
            locals: Vec::new(),
            frame: 0,
            scope: None,
            loops: Vec::new(),
            output: String::new(),
            captures: Vec::new(),
        }
    }

    /// Renders, with room for a text of about this size.
    pub(crate) fn render(mut self, room: usize) -> Result<String> {
        self.output.reserve(room.min(MOST_ROOM));
        self.block(&self.program.body)?;
        Ok(self.output)
    }

    /// Renders statements that do not depend on each other, and remembers their texts.
    pub(crate) fn render_with(
        mut self,
        room: usize,
        outline: &Outline,
        memo: &mut Memo,
    ) -> Result<String> {
        self.output.reserve(room.min(MOST_ROOM));
        let program = self.program;
        let mut keys = outline.keys();
        for statement in &program.body {
            let key = match statement {
                Stmt::Emit(_) => keys.next(),
                _ => None,
            };
            if let Some(known) = key.and_then(|key| memo.get(key)) {
                self.meter.steps(1)?;
                self.push(known)?;
                continue;
            }
            let before = self.output.len();
            self.statement(statement)?;
            if let Some(key) = key {
                memo.add(key, &self.output[before..]);
            }
        }
        Ok(self.output)
    }

    fn block(&mut self, block: &'v Block) -> Result<Flow> {
        self.meter.enter()?;
        let mut flow = Flow::Next;
        for statement in block {
            flow = self.statement(statement)?;
            if flow != Flow::Next {
                break;
            }
        }
        // After a fault nothing runs any more, so the level need not be left then.
        self.meter.leave();
        Ok(flow)
    }

    fn statement(&mut self, statement: &'v Stmt) -> Result<Flow> {
        self.meter.steps(1)?;
        match statement {
            Stmt::Raw(text) => self.push(text)?,
            Stmt::Emit(expr) => {
                let value = self.eval(expr)?;
                write_str(self, &value).map_err(|fault| fault.at(expr.span))?;
            }
            Stmt::If(tag) => {
                let chosen = match self.eval(&tag.condition)?.is_true() {
                    true => &tag.then,
                    false => &tag.otherwise,
                };
                return self.block(chosen);
            }
            Stmt::For(tag) => self.for_loop(tag)?,
            Stmt::With(assignments, body) => {
                let mut values = Vec::with_capacity(assignments.len());
                for (target, expr) in assignments {
                    values.push((target, self.eval(expr)?, expr.span));
                }
                return self.scoped(|run| {
                    for (target, value, span) in values {
                        run.assign(target, value).map_err(|fault| fault.at(span))?;
                    }
                    run.block(body)
                });
            }
            Stmt::Set(target, expr) => {
                let value = self.eval(expr)?;
                self.assign(target, value)
                    .map_err(|fault| fault.at(expr.span))?;
            }
            Stmt::SetBlock(tag) => self.set_block(tag)?,
            Stmt::FilterBlock(filters, body) => {
                let text = self.captured(|run| run.scoped(|run| run.block(body)))?;
                let value = self.apply_all(filters, text)?;
                write_str(self, &value)?;
            }
            Stmt::Macro(index) => {
                let name = self.program.macros[*index].name;
                self.set(name, Value::Macro(*index))?;
            }
            Stmt::Break => return Ok(Flow::Break),
            Stmt::Continue => return Ok(Flow::Continue),
        }
        Ok(Flow::Next)
    }

    fn set_block(&mut self, tag: &'v SetBlock) -> Result<()> {
        let text = self.captured(|run| run.scoped(|run| run.block(&tag.body)))?;
        let value = self.apply_all(&tag.filters, text)?;
        self.assign(&tag.target, value)
    }

    fn apply_all(&mut self, filters: &'v [Apply], mut value: Value<'v>) -> Result<Value<'v>> {
        for apply in filters {
            value = self.apply(apply, value)?;
        }
        Ok(value)
    }

    /// Runs with a text in place of the output.
    fn captured<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<Value<'v>> {
        self.captures.push(String::new());
        work(self)?;
        let text = self
            .captures
            .pop()
            .expect("pushed above, and popped by nobody else");
        Ok(Value::made(text))
    }

    /// Runs in a scope: what is set inside ends with it.
    fn scoped<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let begin = self.locals.len();
        let outer = self.scope.replace(begin);
        let done = work(self)?;
        self.locals.truncate(begin);
        self.scope = outer;
        Ok(done)
    }

    fn for_loop(&mut self, tag: &'v For) -> Result<()> {
        let iterable = self.eval(&tag.iterable)?;
        let items = iterable.elements(&mut self.meter);
        let items = items.map_err(|fault| fault.at(tag.iterable.span))?;
        let items = self.passing(tag, items)?;
        if items.is_empty() {
            self.scoped(|run| run.block(&tag.otherwise))?;
            return Ok(());
        }
        let count = items.len();
        self.loops.push(Loop {
            items,
            index: 0,
            seen: None,
        });
        for index in 0..count {
            self.meter.steps(1)?;
            let flow = self.scoped(|run| run.iteration(tag, index))?;
            if flow == Flow::Break {
                break;
            }
        }
        self.loops.pop();
        Ok(())
    }

    fn iteration(&mut self, tag: &'v For, index: usize) -> Result<Flow> {
        let current = self.loops.last_mut().expect("the loop runs");
        current.index = index;
        let item = current.items.get(index).unwrap_or(Value::NO_NAME);
        self.assign(&tag.target, item)
            .map_err(|fault| fault.at(tag.iterable.span))?;
        self.block(&tag.body)
    }

    /// The elements that meet the loop's `if`.
    fn passing(&mut self, tag: &'v For, items: Seq<'v>) -> Result<Seq<'v>> {
        let Some(condition) = &tag.condition else {
            return Ok(items);
        };
        let mut passing = Vec::new();
        for item in items.iter() {
            let passes = self.scoped(|run| {
                run.assign(&tag.target, item.clone())?;
                Ok(run.eval(condition)?.is_true())
            })?;
            if passes {
                self.meter.memory(size_of::<Value<'_>>())?;
                passing.push(item);
            }
        }
        let Value::List(passing) = Value::list(&mut self.meter, passing)? else {
            unreachable!("a list was made")
        };
        Ok(passing)
    }

    fn assign(&mut self, target: &Target, value: Value<'v>) -> Result<()> {
        match target {
            Target::Name(name) => self.set(*name, value),
            Target::Unpack(targets) => {
                let parts = value.elements(&mut self.meter)?;
                if parts.len() != targets.len() {
                    let (expected, found) = (targets.len(), parts.len());
                    let message = format!("expected {expected} values to unpack, and got {found}");
                    return Err(Fault::operation(message));
                }
                for (target, part) in targets.iter().zip(parts.iter()) {
                    self.assign(target, part)?;
                }
                Ok(())
            }
        }
    }

    fn set(&mut self, name: Name, value: Value<'v>) -> Result<()> {
        let Some(begin) = self.scope else {
            self.globals.resize(self.program.names.len(), None);
            self.globals[name] = Some(value);
            return Ok(());
        };
        let scope = &mut self.locals[begin..];
        self.meter.steps(scope.len() / NAMES_PER_STEP)?;
        match scope.iter_mut().find(|(known, _)| *known == name) {
            Some(known) => known.1 = value,
            None => self.locals.push((name, value)),
        }
        Ok(())
    }

    /// The value that was set, if any.
    pub(crate) fn get(&mut self, name: Name) -> Result<Option<Value<'v>>> {
        let locals = &self.locals[self.frame..];
        self.meter.steps(locals.len() / NAMES_PER_STEP)?;
        let found = locals.iter().rev().find(|(known, _)| *known == name);
        Ok(match found {
            Some((_, value)) => Some(value.clone()),
            None => self.globals.get(name).cloned().flatten(),
        })
    }

    /// Calls a macro: its text is the value.
    pub(crate) fn call_macro(
        &mut self,
        called: &'v Macro,
        mut given: Vec<Option<Value<'v>>>,
    ) -> Result<Value<'v>> {
        self.meter.enter()?;
        let frame = std::mem::replace(&mut self.frame, self.locals.len());
        let loops = std::mem::take(&mut self.loops);
        let text = self.captured(|run| {
            run.scoped(|run| {
                for (index, (name, default)) in called.parameters.iter().enumerate() {
                    let value = match (given.get_mut(index).and_then(Option::take), default) {
                        (Some(value), _) => value,
                        (None, Some(default)) => run.eval(default)?,
                        (None, None) => Value::Undefined(&run.program.names[*name]),
                    };
                    run.set(*name, value)?;
                }
                run.block(&called.body)
            })
        })?;
        self.loops = loops;
        self.frame = frame;
        self.meter.leave();
        Ok(text)
    }
}
