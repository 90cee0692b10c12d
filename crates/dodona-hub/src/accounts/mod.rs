//! Users, tokens, and one-time login codes for the page.
//!
//! A token is `dod_<id>_<secret>`. The public id finds the row. Only a hash of the secret is stored; it is
//! compared in constant time.

mod login;
mod secret;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use dodona_proto::{CallError, ErrorCode, Principal, Scopes, Surface, UserId};
use dodona_store::{Db, DbError, Row};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use login::Logins;
use secret::{Secret, SecretHash};

/// The user name of the machine's owner, who has all scopes.
pub const LOCAL_USER: &str = "local";

/// Lifetime of a page's session.
const SESSION: Duration = Duration::from_secs(30 * 24 * 3600);

/// A token without its secret.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TokenInfo {
    /// The public part of the token.
    pub id: String,
    /// The user of the token.
    pub user: UserId,
    /// The purpose, unique per user.
    pub name: String,
    /// The scopes that the token grants.
    pub scopes: Scopes,
    /// When the token was created.
    pub created_at: Timestamp,
    /// Time of expiry; `None` means never.
    pub expires_at: Option<Timestamp>,
}

struct Token {
    info: TokenInfo,
    hash: SecretHash,
}

/// The accounts in `hub.db`. Valid tokens are held in memory, because every request needs one.
pub(crate) struct Accounts {
    db: Db,
    tokens: RwLock<HashMap<String, Arc<Token>>>,
    logins: Logins,
}

impl Accounts {
    pub(crate) async fn load(db: Db) -> Result<Self, DbError> {
        let sql = "select id, user_id, name, scopes, created_at, expires_at, hash from tokens where revoked_at is null";
        let rows = db.read(|tx| tx.query(sql, (), read_token)).await?;
        let tokens = rows
            .into_iter()
            .flatten()
            .map(|token| (token.info.id.clone(), Arc::new(token)))
            .collect();
        Ok(Self {
            db,
            tokens: RwLock::new(tokens),
            logins: Logins::default(),
        })
    }

    /// Returns the principal of a token. The error does not reveal why an unknown token is invalid.
    pub(crate) fn authenticate(
        &self,
        token: &str,
        surface: Surface,
    ) -> Result<Principal, CallError> {
        let no = || {
            CallError::new(ErrorCode::Unauthenticated, "invalid token")
                .hint("run `dodona token create` to create one")
        };
        let secret = Secret::parse(token).ok_or_else(no)?;
        let known = self.get(secret.id()).ok_or_else(no)?;
        if !known.hash.matches(&secret) {
            return Err(no());
        }
        if known
            .info
            .expires_at
            .is_some_and(|at| at <= Timestamp::now())
        {
            return Err(
                CallError::new(ErrorCode::Unauthenticated, "the token has expired")
                    .hint("make a new one"),
            );
        }
        Ok(Principal {
            user: known.info.user.clone(),
            scopes: known.info.scopes.clone(),
            surface,
        })
    }

    fn get(&self, id: &str) -> Option<Arc<Token>> {
        self.tokens
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(id)
            .cloned()
    }

    /// Creates a token. Its text is returned only here.
    pub(crate) async fn create(
        &self,
        user: &UserId,
        name: &str,
        scopes: Scopes,
        lifetime: Option<Duration>,
    ) -> Result<(TokenInfo, String), CallError> {
        check_name(name)?;
        let now = Timestamp::now();
        let expires_at = lifetime
            .map(|lifetime| now.checked_add(lifetime))
            .transpose()
            .map_err(|_| {
                CallError::new(
                    ErrorCode::InvalidParams,
                    "the expiry of the token is too far in the future",
                )
            })?;
        let secret = Secret::random()?;
        let (user, name, created_at) = (user.clone(), name.to_owned(), now);
        let info = TokenInfo {
            id: secret.id().to_owned(),
            user,
            name,
            scopes,
            created_at,
            expires_at,
        };
        let token = Arc::new(Token {
            info: info.clone(),
            hash: secret.hash(),
        });
        self.insert(&token).await?;
        self.tokens
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(info.id.clone(), token);
        Ok((info, secret.text()))
    }

