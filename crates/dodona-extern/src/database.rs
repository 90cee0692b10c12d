//! A plugin's own database: SQL with bound parameters, and nothing of anybody else's.
//!
//! Every statement runs on the thread of the plugin's own database, one at a time. So a slow one makes
//! only its plugin wait, and a statement that is stopped undoes nothing of another call.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use dodona_plugin::store::{Db, DbError, Row, Tx, ValueError, ValueRef};
use serde_json::{Map, Number, Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::task::JoinHandle;

/// How long a transaction may be open.
const TRANSACTION: Duration = Duration::from_secs(10);

/// The most rows and bytes of one result.
const MAX_ROWS: usize = 10_000;
const MAX_BYTES: usize = 4 << 20;

/// The most parameters of a statement, and statements of a transaction.
const MAX_PARAMS: usize = 1_000;
const MAX_STATEMENTS: usize = 1_000;

/// A statement and its parameters.
#[derive(Debug, Clone)]
pub(crate) struct Statement {
    sql: String,
    params: Vec<Value>,
}

/// What a statement is run for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Its rows.
    Rows,
    /// How many rows it changed.
    Changes,
}

impl Statement {
    /// Reads what a plugin passed.
    pub(crate) fn read(sql: &Value, params: &Value) -> Result<Self, String> {
        let Some(sql) = sql.as_str() else {
            return Err("the statement must be a text".to_owned());
        };
        let params = match params {
            Value::Null => Vec::new(),
            Value::Array(params) => params.clone(),
            Value::Object(fields) if fields.is_empty() => Vec::new(),
            _ => return Err("the parameters must be a list, one for each `?`".to_owned()),
        };
        if params.len() > MAX_PARAMS {
            return Err(format!("a statement has at most {MAX_PARAMS} parameters"));
        }
        for (param, number) in params.iter().zip(1..) {
            if param.is_array() || param.is_object() {
                return Err(format!(
                    "parameter {number} is a list or an object; a column holds texts, numbers and null"
                ));
            }
        }
        let sql = sql.to_owned();
        Ok(Self { sql, params })
    }

    fn run(&self, tx: &Tx<'_>, wanted: Wanted) -> Result<Value, DbError> {
        let params: Vec<ValueRef<'_>> = self.params.iter().map(to_column).collect();
        match wanted {
            Wanted::Changes => {
                let changes = tx.execute(&self.sql, &params)?;
                Ok(json!({ "changes": changes, "last_insert_id": tx.last_insert_id() }))
            }
            Wanted::Rows => {
                let (mut bytes, mut count) = (0, 0);
                let rows = tx.query(&self.sql, &params, |row| {
                    count += 1;
                    let row = to_object(row, &mut bytes)?;
                    match count > MAX_ROWS || bytes > MAX_BYTES {
                        true => Err(DbError::abort(Refusal::ResultTooLarge)),
                        false => Ok(row),
                    }
                })?;
                Ok(Value::Array(rows))
            }
        }
    }
}

/// Why work on the database was given up.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error(
        "the result has more than {MAX_ROWS} rows or {} MiB; add a `LIMIT`", MAX_BYTES >> 20
    )]
    ResultTooLarge,
    #[error("column `{0}` holds bytes; select `hex({0})` instead")]
    Bytes(String),
    #[error("the transaction was open for longer than {} s and was rolled back", TRANSACTION.as_secs())]
    TooLong,
    #[error("the transaction was rolled back")]
    RolledBack,
}

fn to_column(param: &Value) -> ValueRef<'_> {
    match param {
        Value::Bool(truth) => ValueRef::Integer(i64::from(*truth)),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => ValueRef::Integer(whole),
            None => ValueRef::Real(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => ValueRef::Text(text),
        // Lists and objects were refused when the statement was read.
        Value::Null | Value::Array(_) | Value::Object(_) => ValueRef::Null,
    }
}

