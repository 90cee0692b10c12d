//! A template, ready to be rendered.

use serde_json::Value as Json;

use crate::error::TemplateError;
use crate::json::to_json;
use crate::limits::Limits;
use crate::lower;
use crate::memo::{Memo, Outline};
use crate::meter::Meter;
use crate::object::Object;
use crate::program::{Program, Stmt};
use crate::run::Run;
use crate::shape;
use crate::{ErrorKind, error::Fault};

/// A compiled template. Compiling is the slow part; keep it, and share it between threads.
#[derive(Debug)]
pub struct Template {
    source: Box<str>,
    program: Program,
    /// What other templates may have said already, where it is as simple as that.
    outline: Option<Outline>,
}

impl Template {
    /// Reads a template and checks everything that can be checked without values.
    ///
    /// # Errors
    ///
    /// If the source is too long or too deeply nested, no template, or one that uses a tag, filter
    /// or test that is not there.
    pub fn compile(source: &str, limits: &Limits) -> Result<Self, TemplateError> {
        if source.len() > limits.source_bytes {
            let message = format!(
                "the template has {} bytes, and {} are allowed",
                source.len(),
                limits.source_bytes
            );
            return Err(Fault::new(ErrorKind::Limit, message).into_error(source));
        }
        let program = shape::check(source, limits).and_then(|()| lower::compile(source));
        let program = program.map_err(|fault| fault.into_error(source))?;
        Ok(Self {
            outline: Outline::of(&program),
            program,
            source: source.into(),
        })
    }

    /// The text it was compiled from.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether the source is exactly one `{{ expression }}`, so that [`evaluate`](Self::evaluate)
    /// gives what the expression is and not its text.
    pub fn is_expression(&self) -> bool {
        matches!(self.program.body[..], [Stmt::Emit(_)])
    }

    /// Makes the text. What is in `context` is data: it is written as it is, and never rendered.
    ///
    /// # Errors
    ///
    /// If the values do not fit the template, or a limit was reached.
    pub fn render(&self, context: &dyn Object, limits: &Limits) -> Result<String, TemplateError> {
        let run = Run::new(&self.program, context, Meter::new(*limits));
        let text = run.render(self.source.len());
        text.map_err(|fault| fault.into_error(&self.source))
    }

    /// As [`render`](Self::render), with what other templates made of the same context.
    ///
    /// # Errors
    ///
    /// As [`render`](Self::render).
    #[inline]
    pub fn render_with(
        &self,
        context: &dyn Object,
        limits: &Limits,
        memo: &mut Memo,
    ) -> Result<String, TemplateError> {
        let outline = self.outline.as_ref();
        match outline.and_then(|outline| outline.fill(limits, memo)) {
            Some(text) => Ok(text.into()),
            None => self.render_into(context, limits, memo),
        }
    }

    /// Renders, and remembers what other templates may say too.
    fn render_into(
        &self,
        context: &dyn Object,
        limits: &Limits,
        memo: &mut Memo,
    ) -> Result<String, TemplateError> {
        let Some(outline) = &self.outline else {
            return self.render(context, limits);
        };
        let run = Run::new(&self.program, context, Meter::new(*limits));
        let text = run.render_with(self.source.len(), outline, memo);
        text.map_err(|fault| fault.into_error(&self.source))
    }

    /// The value of a template that is exactly one `{{ expression }}`, with its type; of any other
    /// template, its text.
    ///
    /// # Errors
    ///
    /// As [`render`](Self::render), and if the value is nothing that JSON can hold.
    pub fn evaluate(&self, context: &dyn Object, limits: &Limits) -> Result<Json, TemplateError> {
        let [Stmt::Emit(expr)] = &self.program.body[..] else {
            return self.render(context, limits).map(Json::String);
        };
        let mut run = Run::new(&self.program, context, Meter::new(*limits));
        let value = run.eval(expr);
        let json = value
            .and_then(|value| to_json(&mut run.meter, &value).map_err(|fault| fault.at(expr.span)));
        json.map_err(|fault| fault.into_error(&self.source))
    }
}
