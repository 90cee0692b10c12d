//! `dodona methods`.

use std::fmt::Write as _;
use std::io;
use std::sync::Arc;

use clap::Args;
use dodona_proto::{Approval, ExitKind, MethodDescriptor, MethodKind, Mutation};
use serde_json::{Value, json};

use super::call;
use crate::failure::Failure;
use crate::layout;
use crate::nearest::nearest;
use crate::paint::{Paint, harmless, one_line};
use crate::session::Session;
use crate::shape::Shape;
use crate::shell::Shell;
use crate::table::{self, Table};

const EXAMPLES: &str = "\
Examples:
  dodona methods                 everything that can be called
  dodona methods echo            one plugin's methods
  dodona methods echo.count      one method in full
  dodona methods --json | jq '.[].name'
  dodona methods echo.count --schema";

/// List methods, or show one in full
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Methods {
    /// Only this plugin's methods, or one method in full
    #[arg(value_name = "PLUGIN|METHOD")]
    name: Option<String>,

    /// Print the full descriptors as JSON
    #[arg(long)]
    json: bool,

    /// Print the JSON Schemas of parameters and result
    #[arg(long, conflicts_with = "json")]
    schema: bool,
}

impl Methods {
    pub(crate) async fn run(self, shell: &Shell) -> Result<(), Failure> {
        let session = shell.session().await?;
        let text = self.text(&session).await;
        session.close().await;
        super::print(&text?)
    }

    async fn text(&self, session: &Session) -> Result<String, Failure> {
        let mut methods = session.methods().await?;
        match &self.name {
            Some(name) if name.contains('.') => {
                methods.retain(|method| method.name.as_str() == name);
                if methods.is_empty() {
                    return Err(call::unknown(session, name).await);
                }
            }
            Some(name) => methods = of_plugin(methods, name)?,
            None => {}
        }
        let one = self.name.as_ref().is_some_and(|name| name.contains('.'));
        let paint = Paint::of(&io::stdout());
        match &methods[..] {
            _ if self.schema => pretty(&schemas(&methods)),
            [method] if one && self.json => line(method),
            _ if self.json => line(&methods),
            [method] if one => Ok(in_full(method, paint)),
            _ => Ok(table(&methods, paint)),
        }
    }
}

fn of_plugin(
    methods: Vec<Arc<MethodDescriptor>>,
    name: &str,
) -> Result<Vec<Arc<MethodDescriptor>>, Failure> {
    let mut plugins: Vec<&str> = methods.iter().map(|method| method.name.plugin()).collect();
    plugins.dedup();
    if !plugins.contains(&name) {
        let hint = match nearest(name, plugins.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there is {}", plugins.join(", ")),
        };
        let message = format!("no active plugin is called `{name}`");
        return Err(Failure::usage(message).hint(hint));
    }
    let of_plugin = |method: &Arc<MethodDescriptor>| method.name.plugin() == name;
    Ok(methods.into_iter().filter(of_plugin).collect())
}

fn line(value: &impl serde::Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string(value).map_err(unwritable)?;
    Ok(text + "\n")
}

fn pretty(value: &Value) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(value).map_err(unwritable)?;
    Ok(text + "\n")
}

fn unwritable(error: serde_json::Error) -> Failure {
    Failure::new(ExitKind::Failed, error.to_string())
}

fn schemas(methods: &[Arc<MethodDescriptor>]) -> Value {
    let schemas = methods.iter().map(|method| {
        let schemas = json!({ "params": method.params, "result": method.result });
        (method.name.to_string(), schemas)
    });
    Value::Object(schemas.collect())
}

fn kind(method: &MethodDescriptor) -> &'static str {
    match method.kind {
        MethodKind::Unary => "unary",
        MethodKind::Streaming => "stream",
    }
}

