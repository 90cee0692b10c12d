//! A process as a plugin.

use std::sync::{Arc, Mutex, PoisonError};

use dodona_plugin::activation::Activating;
use dodona_plugin::store::Migration;
use dodona_plugin::{
    ActivationError, BoxFuture, Contribution, Manifest, Plugin, PluginContext, Settings,
};
use serde_json::json;

use super::config::ProcessConfig;
use super::declared::Brought;
use super::event::event_handler;
use super::hook::hook;
use super::host::Host;
use super::method::method;
use super::peer::Limits;
use super::runner::{Plan, Runner};
use crate::child::{GuardCommand, Program};
use crate::services::Services;

/// What the hub activates for a directory with a process.
pub(super) struct ProcessPlugin {
    manifest: Arc<Manifest>,
    version: String,
    program: Program,
    env: Vec<(String, String)>,
    guard: GuardCommand,
    brought: Brought,
    concurrency: u32,
    migrations: Vec<Migration>,
    running: Mutex<Option<Running>>,
}

/// What an activation holds.
#[derive(Clone)]
struct Running {
    runner: Arc<Runner>,
    host: Arc<Host>,
}

impl ProcessPlugin {
    pub(super) fn new(
        manifest: Arc<Manifest>,
        program: Program,
        env: Vec<(String, String)>,
        guard: GuardCommand,
        brought: Brought,
        concurrency: u32,
        migrations: Vec<Migration>,
    ) -> Self {
        Self {
            version: manifest.version.to_string(),
            manifest,
            program,
            env,
            guard,
            brought,
            concurrency,
            migrations,
            running: Mutex::new(None),
        }
    }

    fn put(&self, running: Option<Running>) -> Option<Running> {
        let mut current = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut current, running)
    }

    async fn start(&self, ctx: PluginContext) -> Result<Contribution, String> {
        let config = ProcessConfig::read(&ctx.config)?;
        let services = Services::new(&ctx);
        let host = Arc::new(Host::new(services.clone(), ctx.log.clone()));
        std::fs::create_dir_all(&ctx.data_dir)
            .map_err(|error| format!("could not create {}: {error}", ctx.data_dir.display()))?;
        // A bytecode cache next to the program would change what a project's owner trusted.
        let mut env = vec![("PYTHONDONTWRITEBYTECODE".to_owned(), "1".to_owned())];
        env.extend(self.env.iter().cloned());
        env.extend(config.variables()?);
        let plan = Plan {
            program: self.program.clone(),
            guard: self.guard.clone(),
            env,
            data_dir: ctx.data_dir.clone(),
            start_timeout: config.start_timeout,
            limits: Limits {
                concurrency: self.concurrency as usize,
                max_message: config.max_message,
            },
            host: Arc::clone(&host),
            log: ctx.log.clone(),
            greeting: json!({
                "plugin": ctx.name,
                "version": self.version,
                "settings": ctx.settings.values(),
                "data_dir": ctx.data_dir,
                "project": ctx.project,
            }),
        };
        let runner = Arc::new(Runner::start(plan).await?);
        let running = Running {
            runner: Arc::clone(&runner),
            host,
        };
        if let Some(before) = self.put(Some(running)) {
            before.runner.stop().await;
        }
        let mut contribution = Contribution::new().migrations(self.migrations.clone());
        for descriptor in &self.brought.methods {
            let method = method(&runner, &services, descriptor.clone(), config.timeout)?;
            contribution = contribution.methods([method]);
        }
        for (point, spec) in &self.brought.hooks {
            contribution = contribution.hook(hook(&runner, &services, *point, spec.clone())?);
        }
        for spec in &self.brought.events {
            contribution = contribution.on_event(event_handler(&runner, &services, spec)?);
        }
        Ok(contribution)
    }
}

impl Plugin for ProcessPlugin {
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

    /// Waits for the process: a gate must be there before the first call, and not some time later.
    fn activate(&self, ctx: PluginContext) -> Activating<'_> {
        Box::pin(async { self.start(ctx).await.map_err(ActivationError::Refused) })
    }

    fn recover(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(running) = running.as_ref() {
                running.host.ready();
            }
        })
    }

    fn deactivate(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            if let Some(running) = self.put(None) {
                running.runner.stop().await;
            }
        })
    }
}
