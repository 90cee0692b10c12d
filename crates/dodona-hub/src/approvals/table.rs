//! The table `approvals` of `hub.db`.

use dodona_proto::{ApprovalId, ApprovalRecord, ApprovalState, UserId};
use dodona_store::{Db, DbError, Row, Tx};
use jiff::Timestamp;

const COLUMNS: &str = "id, call_id, path, method, params_json, user_id, project_id, plugin, \
    message, state, answered_by, reason, created_at, answered_at";

/// How a question ends.
#[derive(Debug, Clone)]
pub(super) struct Settlement {
    pub(super) state: ApprovalState,
    pub(super) by: Option<UserId>,
    pub(super) reason: Option<String>,
}

/// Which questions to list.
#[derive(Debug, Clone)]
pub(crate) struct Filter {
    pub(crate) owner: Option<UserId>,
    pub(crate) id: Option<ApprovalId>,
    pub(crate) state: Option<ApprovalState>,
    /// How many at most, the newest first.
    pub(crate) limit: u32,
}

/// Stores a question, and forgets those that were answered before a time.
pub(super) async fn insert(
    db: &Db,
    record: ApprovalRecord,
    forget: Option<Timestamp>,
) -> Result<(), DbError> {
    db.write(move |tx| {
        if let Some(before) = forget {
            let sql = "delete from approvals where answered_at < ?1";
            tx.execute(sql, (time(before).as_str(),))?;
        }
        let sql = "insert into approvals (id, call_id, path, method, params_json, user_id, project_id, plugin, message, state, created_at) \
            values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 'pending', ?10)";
        let row = (
            record.id.to_string(),
            record.call_id.to_string(),
            record.path.as_str(),
            record.method.as_str(),
            record.params.to_string(),
            record.user.as_str(),
            record.project.as_ref().map(|project| project.as_str()),
            record.plugin.as_ref().map(|plugin| plugin.as_str()),
            record.message.as_str(),
            time(record.created_at),
        );
        tx.execute(sql, row)?;
        Ok(())
    })
    .await
}

/// Ends a question that is pending. Answers with how it stands now, and whether that is the
/// doing of this call; `None` where there is no such question of the owner's (`None`: anybody's).
pub(super) async fn settle(
    db: &Db,
    id: ApprovalId,
    owner: Option<UserId>,
    settlement: Settlement,
) -> Result<Option<(ApprovalRecord, bool)>, DbError> {
    db.write(move |tx| {
        let (id, owner) = (id.to_string(), owner.as_ref().map(UserId::as_str));
        let sql = "update approvals set state = ?3, answered_by = ?4, reason = ?5, answered_at = ?6 \
            where id = ?1 and (?2 is null or user_id = ?2) and state = 'pending'";
        let row = (
            id.as_str(),
            owner,
            settlement.state.as_str(),
            settlement.by.as_ref().map(UserId::as_str),
            settlement.reason.as_deref(),
            time(Timestamp::now()),
        );
        let changed = tx.execute(sql, row)?;
        let sql = format!("select {COLUMNS} from approvals where id = ?1 and (?2 is null or user_id = ?2)");
        let record = tx.query_opt(&sql, (id.as_str(), owner), read)?.flatten();
        Ok(record.map(|record| (record, changed == 1)))
    })
    .await
}

/// Expires the requests that an earlier process left pending, and returns them.
pub(super) async fn expire_pending(
    db: &Db,
    reason: &'static str,
) -> Result<Vec<ApprovalRecord>, DbError> {
    db.write(move |tx| {
        let pending = select(tx, "where state = 'pending'", ())?;
        let sql = "update approvals set state = 'expired', reason = ?1, answered_at = ?2 where state = 'pending'";
        let now = Timestamp::now();
        tx.execute(sql, (reason, time(now)))?;
        let expired = pending.into_iter().map(|record| ApprovalRecord {
            state: ApprovalState::Expired,
            reason: Some(reason.to_owned()),
            answered_at: Some(now),
            ..record
        });
        Ok(expired.collect())
    })
    .await
}

pub(super) async fn list(db: &Db, filter: Filter) -> Result<Vec<ApprovalRecord>, DbError> {
    db.read(move |tx| {
        let params = (
            filter.owner.as_ref().map(UserId::as_str),
            filter.id.map(|id| id.to_string()),
            filter.state.map(ApprovalState::as_str),
            i64::from(filter.limit),
        );
        let clauses = "where (?1 is null or user_id = ?1) and (?2 is null or id = ?2) \
            and (?3 is null or state = ?3) order by created_at desc, id limit ?4";
        select(tx, clauses, params)
    })
    .await
}

fn select(
    tx: &Tx<'_>,
    clauses: &str,
    params: impl dodona_store::Params,
) -> Result<Vec<ApprovalRecord>, DbError> {
    let sql = format!("select {COLUMNS} from approvals {clauses}");
    Ok(tx
        .query(&sql, params, read)?
        .into_iter()
        .flatten()
        .collect())
}

/// With as many digits for every time, so that texts sort as times do.
fn time(at: Timestamp) -> String {
    format!("{at:.9}")
}

/// A row that this version cannot read is passed over.
fn read(row: &Row<'_>) -> Result<Option<ApprovalRecord>, DbError> {
    let optional = |index: usize| row.get::<Option<String>>(index);
    let (project, plugin) = (optional(6)?, optional(7)?);
    let (by, reason, answered) = (optional(10)?, optional(11)?, optional(13)?);
    let record = || -> Option<ApprovalRecord> {
        Some(ApprovalRecord {
            id: row.text(0).ok()?.parse().ok()?,
            call_id: row.text(1).ok()?.parse().ok()?,
            path: row.text(2).ok()?.parse().ok()?,
            method: row.text(3).ok()?.parse().ok()?,
            params: serde_json::from_str(row.text(4).ok()?).ok()?,
            user: row.text(5).ok()?.parse().ok()?,
            project: project.map(|id| id.parse()).transpose().ok()?,
            plugin: plugin.map(|name| name.parse()).transpose().ok()?,
            message: row.text(8).ok()?.to_owned(),
            state: state(row.text(9).ok()?)?,
            answered_by: by.map(|user| user.parse()).transpose().ok()?,
            reason,
            created_at: row.text(12).ok()?.parse().ok()?,
            answered_at: answered.map(|at| at.parse()).transpose().ok()?,
        })
    };
    Ok(record())
}

fn state(word: &str) -> Option<ApprovalState> {
    ApprovalState::ALL
        .into_iter()
        .find(|state| state.as_str() == word)
}
