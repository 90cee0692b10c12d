//! `dodona call`.

mod params;
mod show;

use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

use clap::Args;
use dodona_hub::CancelTarget;
use dodona_proto::{CallError, ErrorCode, ExitKind, MethodKind};
use serde_json::Value;

use super::approvals;
use crate::excerpt::{self, Fault};
use crate::failure::Failure;
use crate::live::Live;
use crate::paint::{Paint, harmless};
use crate::quantity;
use crate::session::{Ask, Session};
use crate::shell::Shell;
use show::Show;

/// The most that is read as parameters; what the hub takes is less.
const PARAMS_BYTES: u64 = 64 << 20;

const EXAMPLES: &str = r#"Examples:
  dodona call echo.say text=hello
  dodona call echo.count to=5 delay_ms=200          items are shown as they come
  dodona call echo.count to=5 --json | jq .data.n   one JSON object in each line
  dodona call echo.say --params '{"text": "hello"}'
  dodona call echo.say --params @params.json        or `-` for standard input

Parameters:
  key=value      as the method's schema has it: text, number, true/false, JSON for an object
  key:=json      exactly this JSON
  a.b=value      inside an object
  key=a key=b    a list

Exit codes:
  0 complete   1 failed   2 wrong request   3 refused   4 limited   5 disk or database
  130 cancelled: Ctrl-C asks the call to stop, a second one ends at once"#;

/// Call a method and print its result
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Call {
    /// The method, such as `echo.say`; `dodona methods` lists them
    method: String,

    /// Its parameters
    #[arg(value_name = "KEY=VALUE")]
    pairs: Vec<String>,

    /// All parameters as JSON, or `@FILE`, or `-` for standard input
    #[arg(
        long,
        value_name = "JSON",
        conflicts_with = "pairs",
        allow_hyphen_values = true
    )]
    params: Option<String>,

    /// Print the result, or each item of a stream, as one line of JSON
    #[arg(long)]
    json: bool,

    /// Stop the call after this time, such as `5s`
    #[arg(long, value_name = "TIME", value_parser = quantity::duration)]
    timeout: Option<Duration>,

    /// Print progress line by line, and the ends of nested calls
    #[arg(short, long)]
    verbose: bool,
}

/// How long a server is waited for at least, whatever the call itself may take.
const SHORTEST: Duration = Duration::from_secs(1);

/// How long a server may take to report that the time of a call is over.
const ANSWER: Duration = Duration::from_secs(1);

impl Call {
    pub(crate) async fn run(self, shell: &Shell) -> Result<(), Failure> {
        let given = self.params.as_deref().map(read_params).transpose()?;
        let patience = self.timeout.map(|timeout| timeout.max(SHORTEST));
        let session = shell.session_within(patience).await?;
        let outcome = self.within(&session, given, shell).await;
        session.close().await;
        outcome
    }

    /// Runs the call. A server bounds its time; one that stops responding does not.
    async fn within(
        &self,
        session: &Session,
        given: Option<Value>,
        shell: &Shell,
    ) -> Result<(), Failure> {
        let running = self.on(session, given, shell);
        let late = self.timeout.and_then(|time| session.unresponsive(time));
        let (Some(timeout), Some(late)) = (self.timeout, late) else {
            return running.await;
        };
        match tokio::time::timeout(timeout.max(SHORTEST) + ANSWER, running).await {
            Ok(outcome) => outcome,
            Err(_) => Err(late.into()),
        }
    }

    async fn on(
        &self,
        session: &Session,
        given: Option<Value>,
        shell: &Shell,
    ) -> Result<(), Failure> {
        let methods = session.methods().await?;
        let found = methods
            .iter()
            .find(|method| method.name.as_str() == self.method);
        let Some(method) = found else {
            return Err(unknown(session, &self.method).await);
        };
        let params = match given {
            Some(params) => params,
            None => {
                params::assemble(&method.params, &self.pairs).map_err(|error| error.of(method))?
            }
        };
        let ask = Ask {
            method: self.method.clone(),
            params,
            timeout: self.timeout,
        };
        match method.kind {
            MethodKind::Unary => self.unary(session, ask, shell).await,
            MethodKind::Streaming => self.streaming(session, ask, shell).await,
        }
    }

