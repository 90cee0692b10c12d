//! Telling one request from another, and where they part.

use std::fmt;

use dodona_proto::Message;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::model::{ModelOptions, ModelRequest, ToolOffer};

/// How many hexadecimal digits tell two parts apart.
const DIGITS: usize = 16;

/// What is the same in every request of a query, told by hashes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BasisDigest {
    /// The system prompt.
    pub system: String,
    /// The tools: each name and its hash.
    pub tools: Vec<(String, String)>,
}

impl BasisDigest {
    /// The digest of a system prompt and its tools.
    pub fn of(system: &str, tools: &[ToolOffer]) -> Self {
        let tool = |tool: &ToolOffer| (tool.name.clone(), short(tool));
        Self {
            system: short(&system),
            tools: tools.iter().map(tool).collect(),
        }
    }

    /// Adds a tool at the end.
    pub fn add(&mut self, tool: &ToolOffer) {
        self.tools.push((tool.name.clone(), short(tool)));
    }
}

/// A request, told by hashes: part by part, and without what it says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestDigest {
    /// What comes first.
    pub basis: BasisDigest,
    /// The messages: who speaks, and a hash.
    pub messages: Vec<(String, String)>,
    /// How to answer.
    pub options: String,
}

impl RequestDigest {
    /// The digest of a request.
    pub fn of(request: &ModelRequest) -> Self {
        let basis = BasisDigest::of(&request.system, &request.tools);
        Self::new(basis, &request.messages, &request.options)
    }

    /// The same where its beginning is known.
    pub fn new(basis: BasisDigest, messages: &[Message], options: &ModelOptions) -> Self {
        let message = |message: &Message| (speaker(message).to_owned(), short(message));
        Self {
            basis,
            messages: messages.iter().map(message).collect(),
            options: short(options),
        }
    }

    /// The hash by which a recording knows the request again.
    pub fn hash(&self) -> String {
        digits(self)
    }

    /// Where another request first parts from this one.
    pub fn first_difference(&self, now: &Self) -> Option<Difference> {
        if self.basis.system != now.basis.system {
            return Some(Difference::System);
        }
        if let Some(tool) = first_tool(&self.basis.tools, &now.basis.tools) {
            return Some(tool);
        }
        let pairs = self.messages.iter().zip(&now.messages);
        if let Some((number, (was, _))) = (1..).zip(pairs).find(|(_, (was, is))| was != is) {
            let speaker = was.0.clone();
            return Some(Difference::Message { number, speaker });
        }
        if self.messages.len() != now.messages.len() {
            return Some(Difference::Count {
                was: self.messages.len(),
                is: now.messages.len(),
            });
        }
        (self.options != now.options).then_some(Difference::Options)
    }
}

fn first_tool(was: &[(String, String)], now: &[(String, String)]) -> Option<Difference> {
    let find = |tools: &[(String, String)], name: &str| {
        let found = tools.iter().find(|(known, _)| known == name);
        found.map(|(_, hash)| hash.clone())
    };
    for (name, hash) in was {
        match find(now, name) {
            None => return Some(Difference::ToolGone(name.clone())),
            Some(other) if other != *hash => return Some(Difference::Tool(name.clone())),
            Some(_) => {}
        }
    }
    let new = now.iter().find(|(name, _)| find(was, name).is_none());
    new.map(|(name, _)| Difference::ToolNew(name.clone()))
}

/// Where two requests part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Difference {
    /// In the system prompt.
    System,
    /// A tool says something else about itself.
    Tool(String),
    /// A tool is no longer offered.
    ToolGone(String),
    /// A tool is offered that was not.
    ToolNew(String),
    /// A message says something else.
    Message {
        /// Which, from 1.
        number: usize,
        /// Who spoke.
        speaker: String,
    },
    /// There are more messages, or fewer.
    Count {
        /// How many there were.
        was: usize,
        /// How many there are.
        is: usize,
    },
    /// In how to answer.
    Options,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System => write!(f, "the system prompt is another one"),
            Self::Tool(name) => write!(f, "the tool `{name}` is described otherwise"),
            Self::ToolGone(name) => write!(f, "the tool `{name}` is no longer offered"),
            Self::ToolNew(name) => write!(f, "the tool `{name}` was not offered then"),
            Self::Message { number, speaker } => {
                write!(f, "message {number} ({speaker}) is another one")
            }
            Self::Count { was, is } => write!(f, "there are {is} messages, and there were {was}"),
            Self::Options => write!(f, "the model is asked to answer in another way"),
        }
    }
}

fn speaker(message: &Message) -> &'static str {
    match message {
        Message::User { .. } => "user",
        Message::Assistant { .. } => "assistant",
        Message::Tool { .. } => "tool",
    }
}

fn short(part: &impl Serialize) -> String {
    let mut hash = digits(part);
    hash.truncate(DIGITS);
    hash
}

fn digits(part: &impl Serialize) -> String {
    let json = serde_json::to_vec(part).expect("a request is texts, numbers and JSON values");
    let digest = Sha256::digest(&json);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn request() -> ModelRequest {
        let tool = |name: &str| ToolOffer {
            name: name.to_owned(),
            description: "Does it.".to_owned(),
            parameters: json!({}),
        };
        ModelRequest {
            system: "Be brief.".to_owned(),
            messages: vec![
                Message::User {
                    content: "Hi".to_owned(),
                },
                Message::Tool {
                    tool_call_id: "a".to_owned(),
                    content: "found".to_owned(),
                },
            ],
            tools: vec![tool("read"), tool("write")],
            options: ModelOptions::default(),
        }
    }

    #[test]
    fn the_first_part_that_differs_is_named() {
        type Change = fn(&mut ModelRequest);
        let cases: [(&str, Change); 7] = [
            ("the system prompt is another one", |r| r.system.push('!')),
            ("the tool `read` is described otherwise", |r| {
                r.tools[0].description.clear();
            }),
            ("the tool `write` is no longer offered", |r| {
                r.tools.pop();
            }),
            ("the tool `move` was not offered then", |r| {
                let mut more = r.tools[0].clone();
                more.name = "move".to_owned();
                r.tools.push(more);
            }),
            ("message 2 (tool) is another one", |r| {
                r.messages[1] = Message::User {
                    content: "found".to_owned(),
                };
            }),
            ("there are 1 messages, and there were 2", |r| {
                r.messages.pop();
            }),
            ("the model is asked to answer in another way", |r| {
                r.options.max_output_tokens = Some(5);
            }),
        ];
        let was = RequestDigest::of(&request());
        assert_eq!(was.first_difference(&RequestDigest::of(&request())), None);
        for (told, change) in cases {
            let mut changed = request();
            change(&mut changed);
            let now = RequestDigest::of(&changed);
            assert_eq!(was.first_difference(&now).unwrap().to_string(), told);
            assert_ne!(was.hash(), now.hash());
        }
    }
}