fn flags(method: &MethodDescriptor) -> String {
    let writes = (method.mutation == Mutation::Mutates).then_some("writes");
    let tool = method.tool.as_ref().map(|_| "tool");
    let asks = method.tool.as_ref().and_then(|tool| match tool.approval {
        Approval::Always => Some("asks"),
        Approval::Agents => Some("asks agents"),
        Approval::Never => None,
    });
    let flags: Vec<&str> = [writes, tool, asks].into_iter().flatten().collect();
    flags.join(",")
}

fn table(methods: &[Arc<MethodDescriptor>], paint: Paint) -> String {
    let mut table = Table::new(&["METHOD", "KIND", "FLAGS", "DESCRIPTION"]);
    for method in methods {
        table.row([
            table::bold(method.name.as_str()),
            table::dim(kind(method)),
            table::dim(flags(method)),
            first_sentence(&method.description).into(),
        ]);
    }
    table.render(paint, layout::width(&io::stdout()))
}

/// The first sentence of a description, on one line.
fn first_sentence(description: &str) -> String {
    let paragraph = description.split("\n\n").next().unwrap_or_default();
    let text = one_line(paragraph);
    match text.split_once(". ") {
        Some((first, _)) => format!("{first}."),
        None => text,
    }
}

fn in_full(method: &MethodDescriptor, paint: Paint) -> String {
    let mut text = String::new();
    let flags = flags(method);
    let marks = format!("{}  {flags}", kind(method));
    let name = method.name.as_str();
    let _ = writeln!(
        text,
        "{}  {}",
        paint.bold(name),
        paint.dim(marks.trim_end())
    );
    let _ = writeln!(text, "{}", harmless(method.description.trim()));
    let params = Shape::of(&method.params);
    fields("Parameters", params, Mark::Required, paint, &mut text);
    let result = match method.kind {
        MethodKind::Unary => "Result",
        MethodKind::Streaming => "Each item",
    };
    fields(
        result,
        Shape::of(&method.result),
        Mark::Nothing,
        paint,
        &mut text,
    );
    let scope = method.scope.as_ref().map_or("", |scope| scope.as_str());
    let _ = writeln!(text, "\n{}  {scope}", paint.heading("Scope"));
    let required = params.names().filter(|name| params.requires(name));
    let pairs: String = required.map(|name| format!(" {name}=…")).collect();
    let example = format!("dodona call {name}{pairs}");
    let _ = writeln!(text, "{}   {}", paint.heading("Call"), paint.code(example));
    text
}

/// Whether fields that must be there have a mark: those of a result always are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Required,
    Nothing,
}

/// One line for each field: its name, what it may be, its default, what it is.
fn fields(title: &str, shape: Shape<'_>, mark: Mark, paint: Paint, text: &mut String) {
    let marked = |name: &str| mark == Mark::Required && shape.requires(name);
    let rows: Vec<[String; 3]> = shape
        .names()
        .filter_map(|name| Some(row(name, marked(name), shape.field(name)?)))
        .collect();
    let note = match rows.len() {
        0 => "  none",
        _ if shape.names().any(marked) => "  * required",
        _ => "",
    };
    let _ = writeln!(text, "\n{}{}", paint.heading(title), paint.dim(note));
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or_default()
    };
    let (names, kinds) = (width(0), width(1));
    for [name, kind, about] in &rows {
        let about = layout::wrap(about, names + kinds + 6, layout::width(&io::stdout()));
        let (name, kind) = (format!("{name:names$}"), format!("{kind:kinds$}"));
        let line = format!("  {}  {}  {about}", paint.bold(name), paint.dim(kind));
        let _ = writeln!(text, "{}", line.trim_end());
    }
}

fn row(name: &str, marked: bool, field: Shape<'_>) -> [String; 3] {
    let star = if marked { "*" } else { "" };
    let default = field.default().filter(|default| !default.is_null());
    let default = default.map(|default| format!(" = {default}"));
    [
        format!("{}{star}", harmless(name)),
        one_line(&format!("{}{}", field.words(), default.unwrap_or_default())),
        field.description().map(one_line).unwrap_or_default(),
    ]
}
