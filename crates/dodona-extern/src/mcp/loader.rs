//! From the roster or a manifest to a plugin.

use std::sync::{Arc, Mutex, PoisonError};

use dodona_plugin::activation::Activating;
use dodona_plugin::manifest::{Code, ProcessProtocol};
use dodona_plugin::reading::Problem;
use dodona_plugin::{
    ActivationError, BoxFuture, Contribution, Loaded, Loader, Manifest, Outside, OutsideSource,
    Plugin, PluginContext, Settings, schema_hash,
};
use serde_json::json;

use super::address::Address;
use super::cache::Cache;
use super::config::ServerConfig;
use super::mount::{self, Mount, Mounting, Opened};
use super::session::Plan;
use super::words;
use crate::child::{GuardCommand, Program};

/// Makes plugins of MCP servers: `module = "mcp:…"`, and manifests whose `[process]` speaks MCP.
#[derive(Debug)]
pub struct McpLoader {
    guard: GuardCommand,
}

impl McpLoader {
    /// A loader whose servers run under a guard.
    pub fn new(guard: GuardCommand) -> Self {
        Self { guard }
    }
}

impl Loader for McpLoader {
    fn load(&self, outside: &Outside) -> Option<Result<Loaded, Vec<Problem>>> {
        let (address, env) = match &outside.source {
            OutsideSource::Mcp(text) => match Address::parse(text) {
                Ok(address) => (address, Vec::new()),
                Err(why) => {
                    let place = format!("module of `{}`", outside.name);
                    return Some(Err(vec![Problem::of_file(place, why)]));
                }
            },
            OutsideSource::Directory {
                path,
                code:
                    Code::Process {
                        command,
                        args,
                        env,
                        cwd,
                        protocol: ProcessProtocol::Mcp,
                    },
            } => (
                Address::Program(Program::in_directory(path, command, args, cwd.as_deref())),
                env.clone().into_iter().collect(),
            ),
            OutsideSource::Directory { .. } => return None,
        };
        let fingerprint = schema_hash(&json!([address.to_string(), env]));
        let plugin = McpPlugin {
            version: outside.manifest.version.to_string(),
            manifest: Arc::clone(&outside.manifest),
            address,
            env,
            guard: self.guard.clone(),
            mount: Mutex::new(None),
            prepared: Mutex::new(None),
        };
        Some(Ok(Loaded {
            plugin: Arc::new(plugin),
            fingerprint,
        }))
    }
}

/// What stands in the roster's `module` for a server: a program and its arguments, or an address.
///
/// # Errors
///
/// If no server can be meant by it; the text says why.
pub fn module_of(words: &[String]) -> Result<String, String> {
    let text = match words {
        [url] if url.contains("://") => url.clone(),
        words => words::join(words.iter().map(String::as_str)),
    };
    Ok(format!("mcp:{}", Address::parse(&text)?))
}

/// An MCP server as a plugin.
pub struct McpPlugin {
    manifest: Arc<Manifest>,
    version: String,
    address: Address,
    env: Vec<(String, String)>,
    guard: GuardCommand,
    mount: Mutex<Option<Arc<Mount>>>,
    /// A server that was started before its activation.
    prepared: Mutex<Option<Opened>>,
}

impl McpPlugin {
    fn plan(&self, ctx: &PluginContext) -> Result<Plan, ActivationError> {
        let config = ServerConfig::read(&ctx.config).map_err(ActivationError::Refused)?;
        Ok(Plan {
            name: self.name().to_owned(),
            address: self.address.clone(),
            config,
            guard: self.guard.clone(),
            env: self.env.clone(),
            data_dir: ctx.data_dir.clone(),
            log: ctx.log.clone(),
        })
    }

    fn cache(&self, ctx: &PluginContext) -> Cache {
        Cache::new(&ctx.data_dir, self.address.to_string())
    }

    async fn open(&self, ctx: PluginContext) -> Result<(), ActivationError> {
        let opened = mount::open(&self.plan(&ctx)?).await;
        let opened = opened.map_err(ActivationError::Refused)?;
        self.cache(&ctx).write(&opened.1);
        self.put_prepared(Some(opened));
        Ok(())
    }

    fn put_prepared(&self, opened: Option<Opened>) -> Option<Opened> {
        let mut prepared = self.prepared.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut prepared, opened)
    }

    async fn mount(&self, ctx: PluginContext) -> Result<Contribution, ActivationError> {
        let mounting = Mounting {
            plan: self.plan(&ctx)?,
            cache: self.cache(&ctx),
            plugin: ctx.name,
            host: ctx.methods,
            opened: self.put_prepared(None),
        };
        let (mount, methods) = Mount::start(mounting)
            .await
            .map_err(ActivationError::Refused)?;
        let before = self.put(Some(Arc::new(mount)));
        if let Some(before) = before {
            before.stop().await;
        }
        Ok(Contribution::new().methods(methods))
    }

    fn put(&self, mount: Option<Arc<Mount>>) -> Option<Arc<Mount>> {
        let mut current = self.mount.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut current, mount)
    }
}

impl Plugin for McpPlugin {
    fn name(&self) -> &str {
        self.manifest.id.as_str()
    }

    fn version(&self) -> &str {
        &self.version
    }

    fn description(&self) -> &str {
        &self.manifest.description
    }

    fn settings(&self) -> Settings {
        self.manifest.settings.clone()
    }

    /// A server that was never started has to be, to know what it offers.
    fn needs_preparation(&self, ctx: &PluginContext) -> bool {
        self.cache(ctx).read().is_none()
    }

    fn prepare(&self, ctx: PluginContext) -> BoxFuture<'_, Result<(), ActivationError>> {
        Box::pin(self.open(ctx))
    }

    fn activate(&self, ctx: PluginContext) -> Activating<'_> {
        Box::pin(self.mount(ctx))
    }

    fn deactivate(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            if let Some((session, _)) = self.put_prepared(None) {
                session.close().await;
            }
            if let Some(mount) = self.put(None) {
                mount.stop().await;
            }
        })
    }
}
