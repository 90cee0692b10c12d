//! The plugins of this binary.

use std::ffi::OsString;
use std::sync::{Arc, OnceLock};

use dodona_agent::AgentOptions;
use dodona_extern::GuardCommand;
use dodona_extern::luau::LuauLoader;
use dodona_extern::mcp::McpLoader;
use dodona_extern::process::ProcessLoader;
use dodona_hub::echo::EchoPlugin;
use dodona_hub::events::EventsPlugin;
use dodona_knowledge::{FileAccess, Options, VaultRoot};
use dodona_llm::{Embedder, Models, process_environment};
use dodona_plugin::{Loaders, Plugin};
use dodona_proto::{CallError, ErrorCode};
use dodona_rules::{RulesOptions, RulesPlugin};

use crate::cli::models::StoredModels;
use crate::config::{self, Settings};
use crate::home::Home;
use crate::privacy;

/// The plugins that the program's `main` adds; the same for the whole process.
static ADDED: OnceLock<Vec<Arc<dyn Plugin>>> = OnceLock::new();

/// Adds plugins to the built-in ones. Called once, before the first command.
pub(crate) fn add(plugins: Vec<Arc<dyn Plugin>>) {
    let _ = ADDED.set(plugins);
}

/// Every plugin, in no particular order. The hub brings its own, `hub`.
pub(crate) fn all(home: &Home, settings: &Settings) -> Vec<Arc<dyn Plugin>> {
    let mut all = dodona_knowledge::plugins(Options {
        vault_root: vault_root(home),
        embedder: embedder(settings),
        web: settings.web.clone(),
        files: FileAccess::new(&home.private(), &settings.files_allow),
    });
    all.extend(dodona_agent::plugins(agent(home, settings)));
    all.push(Arc::new(RulesPlugin::new(RulesOptions {
        rules: Some(home.config.join("rules")),
        config: Some(home.config_file()),
    })));
    all.push(Arc::new(EventsPlugin));
    all.push(Arc::new(EchoPlugin::default()));
    all.extend(ADDED.get().into_iter().flatten().cloned());
    all
}

/// The word that makes this program the guard of an MCP server.
const GUARD: &str = "child-guard";

/// The file mode mask and the command to guard, where this program was started as a guard. That is not
/// a command of the command line: it is not listed, and nothing of the program is set up for it.
pub(crate) fn guarded_command(words: &[OsString]) -> Option<(u32, &[OsString])> {
    match words {
        [_, guard, mask, dashes, command @ ..] if guard == GUARD && dashes == "--" => {
            let mask = u32::from_str_radix(mask.to_str()?, 8).ok()?;
            Some((mask, command))
        }
        _ => None,
    }
}

/// Who makes plugins of what is outside the program.
pub(crate) fn loaders() -> Loaders {
    let mask = format!("{:o}", privacy::inherited_mask());
    let guard = GuardCommand::this_program([OsString::from(GUARD), mask.into()]);
    Loaders::new()
        .with(Arc::new(LuauLoader::new()))
        .with(Arc::new(ProcessLoader::new(guard.clone())))
        .with(Arc::new(McpLoader::new(guard)))
}

/// Reads a project's own settings each time it is asked, because the project's files change
/// while a server runs.
fn vault_root(home: &Home) -> VaultRoot {
    let user = home.config_file();
    Arc::new(
        move |root| match config::load_with_project(&user, Some(root)) {
            Ok((settings, _)) => Ok(settings.project.vault_root),
            Err(error) => Err(CallError::new(ErrorCode::InvalidRequest, error.to_string())
                .hint("correct the file; until then the project cannot be searched")),
        },
    )
}

/// How the agent is set up. A model whose settings are wrong is told about, and says so when it
/// is asked.
fn agent(home: &Home, settings: &Settings) -> AgentOptions {
    let (models, problems) = Models::from_config(
        &settings.models,
        settings.agent.model.as_deref(),
        &process_environment(),
    );
    for problem in problems {
        tracing::error!(model = problem.model, error = %problem.error, "a model cannot be used");
    }
    AgentOptions {
        model_settings: Some(Arc::new(StoredModels::new(home.clone(), models.clone()))),
        models,
        prompts: Some(home.config.join("prompts")),
        agents: Some(home.config.join("agents")),
        agent_models: settings.agent.models.clone(),
        max_turns: settings.agent.max_turns,
        token_budget: settings.agent.token_budget.map(u64::from),
        tool_timeout: settings.agent.tool_timeout,
        tools_limit: settings.agent.tools_limit as usize,
        preload: settings.agent.preload,
        keep_turns: settings.agent.keep_turns,
        summarizer: settings.agent.summarizer.clone(),
        session_idle: settings.agent.session_idle,
    }
}

/// What turns passages into vectors. One that cannot be used is told about, and search does
/// without.
fn embedder(settings: &Settings) -> Option<Arc<Embedder>> {
    let config = settings.embeddings.as_ref()?;
    match Embedder::from_config(config, process_environment()) {
        Ok(embedder) => Some(Arc::new(embedder)),
        Err(error) => {
            tracing::error!(%error, "the setting `embeddings` cannot be used; words alone decide");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use dodona_hub::{HubConfig, LOCAL_USER, PluginHub};
    use dodona_proto::{PluginState, Principal, Scopes, Surface, UserId};
    use serde_json::json;

    #[tokio::test]
    async fn the_openrpc_document_is_the_one_that_is_checked_in() {
        let folder = tempfile::tempdir().unwrap();
        let home = super::Home::below(folder.path()).unwrap();
        let hub = PluginHub::start(
            &home.data,
            HubConfig::default(),
            super::all(&home, &super::Settings::default()),
        )
        .await
        .unwrap();
        assert!(
            hub.plugins()
                .iter()
                .all(|plugin| plugin.state == PluginState::Active)
        );
        let user = UserId::new(LOCAL_USER).unwrap();
        let owner = Principal {
            user,
            scopes: Scopes::all(),
            surface: Surface::Cli,
        };
        let mut document = dodona_server::openrpc_document(&hub.methods(&owner));
        document["info"]["version"] = json!("0.0.0");
        let text = format!("{document:#}\n");
        let artefact =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/openrpc.json");
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&artefact, &text).unwrap();
        }
        let stored = std::fs::read_to_string(&artefact).unwrap();
        assert!(
            stored == text,
            "docs/reference/openrpc.json is old; run `UPDATE=1 cargo test -p dodona --lib openrpc`"
        );
        hub.stop(Duration::from_secs(1)).await;
    }
}
