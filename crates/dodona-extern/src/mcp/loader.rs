//! From the roster or a manifest to a plugin.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use dodona_plugin::activation::Activating;
use dodona_plugin::manifest::Code;
use dodona_plugin::reading::Problem;
use dodona_plugin::{
    ActivationError, BoxFuture, Contribution, Loaded, Loader, Manifest, Outside, OutsideSource,
    Plugin, PluginContext, Settings, schema_hash,
};
use serde_json::json;

use super::address::{Address, Program};
use super::cache::Cache;
use super::config::ServerConfig;
use super::mount::{Mount, Mounting};
use super::process::GuardCommand;
use super::session::Plan;
use super::words;

/// Makes plugins of MCP servers: `module = "mcp:…"`, and manifests with `[process]`.
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
                    },
            } => (
                Address::Program(Program {
                    program: program(path, command),
                    args: args.clone(),
                    directory: Some(path.join(cwd.as_deref().unwrap_or("."))),
                }),
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
        };
        Some(Ok(Loaded {
            plugin: Arc::new(plugin),
            fingerprint,
        }))
    }
}

/// A program of a plugin's directory is named as one (`./server`); others are found on the path.
fn program(directory: &std::path::Path, command: &str) -> String {
    let is_own = command.starts_with("./") || command.starts_with(".\\");
    let path: PathBuf = if is_own {
        directory.join(command)
    } else {
        command.into()
    };
    path.to_string_lossy().into_owned()
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
}

impl McpPlugin {
    async fn mount(&self, ctx: PluginContext) -> Result<Contribution, ActivationError> {
        let config = ServerConfig::read(&ctx.config).map_err(ActivationError::Refused)?;
        let cache = Cache::new(&ctx.data_dir, self.address.to_string());
        let plan = Plan {
            address: self.address.clone(),
            config,
            guard: self.guard.clone(),
            env: self.env.clone(),
            data_dir: ctx.data_dir,
            log: ctx.log,
        };
        let mounting = Mounting {
            plugin: ctx.name,
            plan,
            cache,
            host: ctx.methods,
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

    fn activate(&self, ctx: PluginContext) -> Activating<'_> {
        Box::pin(self.mount(ctx))
    }

    fn deactivate(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            if let Some(mount) = self.put(None) {
                mount.stop().await;
            }
        })
    }
}