    async fn insert(&self, token: &Arc<Token>) -> Result<(), CallError> {
        let row = Arc::clone(token);
        let inserted = self.db.write(move |tx| {
            let Token { info, hash } = row.as_ref();
            let (created, expires) = (info.created_at.to_string(), info.expires_at.map(|at| at.to_string()));
            let scopes = serde_json::to_string(&info.scopes).map_err(DbError::abort)?;
            let user = info.user.as_str();
            tx.execute("insert into users (id, created_at) values (?1, ?2) on conflict do nothing", (user, created.as_str()))?;
            // The name of a revoked token can be used again.
            tx.execute("delete from tokens where user_id = ?1 and name = ?2 and revoked_at is not null", (user, info.name.as_str()))?;
            tx.execute(
                "insert into tokens (id, user_id, name, hash, scopes, created_at, expires_at) values (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                (info.id.as_str(), user, info.name.as_str(), hash.bytes(), scopes.as_str(), created.as_str(), expires.as_deref()),
            )
        });
        match inserted.await {
            Ok(_) => Ok(()),
            Err(DbError::Constraint { .. }) => {
                let message = format!(
                    "user `{}` has a token named `{}` already",
                    token.info.user, token.info.name
                );
                Err(CallError::new(ErrorCode::InvalidParams, message)
                    .hint("revoke that token first, or choose another name"))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Lists the tokens of one user or of all, sorted by user and age. Includes expired tokens.
    pub(crate) fn list(&self, user: Option<&UserId>) -> Vec<TokenInfo> {
        let tokens = self.tokens.read().unwrap_or_else(PoisonError::into_inner);
        let mut list: Vec<TokenInfo> = tokens
            .values()
            .map(|token| token.info.clone())
            .filter(|info| user.is_none_or(|user| info.user == *user))
            .collect();
        // Not sorted by name, because the names of page sessions are generated.
        list.sort_by(|a, b| (&a.user, a.created_at, &a.id).cmp(&(&b.user, b.created_at, &b.id)));
        list
    }

    /// Revokes a token at once. Returns whether `owner` (`None`: any user) had such a token.
    pub(crate) async fn revoke(&self, id: &str, owner: Option<&UserId>) -> Result<bool, CallError> {
        let Some(token) = self
            .get(id)
            .filter(|token| owner.is_none_or(|user| token.info.user == *user))
        else {
            return Ok(false);
        };
        let (id, now) = (token.info.id.clone(), Timestamp::now().to_string());
        self.db
            .write(move |tx| {
                tx.execute(
                    "update tokens set revoked_at = ?2 where id = ?1",
                    (id.as_str(), now.as_str()),
                )
            })
            .await?;
        self.tokens
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&token.info.id);
        Ok(true)
    }

    /// Returns the token of the machine's owner in `file`. Creates the file, readable only by its owner, if it is
    /// missing or its token is no longer valid.
    pub(crate) async fn local_token(&self, file: &Path) -> Result<String, CallError> {
        if let Some(text) = secret::read_file(file)?
            && self.authenticate(&text, Surface::Cli).is_ok()
        {
            return Ok(text);
        }
        let user = UserId::new(LOCAL_USER).expect("a constant name");
        let stale = self
            .list(Some(&user))
            .into_iter()
            .find(|token| token.name == LOCAL_USER);
        if let Some(token) = stale {
            self.revoke(&token.id, None).await?;
        }
        let (_, text) = self.create(&user, LOCAL_USER, Scopes::all(), None).await?;
        secret::write_file(file, &text)?;
        Ok(text)
    }

    /// Creates a one-time code that signs in to the page as this principal.
    pub(crate) fn login_code(&self, who: &Principal) -> Result<String, CallError> {
        self.logins.issue(who.user.clone(), who.scopes.clone())
    }

    /// Exchanges a code for a session token.
    pub(crate) async fn redeem(&self, code: &str) -> Result<(String, Duration), CallError> {
        let (user, scopes) = self.logins.redeem(code).ok_or_else(|| {
            CallError::new(
                ErrorCode::Unauthenticated,
                "the login link has expired or was already used",
            )
            .hint("run `dodona open` to get a new one")
        })?;
        // The name must be unique, and two pages may sign in at the same moment.
        let name = format!("page-{}", secret::random_hex::<6>()?);
        let (_, text) = self.create(&user, &name, scopes, Some(SESSION)).await?;
        Ok((text, SESSION))
    }
}

fn check_name(name: &str) -> Result<(), CallError> {
    let fits = !name.is_empty() && name.len() <= 64 && !name.chars().any(char::is_control);
    if fits {
        Ok(())
    } else {
        Err(CallError::new(
            ErrorCode::InvalidParams,
            "a token name must have 1 to 64 printable characters",
        ))
    }
}

/// A row that this version cannot parse is skipped, so that the hub still starts.
fn read_token(row: &Row<'_>) -> Result<Option<Token>, DbError> {
    let expires: Option<String> = row.get(5)?;
    let read = || -> Option<Token> {
        let info = TokenInfo {
            id: row.text(0).ok()?.to_owned(),
            user: row.text(1).ok()?.parse().ok()?,
            name: row.text(2).ok()?.to_owned(),
            scopes: serde_json::from_str(row.text(3).ok()?).ok()?,
            created_at: row.text(4).ok()?.parse().ok()?,
            expires_at: expires.map(|at| at.parse()).transpose().ok()?,
        };
        Some(Token {
            info,
            hash: SecretHash::from_bytes(row.blob(6).ok()?)?,
        })
    };
    Ok(read())
}
