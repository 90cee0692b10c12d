//! What an agent is to be told, until it has been.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use dodona_plugin::store::{Row, Tx};
use dodona_proto::{Category, DeliverAt, NOTICES, Notification, PluginName, Priority};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::ConversationError;
use super::exchange::{ExchangeOrigin, ExchangeRole};
use super::id::ContextId;
use super::lifecycle::find_or_default;
use super::query::{self, Appended, Query};
use super::rows::Owner;
use super::{Conversations, rows, turn};

/// The most tokens of notifications in one request.
const MOST_TOKENS: u64 = 1_000;

/// The plugin in whose name the rules of the user and of Dodona send notifications.
const OWN_RULES: &str = "rules";

/// The plugin in whose name `agent.notify_self` sends notifications.
pub(crate) const OWN_NOTES: &str = "agent";

/// The longest notification that is kept, in bytes.
const LONGEST: usize = 4_096;

/// The most notifications of the user's and Dodona's rules that wait in one conversation.
const MOST_WAITING: u64 = 1_000;

/// The most notifications of one plugin, or of the project's rules, that wait in one conversation.
const MOST_FOREIGN_WAITING: u64 = 100;

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
    /// Stores notifications until they are delivered. Where too many of a plugin are waiting, its
    /// newest are dropped and returned, each with the reason. No plugin can use up the room of
    /// another. Notifications of core rules are always stored, unless the same text is waiting.
    pub async fn notify(
        &self,
        context: &ContextId,
        notifications: Vec<(PluginName, Notification)>,
    ) -> Result<Vec<(Notification, String)>, ConversationError> {
        if notifications.is_empty() {
            return Ok(Vec::new());
        }
        let context = context.clone();
        self.write(move |tx| store(tx, &context, &notifications))
            .await
    }

    /// Stores a notification that an agent or a user leaves in a conversation: by id or name, or the
    /// default one, which is created if it does not exist. Returns whether it waits there.
    pub(crate) async fn leave_note(
        &self,
        owner: &Owner,
        context: Option<&str>,
        plugin: PluginName,
        notification: Notification,
    ) -> Result<(ContextId, bool), ConversationError> {
        let (owner, asked) = (owner.clone(), context.map(str::to_owned));
        self.write(move |tx| {
            let head = find_or_default(tx, &owner, asked.as_deref())?;
            let dropped = store(tx, &head.id, &[(plugin, notification)])?;
            Ok((head.id, dropped.is_empty()))
        })
        .await
    }
}

/// Stores notifications as far as there is room, and returns those that were dropped, each with the
/// reason.
fn store(
    tx: &Tx<'_>,
    context: &ContextId,
    notifications: &[(PluginName, Notification)],
) -> Result<Vec<(Notification, String)>, ConversationError> {
    let sql = "select plugin, count(*) from inbox
        where context_id = ?1 and delivered_at is null group by plugin";
    let counts = tx.query(sql, (context.as_str(),), |row| {
        Ok((row.get::<String>(0)?, row.get::<u64>(1)?))
    })?;
    let mut waiting: HashMap<String, u64> = counts.into_iter().collect();
    let mut dropped = Vec::new();
    for (plugin, notification) in notifications {
        if notification.is_core {
            if !is_waiting(tx, context, notification)? {
                insert(tx, context, plugin, notification)?;
            }
            continue;
        }
        let count = waiting.entry(plugin.to_string()).or_default();
        let most = match is_own(plugin) {
            true => MOST_WAITING,
            false => MOST_FOREIGN_WAITING,
        };
        if *count >= most {
            let rule = notification.rule.as_deref();
            let reason = match is_own(plugin) {
                true => format!("{most} notifications are waiting in this conversation"),
                false => {
                    format!("{most} notifications of `{plugin}` are waiting in this conversation")
                }
            };
            tracing::warn!(%context, %plugin, rule, "notification dropped: {reason}");
            dropped.push((notification.clone(), reason));
            continue;
        }
        *count += 1;
        insert(tx, context, plugin, notification)?;
    }
    Ok(dropped)
}

/// Whether notifications of this plugin are those of the user's and Dodona's rules.
fn is_own(plugin: &PluginName) -> bool {
    plugin.as_str() == OWN_RULES
}

/// Whether a notification with the same text waits: the model is going to read it.
fn is_waiting(
    tx: &Tx<'_>,
    context: &ContextId,
    notification: &Notification,
) -> Result<bool, ConversationError> {
    let sql = "select 1 from inbox
        where context_id = ?1 and delivered_at is null and core = 1 and rule is ?2
            and message = ?3 and deliver_at = ?4 limit 1";
    let params = (
        context.as_str(),
        notification.rule.as_deref(),
        stored(notification),
        word(notification.deliver_at),
    );
    Ok(tx.query_opt(sql, params, |_| Ok(()))?.is_some())
}

/// The part of a message that is stored.
fn stored(notification: &Notification) -> &str {
    let message = &notification.message;
    &message[..message.floor_char_boundary(LONGEST)]
}

fn insert(
    tx: &Tx<'_>,
    context: &ContextId,
    plugin: &PluginName,
    notification: &Notification,
) -> Result<(), ConversationError> {
    tx.execute(
        "insert into inbox
             (context_id, plugin, message, category, priority, deliver_at, created_at, rule, core)
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        (
            context.as_str(),
            plugin.as_str(),
            stored(notification),
            word(notification.category),
            notification.priority as u32,
            word(notification.deliver_at),
            rows::now(),
            notification.rule.as_deref(),
            notification.is_core,
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
        message.origin = Some(ExchangeOrigin::Notice);
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
        // Core rules first, then the user's, whatever priority plugins and projects claim. Stable, so
        // that within each part the most urgent comes first.
        let mut waiting = waiting;
        waiting.sort_by_key(|one| (!one.notification.is_core, !is_own(&one.plugin)));
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
        told.sort_by_key(|one: &Waiting| (Reverse(one.notification.priority as u32), one.id));
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
    let sql = "select id, plugin, message, category, priority, deliver_at, rule, core from inbox
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
            is_core: row.get(7)?,
        },
    })
}

/// What a model reads. A line break inside of a notification cannot begin another.
fn text(told: &[Waiting]) -> String {
    let lines = told.iter().map(|waiting| {
        let category = word::<Category>(waiting.notification.category);
        let message = waiting.notification.message.trim().replace('\n', "\n  ");
        // A rule's text names its author already.
        match waiting.notification.rule {
            Some(_) => format!("\n- [{category}] {message}"),
            None if waiting.plugin.as_str() == OWN_NOTES => {
                format!("\n- [{category}] note to self: {message}")
            }
            None => format!(
                "\n- [{category}] plugin `{}` says: {message}",
                waiting.plugin
            ),
        }
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
