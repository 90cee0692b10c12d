//! What the commands of a chat do.

use std::fmt::Write as _;
use std::io;

use serde::Deserialize;
use serde_json::{Value, json};

use super::Talk;
use super::entry::{COMMANDS, Command};
use crate::cli::{print, prompt};
use crate::failure::Failure;
use crate::layout;
use crate::paint::{Paint, one_line};

/// The default conversation's name.
const DEFAULT: &str = "default";

/// The main agent.
const DEFAULT_AGENT: &str = "oracle";

impl Talk<'_> {
    pub(super) async fn run(&mut self, command: Command) -> Result<(), Failure> {
        match command {
            Command::Help => print(&help(Paint::of(&io::stdout()))),
            Command::Model(name) => self.choose_model(name).await,
            Command::Agent(name) => self.choose_agent(name).await,
            Command::Context(name) => self.choose_context(name).await,
            Command::New(name) => self.begin(name).await,
            Command::Contexts => self.list().await,
            Command::Usage => self.usage().await,
            Command::Prompt => self.show_prompt().await,
            // Whoever reads the entries ends the chat.
            Command::Quit => Ok(()),
        }
    }

    /// Asks the agent something that is answered at once.
    async fn call<T: serde::de::DeserializeOwned>(
        &self,
        method: &str,
        params: Value,
    ) -> Result<T, Failure> {
        let session = self.shell.session_in_project().await?;
        let answer = tokio::select! {
            biased;
            answer = session.ask(method, params) => answer.map_err(Failure::from),
            () = self.shell.interrupt.requested() => Err(self.shell.cancelled(None)),
        };
        session.close().await;
        answer
    }

    /// A model that cannot be asked is told now and not with the next question.
    async fn choose_model(&mut self, name: Option<String>) -> Result<(), Failure> {
        #[derive(Deserialize)]
        struct Shown {
            model: String,
        }
        let name = name.or_else(|| self.model.clone());
        let params = self.prompt_params(name.as_deref());
        let Shown { model } = self.call("agent.prompt", params).await?;
        self.model = name;
        print(&format!("model {}\n", one_line(&model)))
    }

    /// An agent that does not exist is reported now and not with the next question. A conversation
    /// belongs to one agent, so that the new agent starts in its default one.
    async fn choose_agent(&mut self, name: Option<String>) -> Result<(), Failure> {
        #[derive(Deserialize)]
        struct Shown {
            agent_id: String,
        }
        let agent_id = match name {
            None => {
                let params = self.prompt_params(self.model.as_deref());
                self.call::<Shown>("agent.prompt", params).await?.agent_id
            }
            Some(name) => {
                let params = json!({ "agent_id": name });
                let _: Value = self.call("agent.describe", params).await?;
                self.context = None;
                self.agent = Some(name.clone()).filter(|name| name != DEFAULT_AGENT);
                name
            }
        };
        print(&format!("agent {}\n", one_line(&agent_id)))
    }

    fn prompt_params(&self, model: Option<&str>) -> Value {
        let mut params = prompt::params(None, self.context.as_deref(), model);
        if let Some(agent) = &self.agent {
            params["agent_id"] = json!(agent);
        }
        params
    }

    async fn choose_context(&mut self, name: Option<String>) -> Result<(), Failure> {
        // The default one need not be there yet: a question begins it. A conversation that is
        // named is continued by its own agent.
        if name.as_deref() == Some(DEFAULT) {
            (self.context, self.agent) = (None, None);
        } else if let Some(name) = name {
            let _: Value = self
                .call("agent.show", json!({ "context_id": name }))
                .await?;
            (self.context, self.agent) = (Some(name), None);
        }
        print(&format!("conversation {}\n", one_line(&self.named())))
    }

    async fn begin(&mut self, name: Option<String>) -> Result<(), Failure> {
        #[derive(Deserialize)]
        struct Created {
            context_id: String,
        }
        let mut params = match &name {
            Some(name) => json!({ "name": name }),
            None => json!({}),
        };
        if let Some(agent) = &self.agent {
            params["agent_id"] = json!(agent);
        }
        let Created { context_id } = self.call("agent.create", params).await?;
        self.context = Some(name.unwrap_or_else(|| end(&context_id).to_owned()));
        print(&format!("conversation {}\n", one_line(&self.named())))
    }

    /// The conversation that questions go to.
    fn named(&self) -> String {
        match (&self.context, &self.agent) {
            (Some(context), _) => context.clone(),
            (None, Some(agent)) => format!("@{agent}"),
            (None, None) => DEFAULT.to_owned(),
        }
    }

    async fn list(&self) -> Result<(), Failure> {
        let listed: Listed = self.call("agent.contexts", json!({})).await?;
        let stdout = io::stdout();
        let (paint, width) = (Paint::of(&stdout), layout::width(&stdout));
        print(&listed.text(&self.named(), paint, width))
    }

    async fn usage(&self) -> Result<(), Failure> {
        #[derive(Deserialize)]
        struct Report {
            total: Used,
        }
        let params = json!({ "by": "query", "context_id": self.named() });
        let Report { total } = self.call("agent.usage", params).await?;
        print(&format!("{}\n", total.line()))
    }

    async fn show_prompt(&self) -> Result<(), Failure> {
        let params = self.prompt_params(self.model.as_deref());
        let shown = self.call("agent.prompt", params).await?;
        print(&prompt::text(shown, Paint::of(&io::stdout()))?)
    }
}

