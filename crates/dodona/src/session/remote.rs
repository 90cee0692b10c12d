//! A hub in another process.

use std::fs;

use dodona_proto::{CallError, ErrorCode, ProjectId};
use dodona_server::client::{Client, RemoteStream};
use serde_json::Value;

use super::Ask;
use crate::home::Home;
use crate::owner::OwnerNote;

/// A connection to the server that owns the home.
pub(super) struct Remote {
    client: Client,
    owner: OwnerNote,
    token: String,
}

impl Remote {
    pub(super) async fn connect(home: &Home, owner: &OwnerNote) -> Result<Self, CallError> {
        let token = fs::read_to_string(&home.token).map_err(|error| {
            let message = format!("could not read the token file `{}`", home.token.display());
            CallError::new(ErrorCode::Unauthenticated, message)
                .hint("the server creates it when it starts: restart `dodona serve`")
                .log(error)
        })?;
        let token = token.trim().to_owned();
        let url = owner.url.as_deref().unwrap_or_default();
        let client = Client::connect(url, &token, None).await?;
        Ok(Self {
            client,
            owner: owner.clone(),
            token,
        })
    }

    /// Makes everything from now on be about a project.
    pub(super) async fn about(&mut self, project: &ProjectId) -> Result<(), CallError> {
        self.client = Client::connect(self.url(), &self.token, Some(project)).await?;
        Ok(())
    }

    pub(super) fn url(&self) -> &str {
        self.owner.url.as_deref().unwrap_or_default()
    }

    /// The process that serves.
    pub(super) fn owner(&self) -> &OwnerNote {
        &self.owner
    }

    /// A time bound needs a call that can be stopped by its name, which one that is watched has.
    pub(super) async fn call(&self, ask: Ask) -> Result<Value, CallError> {
        match ask.timeout {
            None => self.client.call(&ask.method, ask.params).await,
            Some(_) => self.open(ask).await?.result().await,
        }
    }

    pub(super) async fn open(&self, ask: Ask) -> Result<RemoteStream, CallError> {
        self.client.open(&ask.method, ask.params, ask.timeout).await
    }
}
