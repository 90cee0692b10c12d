//! The plugin.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dodona_plugin::activation::Activating;
use dodona_plugin::{BoxFuture, Contribution, Plugin, PluginContext, RuleRefresh};

use crate::analysis::RuleAnalysis;
use crate::editor::RuleEditor;
use crate::engine::{EngineHandle, RuleEngine, RuleStore, hooks};
use crate::identity::STANDALONE;
use crate::log::{Log, MIGRATIONS};
use crate::methods::RuleMethods;

/// Options of the plugin.
#[derive(Debug, Clone, Default)]
pub struct RulesOptions {
    /// The directory of the user's rules.
    pub rules: Option<PathBuf>,
    /// The user's `config.toml`, whose `[settings]` rules can read.
    pub config: Option<PathBuf>,
}

#[derive(Default)]
pub struct RulesPlugin {
    options: RulesOptions,
    /// Set while the plugin is active.
    running: Mutex<Option<Running>>,
}

struct Running {
    engine: Arc<RuleEngine>,
    /// Kept here because the hub holds it weakly.
    _handle: Arc<dyn RuleRefresh>,
}

impl RulesPlugin {
    pub fn new(options: RulesOptions) -> Self {
        Self {
            options,
            running: Mutex::default(),
        }
    }

    fn running(&self) -> MutexGuard<'_, Option<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Plugin for RulesPlugin {
    fn name(&self) -> &'static str {
        STANDALONE
    }

    fn version(&self) -> &'static str {
        "0.1.0"
    }

    fn description(&self) -> &'static str {
        "Evaluates rules in TOML: approvals, limits, notices and logs."
    }

    /// Core rules cannot be disabled, so the plugin cannot be disabled either.
    fn is_essential(&self) -> bool {
        true
    }

    fn activate(&self, ctx: PluginContext) -> Activating<'_> {
        Box::pin(async move {
            let versions = ctx.data_dir.join("versions");
            let files = (self.options.rules.clone(), self.options.config.clone());
            let store = RuleStore::new(files, versions, Arc::clone(&ctx.rules));
            let log = Log::new(ctx.db.clone(), ctx.redactor.clone());
            let engine = RuleEngine::new(
                Arc::clone(&store),
                Arc::clone(&ctx.rules),
                Arc::clone(&ctx.system.event_bus),
                Arc::clone(&log),
            );
            let handle: Arc<dyn RuleRefresh> = Arc::new(EngineHandle(Arc::downgrade(&engine)));
            ctx.rules.register(Arc::downgrade(&handle));
            let methods = Arc::new(RuleMethods::new(Arc::clone(&engine)));
            let analysis = RuleAnalysis::new(Arc::clone(&engine), Arc::clone(&ctx.history));
            let editor = RuleEditor::new(Arc::clone(&engine), self.options.rules.clone());
            let contribution = Contribution::new()
                .methods(methods.plugin_methods()?)
                .methods(Arc::new(analysis).plugin_methods()?)
                .methods(Arc::new(editor).plugin_methods()?)
                .migrations(MIGRATIONS);
            let contribution = hooks(&engine)
                .into_iter()
                .fold(contribution, Contribution::hook);
            store.spawn_watch();
            log.spawn_writer();
            *self.running() = Some(Running {
                engine,
                _handle: handle,
            });
            Ok(contribution)
        })
    }

    /// Writes pending log entries. Sessions that end after this are logged on deactivation.
    fn before_stop(&self) -> BoxFuture<'_, ()> {
        let engine = self
            .running()
            .as_ref()
            .map(|running| Arc::clone(&running.engine));
        Box::pin(async {
            if let Some(engine) = engine {
                engine.log.flush().await;
            }
        })
    }

    fn deactivate(&self) -> BoxFuture<'_, ()> {
        let running = self.running().take();
        Box::pin(async {
            if let Some(Running { engine, .. }) = running {
                engine.log.flush().await;
            }
        })
    }
}
