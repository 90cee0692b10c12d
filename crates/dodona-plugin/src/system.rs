//! Services that all plugins share.

use std::sync::Arc;

use dodona_http::HttpClient;
use dodona_proto::{CallError, ErrorCode, Scope};
use serde_json::{Map, Value};

use crate::activation::EventBus;
use crate::call::CallInfo;
use crate::capability::Capabilities;
use crate::telemetry::Telemetry;

/// Services that all plugins share, each as one plugin may use it. Part of the
/// [`PluginContext`](crate::PluginContext).
pub struct SystemContext {
    /// The user's `config.toml`. A copy: changing it changes nothing.
    #[doc(alias = "global_config")]
    pub config: Arc<Map<String, Value>>,
    /// Publishes events and subscribes to them.
    pub event_bus: Arc<dyn EventBus>,
    /// HTTP requests to the public network. A plugin from outside the program reaches only hosts that
    /// it is granted as `net:HOST`.
    pub http_client: HttpClient,
    /// Counters, latencies and spans under the plugin's name.
    pub telemetry: Telemetry,
    /// What the plugin and its callers may do.
    pub auth: AuthContext,
}

/// What a plugin and its callers may do.
#[derive(Debug, Clone)]
pub struct AuthContext {
    capabilities: Capabilities,
}

impl AuthContext {
    /// With what the plugin is granted. The hub creates it.
    pub fn new(capabilities: Capabilities) -> Self {
        Self { capabilities }
    }

    /// What the plugin itself is granted.
    pub fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// Checks that the caller's token has a scope, for a method whose parameters decide what it
    /// needs. The scope of the method itself was checked before the call began.
    ///
    /// # Errors
    ///
    /// `auth.forbidden` if the token lacks it, `rpc.internal_error` if the text is not a scope.
    pub fn authorize(&self, call: &CallInfo, scope: &str) -> Result<(), CallError> {
        let asked: Scope = scope.parse().map_err(|error| {
            let message = format!("`{scope}` is not a scope");
            CallError::new(ErrorCode::Internal, message).log(error)
        })?;
        if call.principal.scopes.allow(&asked) {
            return Ok(());
        }
        let message = format!("permission denied: the token lacks scope `{scope}`");
        let hint =
            format!("create a token with this scope: dodona token create NAME --scope {scope}");
        Err(CallError::new(ErrorCode::Forbidden, message).hint(hint))
    }
}
