//! Jinja templates that cannot hang, flood or abort the server.
//!
//! Messages of rules and prompts of agents are templates that people write and that other people
//! install. So a [`Template`] is compiled once, under [`Limits`], and rendered under limits as well:
//! of steps, of memory, of depth, of output. The language is Jinja2's, as far as it makes text from
//! values; `docs/reference/templates.md` is its reference.
//!
//! ```
//! use dodona_template::{Limits, Template};
//! use serde_json::json;
//!
//! let limits = Limits::message();
//! let template = Template::compile("Token usage at {{ (context.usage * 100) | int }}%", &limits)?;
//! let text = template.render(&json!({"context": {"usage": 0.912}}), &limits)?;
//! assert_eq!(text, "Token usage at 91%");
//!
//! // A template that is one expression has a value, not only a text.
//! let counter = Template::compile("{{ context.count + 1 }}", &limits)?;
//! assert_eq!(counter.evaluate(&json!({"context": {"count": 4}}), &limits)?, json!(5));
//!
//! let bomb = Template::compile("{{ 'x' * 100000000 }}", &limits)?;
//! assert!(bomb.render(&json!({}), &limits).is_err());
//! # Ok::<(), dodona_template::TemplateError>(())
//! ```
//!
//! The parser is minijinja's. What runs is our own: every operation pays for what it is about to do
//! before it does it, and a program that has its data in structs shows it through [`Object`] without
//! turning it into JSON first. `docs/decisions` says why.
//!
//! # What it does not do
//!
//! It reads no file and knows no other template: no `include`, no `extends`, no `import`. Nothing can
//! be changed: no `namespace`, no `do`, no methods that mutate. It escapes nothing, because texts for
//! models are not HTML. It never renders a value: `{{ … }}` inside of data stays what it is.

mod access;
mod args;

mod checks;
mod error;
mod eval;
mod filters;
mod functions;
mod json;
mod layout;
mod limits;
mod lower;
mod memo;
mod meter;
mod methods;
mod object;
mod ops;
mod printf;
mod program;
mod run;
mod shape;
mod show;
mod strformat;
mod template;
mod text;
mod value;

pub use error::{ErrorKind, Place, TemplateError};
pub use limits::Limits;
pub use memo::Memo;
pub use object::{Field, Object};
pub use template::Template;
