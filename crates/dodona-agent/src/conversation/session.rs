//! Sessions: a conversation from when something is said in it until nothing has been for a while.
//!
//! A session that ended is told exactly once, whatever becomes of the process: its row says
//! whether that was done, and its id is the event's.

use std::time::Duration;

use dodona_plugin::store::{Row, ToValue, Tx};
use dodona_proto::hook::SessionEnd;
use dodona_proto::{ProjectId, UserId};
use jiff::Timestamp;
use uuid::Uuid;

use super::Conversations;
use super::error::ConversationError;
use super::id::ContextId;
use super::rows::{self, Owner};

/// A session that has ended and was not told yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedSession {
    /// Which.
    pub id: Uuid,
    /// Of which conversation.
    pub context: ContextId,
    /// Whose.
    pub user: UserId,
    /// About which project.
    pub project: ProjectId,
    /// Why it ended.
    pub reason: SessionEnd,
    /// The turns of the conversation.
    pub turns: u64,
}

/// Which sessions end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Those of a process that is no more.
    Left,
    /// Those in which nothing was said for so long.
    Idle(Duration),
    /// All.
    All,
}

/// A session in which something is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Touched {
    /// Whether it begins with that.
    pub(super) begins: bool,
    /// When it began.
    pub(super) started_at: Timestamp,
}

/// Notes that something is said in a conversation.
pub(super) fn touch(
    tx: &Tx<'_>,
    owner: &Owner,
    context: &ContextId,
    process: Uuid,
) -> Result<Touched, ConversationError> {
    // One that an earlier process left open ended with it, whether or not that was noticed yet.
    tx.execute(
        "update sessions set ended_at = ?1, reason = ?2
         where ended_at is null and context_id = ?3 and process <> ?4",
        (
            rows::now(),
            as_str(SessionEnd::Crashed),
            context.as_str(),
            process.to_string(),
        ),
    )?;
    let begun = tx.execute(
        "insert into sessions (id, context_id, user_id, project_id, process, started_at)
         values (?1, ?2, ?3, ?4, ?5, ?6) on conflict do nothing",
        (
            Uuid::now_v7().to_string(),
            context.as_str(),
            owner.user.as_str(),
            owner.project.as_str(),
            process.to_string(),
            rows::now(),
        ),
    )?;
    let sql = "select started_at from sessions where context_id = ?1 and ended_at is null";
    let started: String = tx.query_one(sql, (context.as_str(),), |row| row.get(0))?;
    let strange = || rows::unreadable("session", "started_at".to_owned());
    Ok(Touched {
        begins: begun > 0,
        started_at: started.parse().map_err(|_| strange())?,
    })
}

/// Ends the session of a conversation, if there is one.
pub(super) fn end(
    tx: &Tx<'_>,
    context: &ContextId,
    reason: SessionEnd,
) -> Result<(), ConversationError> {
    end_where(tx, reason, "context_id = ?3", context.as_str())
}

fn end_where(
    tx: &Tx<'_>,
    reason: SessionEnd,
    condition: &str,
    value: impl ToValue,
) -> Result<(), ConversationError> {
    let sql = format!(
        "update sessions set ended_at = ?1, reason = ?2 where ended_at is null and {condition}"
    );
    tx.execute(&sql, (rows::now(), as_str(reason), value))?;
    Ok(())
}

const IDLE: &str = "not exists (select 1 from oracle_contexts c
        where c.id = sessions.context_id and c.last_activity > ?3)
    and not exists (select 1 from queries q
        where q.context_id = sessions.context_id and q.state = 'running')";

impl Conversations {
    /// Ends sessions.
    pub async fn end_sessions(&self, which: Ending) -> Result<(), ConversationError> {
        let process = self.inner.process.to_string();
        self.write(move |tx| match which {
            Ending::Left => end_where(tx, SessionEnd::Crashed, "process <> ?3", process),
            Ending::All => end_where(tx, SessionEnd::Shutdown, "process = ?3", process),
            Ending::Idle(idle) => {
                let since = Timestamp::now() - idle;
                end_where(tx, SessionEnd::Idle, IDLE, rows::stamp(since))
            }
        })
        .await
    }

    /// The sessions that have ended and were not told, the first first.
    pub async fn untold_sessions(&self) -> Result<Vec<EndedSession>, ConversationError> {
        let sql = "select s.id, s.context_id, s.user_id, s.project_id, s.reason,
                (select coalesce(sum(turns), 0) from queries q where q.context_id = s.context_id)
            from sessions s where s.ended_at is not null and s.told = 0 order by s.ended_at, s.id";
        self.read(move |tx| Ok(tx.query(sql, (), |row| Ok(read(row)?))?))
            .await
    }

    /// Notes that the end of a session was told.
    pub async fn session_told(&self, id: Uuid) -> Result<(), ConversationError> {
        self.write(move |tx| {
            let sql = "update sessions set told = 1 where id = ?1";
            tx.execute(sql, (id.to_string(),))?;
            Ok(())
        })
        .await
    }
}

fn read(row: &Row<'_>) -> Result<EndedSession, ConversationError> {
    let strange = |what: &str| rows::unreadable("session", what.to_owned());
    Ok(EndedSession {
        id: row.text(0)?.parse().map_err(|_| strange("id"))?,
        context: ContextId::stored(row.get(1)?),
        user: row.text(2)?.parse().map_err(|_| strange("user"))?,
        project: row.text(3)?.parse().map_err(|_| strange("project"))?,
        reason: parse(row.text(4)?).ok_or_else(|| strange("reason"))?,
        turns: row.get(5)?,
    })
}

const REASONS: [(SessionEnd, &str); 4] = [
    (SessionEnd::Closed, "closed"),
    (SessionEnd::Idle, "idle"),
    (SessionEnd::Shutdown, "shutdown"),
    (SessionEnd::Crashed, "crashed"),
];

fn as_str(reason: SessionEnd) -> &'static str {
    let found = REASONS.iter().find(|(known, _)| *known == reason);
    found.map_or("closed", |(_, text)| text)
}

fn parse(text: &str) -> Option<SessionEnd> {
    let found = REASONS.iter().find(|(_, known)| *known == text);
    found.map(|(reason, _)| *reason)
}
