//! Finding the credential in a request. What it is worth, the hub says.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, header};
use axum::response::Response;
use dodona_hub::PluginHub;
use dodona_proto::{CallError, ErrorCode, Principal, ProjectId, Surface};
use tokio::time::Instant;

use crate::app::App;
use crate::{guard, http};

const COOKIE: &str = "dodona_session";
const PROJECT: &str = "x-dodona-project";
const SURFACE: &str = "x-dodona-surface";

/// How long the word of the hub about a token is good for.
pub(crate) const RENEW: Duration = Duration::from_secs(1);

/// Who makes a request, and about which project.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) principal: Arc<Principal>,
    pub(crate) project: Option<ProjectId>,
    credential: Arc<Credential>,
    /// When the hub was last asked, once somebody wants to know.
    asked_at: Option<Instant>,
}

/// A token, and where it stood.
struct Credential {
    token: String,
    surface: Surface,
}

impl Caller {
    pub(crate) fn find(app: &App, parts: &Parts) -> Result<Self, CallError> {
        Self::with(app, parts, credential(app, parts)?)
    }

    /// The same where the route says what kind of client there is.
    pub(crate) fn find_at(app: &App, parts: &Parts, surface: Surface) -> Result<Self, CallError> {
        let found = credential(app, parts)?;
        Self::with(app, parts, Credential { surface, ..found })
    }

    fn with(app: &App, parts: &Parts, credential: Credential) -> Result<Self, CallError> {
        let principal = Arc::new(
            app.hub
                .authenticate(&credential.token, credential.surface)?,
        );
        let project = parts.headers.get(PROJECT).map(|value| {
            let named = value.to_str().ok().and_then(|text| text.parse().ok());
            named.ok_or_else(|| {
                CallError::new(
                    ErrorCode::NotFound,
                    format!("the header `{PROJECT}` names no project"),
                )
            })
        });
        Ok(Self {
            principal,
            project: project.transpose()?,
            credential: Arc::new(credential),
            asked_at: None,
        })
    }

    /// Asks the hub again: a token may have expired or been revoked since.
    pub(crate) fn renew(&mut self, hub: &PluginHub) -> Result<(), CallError> {
        let principal = hub.authenticate(&self.credential.token, self.credential.surface)?;
        self.asked_at = Some(Instant::now());
        if principal != *self.principal {
            self.principal = Arc::new(principal);
        }
        Ok(())
    }

    /// The same, for those who send all the time.
    pub(crate) fn renew_if_old(&mut self, hub: &PluginHub) -> Result<(), CallError> {
        let asked_at = *self.asked_at.get_or_insert_with(Instant::now);
        match asked_at.elapsed() > RENEW {
            true => self.renew(hub),
            false => Ok(()),
        }
    }

    /// For the few routes that are not methods.
    pub(crate) fn require(&self, scope: &str) -> Result<(), CallError> {
        let scope = scope.parse().map_err(|_| {
            CallError::new(ErrorCode::Internal, "a route asks for a scope that is none")
        })?;
        match self.principal.scopes.allow(&scope) {
            true => Ok(()),
            false => Err(CallError::new(
                ErrorCode::Forbidden,
                format!("the token lacks the scope `{scope}`"),
            )),
        }
    }
}

impl FromRequestParts<Arc<App>> for Caller {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Response> {
        Self::find(app, parts).map_err(|error| http::refusal(&error))
    }
}

/// A bearer token, or the cookie of a page. A browser sends the cookie by itself, so then the
/// request must also show that one of our own pages made it.
fn credential(app: &App, parts: &Parts) -> Result<Credential, CallError> {
    if let Some(value) = parts.headers.get(header::AUTHORIZATION) {
        let token = value
            .to_str()
            .ok()
            .and_then(|value| value.split_once(' '))
            .and_then(|(scheme, token)| scheme.eq_ignore_ascii_case("bearer").then_some(token));
        let token =
            token.ok_or_else(|| missing("the Authorization header is not `Bearer <token>`"))?;
        return Ok(Credential {
            token: token.trim().to_owned(),
            surface: surface(&parts.headers),
        });
    }
    let token = cookie_of(&parts.headers).ok_or_else(|| missing("no token was sent"))?;
    let upgrade = parts.headers.contains_key(header::UPGRADE);
    if (parts.method != Method::GET || upgrade) && !guard::has_own_origin(app, &parts.headers) {
        return Err(CallError::new(
            ErrorCode::Forbidden,
            "a page's session is good only for that page",
        ));
    }
    Ok(Credential {
        token,
        surface: Surface::Web,
    })
}

/// The command line and `dodona mcp` say what they are; that grants nothing, it is told in `hub.calls` and to
/// those who ask who wrote a note.
fn surface(headers: &HeaderMap) -> Surface {
    match headers.get(SURFACE).map(|value| value.as_bytes()) {
        Some(b"cli") => Surface::Cli,
        Some(b"mcp") => Surface::Mcp,
        _ => Surface::Rpc,
    }
}

fn cookie_of(headers: &HeaderMap) -> Option<String> {
    let cookies = headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let mut pairs = cookies
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    pairs
        .find(|(name, _)| *name == COOKIE)
        .map(|(_, token)| token.to_owned())
}

/// The cookie of a page's session.
pub(crate) fn cookie(token: &str, lifetime: Duration) -> String {
    format!(
        "{COOKIE}={token}; HttpOnly; SameSite=Strict; Path=/; Max-Age={}",
        lifetime.as_secs()
    )
}

fn missing(message: &str) -> CallError {
    CallError::new(ErrorCode::Unauthenticated, message)
        .hint("send `Authorization: Bearer <token>`; the local one is in the file `token`")
}