/// A row as an object: its columns by name.
fn to_object(row: &Row<'_>, bytes: &mut usize) -> Result<Value, DbError> {
    let mut object = Map::new();
    for index in 0..row.column_count() {
        let name = row.column_name(index).unwrap_or_default().to_owned();
        let value = match row.get_ref(index)? {
            ValueRef::Null => Value::Null,
            ValueRef::Integer(number) => number.into(),
            ValueRef::Real(number) => Number::from_f64(number).map_or(Value::Null, Value::Number),
            ValueRef::Text(text) => {
                *bytes += text.len();
                text.into()
            }
            ValueRef::Blob(_) => return Err(DbError::abort(Refusal::Bytes(name))),
        };
        *bytes += name.len() + 8;
        object.insert(name, value);
    }
    Ok(Value::Object(object))
}

/// A plugin's database. Cheap to clone.
#[derive(Clone)]
pub(crate) struct PluginDb {
    db: Db,
    turn: Arc<Semaphore>,
}

impl PluginDb {
    pub(crate) fn new(db: Db) -> Self {
        let turn = Arc::new(Semaphore::new(1));
        Self { db, turn }
    }

    async fn turn(&self) -> Result<OwnedSemaphorePermit, String> {
        let turn = Arc::clone(&self.turn).acquire_owned().await;
        turn.map_err(|_| "the database is closed".to_owned())
    }

    /// Runs a statement in a transaction of its own.
    pub(crate) async fn run(&self, statement: Statement, wanted: Wanted) -> Result<Value, String> {
        let _turn = self.turn().await?;
        let done = self.db.write(move |tx| statement.run(tx, wanted)).await;
        done.map_err(|error| explain(&error))
    }

    /// Runs a query that cannot change anything, for where nothing may be changed.
    pub(crate) async fn read(&self, statement: Statement) -> Result<Value, String> {
        let _turn = self.turn().await?;
        let read = self.db.read(move |tx| statement.run(tx, Wanted::Rows));
        read.await.map_err(|error| explain(&error))
    }

    /// Runs statements in one transaction: all of them or none. Each returns what it changed.
    pub(crate) async fn run_all(&self, statements: Vec<Statement>) -> Result<Value, String> {
        if statements.len() > MAX_STATEMENTS {
            let message = format!("a transaction has at most {MAX_STATEMENTS} statements");
            return Err(message);
        }
        let _turn = self.turn().await?;
        let done = self.db.write(move |tx| {
            let until = Instant::now() + TRANSACTION;
            let mut results = Vec::new();
            for statement in &statements {
                if Instant::now() > until {
                    return Err(DbError::abort(Refusal::TooLong));
                }
                results.push(statement.run(tx, Wanted::Changes)?);
            }
            Ok(Value::Array(results))
        });
        done.await.map_err(|error| explain(&error))
    }

    /// Begins a transaction that is driven step by step. Other statements of the plugin wait until it
    /// ends.
    pub(crate) async fn begin(&self) -> Result<Transaction, String> {
        let turn = self.turn().await?;
        let (steps, todo) = mpsc::channel();
        let db = self.db.clone();
        let done = tokio::spawn(async move {
            let done = db.write(move |tx| follow(tx, &todo)).await;
            drop(turn);
            done
        });
        Ok(Transaction { steps, done })
    }
}

/// A step of a transaction, and where its result goes.
type Step = (Statement, Wanted, oneshot::Sender<Result<Value, String>>);

/// Runs steps as they come, until the transaction is to be committed.
fn follow(tx: &Tx<'_>, todo: &Receiver<Option<Step>>) -> Result<(), DbError> {
    let until = Instant::now() + TRANSACTION;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        match todo.recv_timeout(left) {
            Ok(Some((statement, wanted, reply))) => {
                let result = statement.run(tx, wanted);
                let is_over = matches!(result, Err(DbError::Timeout { .. } | DbError::Full { .. }));
                let _ = reply.send(result.map_err(|error| explain(&error)));
                if is_over {
                    // The engine has rolled the transaction back.
                    return Err(DbError::abort(Refusal::RolledBack));
                }
            }
            Ok(None) => return Ok(()),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(DbError::abort(Refusal::RolledBack));
            }
            Err(RecvTimeoutError::Timeout) => return Err(DbError::abort(Refusal::TooLong)),
        }
    }
}