    async fn unary(&self, session: &Session, ask: Ask, shell: &Shell) -> Result<(), Failure> {
        let began = Instant::now();
        let live = if self.json {
            Live::none()
        } else {
            Live::start()
        };
        live.waiting(&ask.method);
        let answer = tokio::select! {
            biased;
            answer = session.call(ask) => answer,
            never = approvals::tell_of_waiting(session, &self.method) => match never {},
            () = shell.interrupt.requested() => {
                Err(CallError::new(ErrorCode::Cancelled, "cancelled"))
            }
        };
        live.end();
        match answer {
            Ok(value) => print_result(&value, self.json),
            Err(error) if error.code == ErrorCode::Cancelled => {
                Err(shell.cancelled(Some(began.elapsed())))
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn streaming(&self, session: &Session, ask: Ask, shell: &Shell) -> Result<(), Failure> {
        let mut show = Show::new(self.json, self.verbose);
        let opened = tokio::select! {
            biased;
            opened = session.open(ask) => opened,
            () = shell.interrupt.requested() => {
                return Err(shell.cancelled(None));
            }
        };
        let mut items = opened?;
        let target = CancelTarget::Stream(items.stream());
        let mut stopping = false;
        loop {
            tokio::select! {
                biased;
                () = shell.interrupt.requested(), if !stopping => {
                    stopping = true;
                    // A call that has just ended is not found; its items say how it ended.
                    let _ = session.cancel(&target).await;
                }
                next = items.next() => match next? {
                    Some(batch) => if let Err(failure) = show.items(&batch) {
                        // Nobody sees what it does any more, and a server would go on with it.
                        let _ = session.cancel(&target).await;
                        return Err(failure);
                    },
                    None => break,
                },
            }
        }
        show.end()
    }
}

/// The hub knows best why a method is not there and what may have been meant.
pub(super) async fn unknown(session: &Session, method: &str) -> Failure {
    match session.call(Ask::new(method, Value::Null)).await {
        Err(error) => error.into(),
        Ok(_) => Failure::usage(format!("`{method}` has just appeared"))
            .hint("run the same command again"),
    }
}

fn print_result(value: &Value, json: bool) -> Result<(), Failure> {
    let text = if json {
        serde_json::to_string(value)
    } else {
        serde_json::to_string_pretty(value)
    };
    let text = text.map_err(|error| Failure::new(ExitKind::Failed, error.to_string()))?;
    let mut out = io::stdout().lock();
    writeln!(out, "{}", harmless(&text))
        .and_then(|()| out.flush())
        .map_err(|error| Failure::output(&error))
}

/// What `--params` names: the JSON itself, a file, or standard input.
fn read_params(argument: &str) -> Result<Value, Failure> {
    let (origin, text) = match argument.strip_prefix('@') {
        Some(path) => {
            let file = std::fs::File::open(path)
                .map_err(|error| Failure::usage(format!("could not open `{path}`: {error}")))?;
            (path, read_text(path, file)?)
        }
        None if argument == "-" => {
            let origin = "standard input";
            (origin, read_text(origin, io::stdin().lock())?)
        }
        None => ("--params", argument.to_owned()),
    };
    match serde_json::from_str(&text) {
        Ok(params @ Value::Object(_)) => Ok(params),
        Ok(_) => Err(Failure::usage("the parameters are not an object")
            .hint(r#"write `--params '{"key": "value"}'`"#)),
        Err(error) => Err(not_json(origin, &text, &error)),
    }
}

fn read_text(origin: &str, from: impl Read) -> Result<String, Failure> {
    let mut text = String::new();
    let failed = |error| Failure::usage(format!("could not read {origin}: {error}"));
    from.take(PARAMS_BYTES + 1)
        .read_to_string(&mut text)
        .map_err(failed)?;
    if text.len() as u64 > PARAMS_BYTES {
        let most = quantity::show_size(PARAMS_BYTES);
        return Err(Failure::new(
            ErrorCode::TooLarge.exit(),
            format!("the parameters are larger than {most}"),
        ));
    }
    Ok(text)
}

fn not_json(origin: &str, text: &str, error: &serde_json::Error) -> Failure {
    let place = excerpt::offset(text, error.line(), error.column());
    let told = error.to_string();
    // The place is shown in the excerpt.
    let problem = told.split(" at line ").next().unwrap_or(&told);
    let fault = Fault {
        span: place..place,
        message: format!("the parameters are not JSON: {problem}"),
        hint: None,
    };
    Failure::Drawn {
        text: excerpt::draw(origin, text, &[fault], Paint::of(&io::stderr())),
        exit: ErrorCode::ParseError.exit(),
    }
}