fn help(paint: Paint) -> String {
    let mut text = String::new();
    for (name, wants, about) in COMMANDS {
        let typed = format!("/{name} {wants}");
        let _ = writeln!(
            text,
            "  {}  {about}",
            paint.code(format_args!("{typed:16}"))
        );
    }
    text.push_str(
        "A line that ends in \\ goes on in the next; so does a block between lines of ```.\n\
         Ctrl-C stops an answer.\n",
    );
    text
}

/// The end of an id, which is enough to name it.
fn end(id: &str) -> &str {
    let from = id.len().saturating_sub(8);
    id.get(from..).unwrap_or(id)
}

/// Millionths of a dollar, for people.
pub(super) fn dollars(micros: u64) -> String {
    format!("${}.{:06}", micros / 1_000_000, micros % 1_000_000)
        .trim_end_matches('0')
        .trim_end_matches('.')
        .to_owned()
}

#[derive(Deserialize)]
struct Listed {
    contexts: Vec<Known>,
}

#[derive(Deserialize)]
struct Known {
    id: String,
    name: Option<String>,
    queries: u64,
    first_question: Option<String>,
}

impl Listed {
    /// A line for each, the one that is talked in marked.
    fn text(&self, current: &str, paint: Paint, width: Option<usize>) -> String {
        if self.contexts.is_empty() {
            return "no conversations yet; a question begins one\n".to_owned();
        }
        let label = |known: &Known| match &known.name {
            Some(name) => one_line(name),
            None => end(&known.id).to_owned(),
        };
        let labels: Vec<String> = self.contexts.iter().map(label).collect();
        let wide = labels.iter().map(|label| label.chars().count()).max();
        let wide = wide.unwrap_or_default();
        let mut text = String::new();
        for (known, label) in self.contexts.iter().zip(&labels) {
            let mark = match label == current || known.id == current {
                true => '*',
                false => ' ',
            };
            let queries = format!("{:>4}", known.queries);
            let question = one_line(known.first_question.as_deref().unwrap_or_default());
            let question = layout::cut(&question, wide + 10, width);
            let line = format!(
                "{mark} {}  {}  {question}",
                paint.bold(format_args!("{label:wide$}")),
                paint.dim(queries)
            );
            let _ = writeln!(text, "{}", line.trim_end());
        }
        text
    }
}

#[derive(Deserialize)]
struct Used {
    requests: u64,
    #[serde(flatten)]
    tokens: dodona_proto::Usage,
    cost_micros: Option<u64>,
}

impl Used {
    fn line(&self) -> String {
        let requests = match self.requests {
            1 => "1 request".to_owned(),
            count => format!("{count} requests"),
        };
        let cost = self.cost_micros.filter(|micros| *micros > 0);
        let cost = cost.map(|micros| format!(" · {}", dollars(micros)));
        format!(
            "{requests} · {} tokens read, {} of them cached · {} written{}",
            self.tokens.input_tokens,
            self.tokens.cached_input_tokens,
            self.tokens.output_tokens,
            cost.unwrap_or_default()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dollars_have_no_idle_digits() {
        assert_eq!(dollars(1_234_500), "$1.2345");
        assert_eq!(dollars(3_000_000), "$3");
        assert_eq!(dollars(7), "$0.000007");
    }

    #[test]
    fn the_conversation_that_is_talked_in_is_marked() {
        let listed: Listed = serde_json::from_value(json!({ "contexts": [
            { "id": "a-12345678", "name": "login", "queries": 2, "first_question": "How\ndoes it?" },
            { "id": "b-87654321", "name": null, "queries": 0, "first_question": null },
        ]}))
        .unwrap();
        assert_eq!(
            listed.text("87654321", Paint::plain(), None),
            "  login        2  How does it?\n* 87654321     0\n"
        );
    }
}
