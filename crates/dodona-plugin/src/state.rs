//! What a plugin remembers for a user in a project.

use std::sync::Arc;

use dodona_proto::{CallError, PluginName, ProjectId, UserId};
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{CallInfo, ErrorCode};

/// Whose values: of one user, in one project or in none, and of one plugin.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StateOwner {
    /// The user it belongs to.
    pub user: UserId,
    /// The project, where the call was about one.
    pub project: Option<ProjectId>,
    /// The plugin it belongs to.
    pub plugin: PluginName,
}

/// What keeps the values. The hub implements it.
pub trait StateBackend: Send + Sync {
    /// The value of a key.
    fn get<'a>(
        &'a self,
        owner: &'a StateOwner,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<Value>, CallError>>;

    /// Sets a key, and answers with the owner's new version.
    fn set<'a>(
        &'a self,
        owner: &'a StateOwner,
        key: &'a str,
        value: Value,
    ) -> BoxFuture<'a, Result<u64, CallError>>;

    /// Removes a key and returns whether it existed.
    fn delete<'a>(
        &'a self,
        owner: &'a StateOwner,
        key: &'a str,
    ) -> BoxFuture<'a, Result<bool, CallError>>;

    /// The keys that begin with a text, literally, and their values, by key.
    fn list<'a>(
        &'a self,
        owner: &'a StateOwner,
        prefix: &'a str,
    ) -> BoxFuture<'a, Result<Vec<(String, Value)>, CallError>>;

    /// Deletes all values of a plugin, of every user and project. Returns how many there were.
    fn delete_all<'a>(&'a self, plugin: &'a PluginName) -> BoxFuture<'a, Result<u64, CallError>>;

    /// How often the owner's values have changed. It only ever grows.
    fn version<'a>(&'a self, owner: &'a StateOwner) -> BoxFuture<'a, Result<u64, CallError>>;

    /// All of an owner's values at once. What did not change since is answered from memory.
    fn snapshot<'a>(
        &'a self,
        owner: &'a StateOwner,
    ) -> BoxFuture<'a, Result<StateSnapshot, CallError>>;
}

/// All values of an owner at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct StateSnapshot {
    /// An object: the values by key.
    pub values: Arc<Value>,
    /// How often they have changed.
    pub version: u64,
}

/// A plugin's way to its values. Cheap to clone.
#[derive(Clone)]
pub struct StateStore {
    plugin: PluginName,
    backend: Arc<dyn StateBackend>,
}

impl StateStore {
    /// The values of one plugin.
    pub fn new(plugin: PluginName, backend: Arc<dyn StateBackend>) -> Self {
        Self { plugin, backend }
    }

    /// The values for the user and the project of a call.
    pub fn of(&self, call: &CallInfo) -> State {
        let project = call.project.as_ref().map(|project| project.id.clone());
        self.for_user(call.principal.user.clone(), project)
    }

    /// The values for a user in a project.
    pub fn for_user(&self, user: UserId, project: Option<ProjectId>) -> State {
        let owner = StateOwner {
            user,
            project,
            plugin: self.plugin.clone(),
        };
        let backend = Arc::clone(&self.backend);
        State { owner, backend }
    }
}

/// The values of a plugin for one user in one project: at most 10 000, each at most 64 KiB of
/// JSON.
#[derive(Clone)]
pub struct State {
    owner: StateOwner,
    backend: Arc<dyn StateBackend>,
}

impl State {
    /// User, project and plugin of the values.
    pub fn owner(&self) -> &StateOwner {
        &self.owner
    }

    /// The value of a key, read as a type.
    pub async fn get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, CallError> {
        let Some(value) = self.backend.get(&self.owner, key).await? else {
            return Ok(None);
        };
        serde_json::from_value(value).map(Some).map_err(|error| {
            let message = format!("the value of `{key}` is of another type");
            CallError::new(ErrorCode::Internal, message).log(error)
        })
    }

    /// Sets a key, and answers with the new version.
    pub async fn set(&self, key: &str, value: impl Serialize) -> Result<u64, CallError> {
        let value = serde_json::to_value(value).map_err(|error| {
            let message = format!("the value of `{key}` cannot be written as JSON");
            CallError::new(ErrorCode::Internal, message).log(error)
        })?;
        self.backend.set(&self.owner, key, value).await
    }

    /// Removes a key and returns whether it existed.
    pub async fn delete(&self, key: &str) -> Result<bool, CallError> {
        self.backend.delete(&self.owner, key).await
    }

    /// The keys that begin with a text, literally, and their values, by key.
    pub async fn list(&self, prefix: &str) -> Result<Vec<(String, Value)>, CallError> {
        self.backend.list(&self.owner, prefix).await
    }

    /// How often the values have changed. It only ever grows.
    pub async fn version(&self) -> Result<u64, CallError> {
        self.backend.version(&self.owner).await
    }
}
