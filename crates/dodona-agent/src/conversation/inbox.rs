//! What an agent is to be told, until it has been.

use std::collections::HashSet;

use dodona_plugin::store::{Row, Tx};
use dodona_proto::{Category, DeliverAt, NOTICES, Notification, PluginName, Priority};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::ConversationError;
use super::exchange::ExchangeRole;
use super::id::ContextId;
use super::query::{self, Appended, Query};
use super::{Conversations, rows, turn};

/// The most tokens that are told at once.
const MOST_TOKENS: u64 = 1_000;

/// The longest notification that is kept, in bytes.
const LONGEST: usize = 4_096;

/// The most notifications that wait in one conversation.
const MOST_WAITING: u64 = 1_000;

/// What was told to a model, and what the window comes to with it.
#[derive(Debug, Clone, PartialEq)]
pub struct Delivered {
    /// What the model reads.
    pub text: String,
    /// In the order in which they were told.
    pub notifications: Vec<(PluginName, Notification)>,
    /// What was stored.
    pub appended: Appended,
}

struct Waiting {
    id: i64,
    plugin: PluginName,
    notification: Notification,
}

impl Conversations {
    /// Keeps notifications until they are told. Where too many wait, the newest are dropped.
    pub async fn notify(
        &self,
        context: &ContextId,
        notifications: Vec<(PluginName, Notification)>,
    ) -> Result<(), ConversationError> {
        if notifications.is_empty() {
            return Ok(());
        }
        let context = context.clone();
        self.write(move |tx| {
            let sql = "select count(*) from inbox where context_id = ?1 and delivered_at is null";
            let waiting: u64 = tx.query_one(sql, (context.as_str(),), |row| row.get(0))?;
            let room = usize::try_from(MOST_WAITING.saturating_sub(waiting)).unwrap_or(usize::MAX);
            if notifications.len() > room {
                tracing::warn!(%context, "too many notifications wait; the newest were dropped");
            }
            for (plugin, notification) in notifications.iter().take(room) {
                insert(tx, &context, plugin, notification)?;
            }
            Ok(())
        })
        .await
    }
}

fn insert(
    tx: &Tx<'_>,
    context: &ContextId,
    plugin: &PluginName,
    notification: &Notification,
) -> Result<(), ConversationError> {
    let message = &notification.message;
    tx.execute(
        "insert into inbox
             (context_id, plugin, message, category, priority, deliver_at, created_at, rule)
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        (
            context.as_str(),
            plugin.as_str(),
            &message[..message.floor_char_boundary(LONGEST)],
            word(notification.category),
            notification.priority as u32,
            word(notification.deliver_at),
            rows::now(),
            notification.rule.as_deref(),
        ),
    )?;
    Ok(())
}

impl Query {
    /// Tells the model what waits for one of these moments: the most urgent first, each once, as
    /// many as there is room for. What is told is stored in the same transaction in which it
    /// stops waiting.
    pub async fn deliver(
        &mut self,
        turn: u32,
        moments: &'static [DeliverAt],
    ) -> Result<Option<Delivered>, ConversationError> {
        let context = self.context().clone();
        let waiting = self
            .conversations
            .read(move |tx| waiting(tx, &context, moments))
            .await?;
        if waiting.is_empty() {
            return Ok(None);
        }
        // From here on the window is read again.
        self.settle().await?;
        let (told, rest) = self.choose(waiting);
        let text = text(&told);
        let mut message = query::draft(ExchangeRole::User, text.clone());
        query::complete(&mut message, None, &self.counter);
        let facts = self.facts.clone();
        let ids: Vec<i64> = told.iter().chain(&rest).map(|waiting| waiting.id).collect();
        let write = move |tx: &Tx<'_>| {
            let appended = turn::append(tx, &facts, turn, &message, None)?;
            for id in &ids {
                let sql = "update inbox set delivered_at = ?2, query_id = ?3, turn = ?4
                    where id = ?1";
                tx.execute(sql, (*id, rows::now(), facts.query.as_str(), turn))?;
            }
            Ok(appended)
        };
        let appended = self.conversations.write(write).await?;
        // It is no news to this query.
        self.window().await?;
        let notifications = told
            .into_iter()
            .map(|waiting| (waiting.plugin, waiting.notification))
            .collect();
        Ok(Some(Delivered {
            text,
            notifications,
            appended,
        }))
    }

    /// What is told, and what need not be because the same is told already. What there is no room
    /// for goes on waiting, but for the first: it would wait for ever.
    fn choose(&self, waiting: Vec<Waiting>) -> (Vec<Waiting>, Vec<Waiting>) {
        let (mut told, mut same) = (Vec::new(), Vec::new());
        let (mut seen, mut tokens) = (HashSet::new(), 0);
        for one in waiting {
            if !seen.insert(one.notification.message.clone()) {
                same.push(one);
                continue;
            }
            let mut line = query::draft(ExchangeRole::User, text(std::slice::from_ref(&one)));
            query::complete(&mut line, None, &self.counter);
            if told.is_empty() || tokens + line.token_count <= MOST_TOKENS {
                tokens += line.token_count;
                told.push(one);
            }
        }
        // A copy of what waits on does so too.
        let is_told = |one: &Waiting| {
            told.iter()
                .any(|told| told.notification.message == one.notification.message)
        };
        same.retain(is_told);
        (told, same)
    }
}

fn waiting(
    tx: &Tx<'_>,
    context: &ContextId,
    moments: &[DeliverAt],
) -> Result<Vec<Waiting>, ConversationError> {
    let sql = "select id, plugin, message, category, priority, deliver_at, rule from inbox
        where context_id = ?1 and delivered_at is null order by priority desc, id";
    let mut all = tx.query(sql, (context.as_str(),), |row| Ok(read(row)?))?;
    all.retain(|one: &Waiting| moments.contains(&one.notification.deliver_at));
    Ok(all)
}

fn read(row: &Row<'_>) -> Result<Waiting, ConversationError> {
    let strange = |what: &str| rows::unreadable("notification", what.to_owned());
    let priorities = [
        Priority::Low,
        Priority::Normal,
        Priority::High,
        Priority::Critical,
    ];
    let priority = priorities.get(row.get::<u32>(4)? as usize);
    Ok(Waiting {
        id: row.get(0)?,
        plugin: PluginName::new(row.text(1)?).map_err(|_| strange("plugin"))?,
        notification: Notification {
            message: row.get(2)?,
            category: unword(row.text(3)?).ok_or_else(|| strange("category"))?,
            priority: *priority.ok_or_else(|| strange("priority"))?,
            deliver_at: unword(row.text(5)?).ok_or_else(|| strange("deliver_at"))?,
            rule: row.get(6)?,
        },
    })
}

/// What a model reads. A line break inside of a notification cannot begin another.
fn text(told: &[Waiting]) -> String {
    let lines = told.iter().map(|waiting| {
        let category = word::<Category>(waiting.notification.category);
        let message = waiting.notification.message.trim().replace('\n', "\n  ");
        format!("\n- [{category}] {message}")
    });
    std::iter::once(NOTICES.to_owned()).chain(lines).collect()
}

fn word<T: Serialize>(value: T) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word,
        _ => String::new(),
    }
}

fn unword<T: DeserializeOwned>(word: &str) -> Option<T> {
    serde_json::from_value(Value::String(word.to_owned())).ok()
}
