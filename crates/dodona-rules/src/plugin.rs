//! The plugin.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dodona_plugin::activation::Activating;
use dodona_plugin::{BoxFuture, Contribution, Plugin, PluginContext, RuleRefresh};

use crate::desk::Desk;
use crate::identity::STANDALONE;
use crate::live::{EngineLink, Live, Rulebook, hooks};
use crate::log::{Log, MIGRATIONS};
use crate::methods::RuleMethods;
use crate::workbench::Workbench;

/// What the plugin is told by whoever starts it.
#[derive(Debug, Clone, Default)]
pub struct RulesOptions {
    /// Where the user keeps rules.
    pub rules: Option<PathBuf>,
    /// The user's `config.toml`, whose `[settings]` rules can read.
    pub config: Option<PathBuf>,
}

/// The plugin `rules`.
#[derive(Default)]
pub struct RulesPlugin {
    options: RulesOptions,
    /// There while it is active.
    live: Mutex<Option<Running>>,
}

/// What lives as long as the plugin is active.
struct Running {
    live: Arc<Live>,
    /// The host holds it weakly.
    _link: Arc<dyn RuleRefresh>,
}

impl RulesPlugin {
    /// The plugin with the user's rules.
    pub fn new(options: RulesOptions) -> Self {
        Self {
            options,
            live: Mutex::default(),
        }
    }

    fn live(&self) -> MutexGuard<'_, Option<Running>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Core rules cannot be switched off, and so not with all the others either.
    fn is_essential(&self) -> bool {
        true
    }

    fn activate(&self, ctx: PluginContext) -> Activating<'_> {
        Box::pin(async move {
            let versions = ctx.data_dir.join("versions");
            let files = (self.options.rules.clone(), self.options.config.clone());
            let book = Rulebook::new(files, versions, Arc::clone(&ctx.rules));
            let log = Log::new(ctx.db.clone(), ctx.redactor.clone());
            let live = Live::new(
                Arc::clone(&book),
                Arc::clone(&ctx.rules),
                Arc::clone(&ctx.system.event_bus),
                Arc::clone(&log),
            );
            let link: Arc<dyn RuleRefresh> = Arc::new(EngineLink(Arc::downgrade(&live)));
            ctx.rules.register(Arc::downgrade(&link));
            let methods = Arc::new(RuleMethods::new(Arc::clone(&live)));
            let workbench = Workbench::new(Arc::clone(&live), Arc::clone(&ctx.history));
            let desk = Desk::new(Arc::clone(&live), self.options.rules.clone());
            let contribution = Contribution::new()
                .methods(methods.plugin_methods()?)
                .methods(Arc::new(workbench).plugin_methods()?)
                .methods(Arc::new(desk).plugin_methods()?)
                .migrations(MIGRATIONS);
            let contribution = hooks(&live)
                .into_iter()
                .fold(contribution, Contribution::hook);
            book.watch();
            log.keep_writing();
            *self.live() = Some(Running { live, _link: link });
            Ok(contribution)
        })
    }

    /// Notes that wait are written. The last sessions may end after this, and are noted when it is
    /// let go.
    fn before_stop(&self) -> BoxFuture<'_, ()> {
        let live = self
            .live()
            .as_ref()
            .map(|running| Arc::clone(&running.live));
        Box::pin(async {
            if let Some(live) = live {
                live.log.flush().await;
            }
        })
    }

    fn deactivate(&self) -> BoxFuture<'_, ()> {
        let running = self.live().take();
        Box::pin(async {
            if let Some(Running { live, .. }) = running {
                live.log.flush().await;
            }
        })
    }
}