/// An open transaction. Dropping it rolls it back.
pub(crate) struct Transaction {
    steps: Sender<Option<Step>>,
    done: JoinHandle<Result<(), DbError>>,
}

impl Transaction {
    /// Runs a statement in it.
    pub(crate) async fn run(&self, statement: Statement, wanted: Wanted) -> Result<Value, String> {
        let (reply, result) = oneshot::channel();
        let over = || Refusal::TooLong.to_string();
        self.steps
            .send(Some((statement, wanted, reply)))
            .map_err(|_| over())?;
        result.await.unwrap_or_else(|_| Err(over()))
    }

    /// Stores what it did.
    pub(crate) async fn commit(self) -> Result<(), String> {
        // A failed send means that it is over; its end says why.
        let _ = self.steps.send(None);
        match self.done.await {
            Ok(done) => done.map_err(|error| explain(&error)),
            Err(_) => Err(Refusal::RolledBack.to_string()),
        }
    }

    /// Undoes what it did, and returns when the database is free again.
    pub(crate) async fn roll_back(self) {
        drop(self.steps);
        let _ = self.done.await;
    }
}

/// The database for one run of a script, which may have one transaction open.
pub(crate) struct DbSession {
    db: PluginDb,
    open: tokio::sync::Mutex<Option<Transaction>>,
}

impl DbSession {
    pub(crate) fn new(db: PluginDb) -> Self {
        let open = tokio::sync::Mutex::new(None);
        Self { db, open }
    }

    /// Whether a transaction is open.
    pub(crate) async fn is_open(&self) -> bool {
        self.open.lock().await.is_some()
    }

    /// Answers `db.…`; the name is without `db.`.
    pub(crate) async fn answer(
        &self,
        name: &str,
        sql: &Value,
        params: &Value,
    ) -> Result<Value, String> {
        let statement = || Statement::read(sql, params);
        let mut open = self.open.lock().await;
        match (name, open.as_ref()) {
            ("query", None) => self.db.run(statement()?, Wanted::Rows).await,
            ("execute", None) => self.db.run(statement()?, Wanted::Changes).await,
            ("query" | "execute", Some(_)) => {
                Err("a transaction is open: use `tx.query` and `tx.execute`".to_owned())
            }
            ("begin", None) => {
                *open = Some(self.db.begin().await?);
                Ok(Value::Null)
            }
            ("begin", Some(_)) => Err("a transaction is open already".to_owned()),
            ("tx_query", Some(tx)) => tx.run(statement()?, Wanted::Rows).await,
            ("tx_execute", Some(tx)) => tx.run(statement()?, Wanted::Changes).await,
            ("commit" | "roll_back", Some(_)) => {
                let Some(tx) = open.take() else {
                    return Ok(Value::Null);
                };
                match name {
                    "commit" => tx.commit().await?,
                    _ => tx.roll_back().await,
                }
                Ok(Value::Null)
            }
            (_, None) => Err("the transaction is over".to_owned()),
            (other, Some(_)) => Err(format!("there is no `db.{other}`")),
        }
    }
}

/// What a plugin's author needs to know. It is the author's own SQL, so nothing is hidden.
fn explain(error: &DbError) -> String {
    match error {
        DbError::Abort { source } => source.to_string(),
        DbError::Statement { source, .. } | DbError::Constraint { source, .. } => {
            source.to_string()
        }
        DbError::Full { .. } => {
            "the database is full: it has reached its size limit, or the disk is full".to_owned()
        }
        DbError::Timeout { .. } => "the statement took too long and was stopped".to_owned(),
        DbError::Commit {
            source: Some(inner),
            ..
        } => explain(inner),
        DbError::Column { source, .. } | DbError::Parameter { source, .. } => {
            let source: &ValueError = source;
            source.to_string()
        }
        other => other.to_string(),
    }
}
