//! `agent.list`, `agent.describe`, `agent.define` and `agent.delete`: definitions of agents.

use dodona_plugin::reading::Problem;
use dodona_plugin::{CallCtx, CallError, TrustedFolder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agent::Agent;
use crate::conversation::DEFAULT_AGENT;
use crate::definition::{
    Definition, DefinitionSource, KnownTools, NewDefinition, invalid_definition,
};
use crate::prompt::ORACLE;

/// What the main agent is for.
const ORACLE_DESCRIPTION: &str = "The main agent. Answers questions about the project with citations, and delegates to the others.";

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListParams {
    /// List only agents whose name or description contains this text, in any case.
    #[schemars(length(max = 256))]
    filter: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct ListResult {
    /// The agents: `oracle` first, the others by name.
    agents: Vec<AgentInfo>,
    /// Files that define no agent, tools that do not exist or are out of scope, models that do not
    /// exist.
    problems: Vec<Problem>,
}

/// An agent that `agent.chat` can address.
#[derive(Serialize, JsonSchema)]
struct AgentInfo {
    /// The name, which is the `agent_id` of other methods.
    name: String,
    description: String,
    /// Where it is defined; absent for `oracle`, which is part of the program.
    source: Option<DefinitionSource>,
    /// The file of the definition.
    path: Option<String>,
    /// The tools that its definition names. Absent for `oracle`, which gets every tool in whose
    /// scope it is.
    allowed_tools: Option<Vec<String>>,
    /// Tools that it may use although their scope does not include it.
    extra_tools: Vec<String>,
    /// The tools that it can use now.
    tools: Vec<String>,
    /// How many requests to a model one query may take.
    max_turns: u32,
    /// The model that answers, where that is not the default one.
    model_override: Option<String>,
    /// The token budget of its new conversations.
    token_budget: Option<u64>,
}

/// Everything that is needed to describe agents.
struct Catalogue<'a> {
    agent: &'a Agent,
    tools: KnownTools,
}

impl Catalogue<'_> {
    fn main(&self) -> AgentInfo {
        let options = &self.agent.options;
        AgentInfo {
            name: DEFAULT_AGENT.to_owned(),
            description: ORACLE_DESCRIPTION.to_owned(),
            source: None,
            path: None,
            allowed_tools: None,
            extra_tools: Vec::new(),
            tools: self.tools.in_scope_of(DEFAULT_AGENT),
            max_turns: options.max_turns,
            model_override: None,
            token_budget: options.token_budget,
        }
    }

    fn defined(&self, definition: &Definition) -> AgentInfo {
        let options = &self.agent.options;
        AgentInfo {
            name: definition.name.clone(),
            description: definition.description.clone(),
            source: Some(definition.source),
            path: match definition.source {
                DefinitionSource::Bundled => None,
                _ => Some(definition.path.clone()),
            },
            allowed_tools: Some(definition.allowed_tools.iter().cloned().collect()),
            extra_tools: definition.extra_tools.iter().cloned().collect(),
            tools: self.tools.usable(definition),
            max_turns: definition.max_turns,
            model_override: definition.model.clone(),
            token_budget: definition.token_budget.or(options.token_budget),
        }
    }

    /// Tools and models of a definition that do not exist here.
    fn problems(&self, definition: &Definition) -> Vec<Problem> {
        let mut problems = definition.tool_problems(&self.tools);
        let model = definition.model.as_deref();
        if let Some(Err(error)) = model.map(|model| self.agent.model(Some(model))) {
            let mut problem = Problem::of_file(&definition.path, error.message.clone());
            problem.hint = error.hint_text().map(str::to_owned);
            problems.push(problem);
        }
        problems
    }
}

fn catalogue<'a>(agent: &'a Agent, ctx: &CallCtx) -> Catalogue<'a> {
    Catalogue {
        agent,
        tools: KnownTools::of(&ctx.methods()),
    }
}

pub(crate) async fn list(agent: &Agent, ctx: &CallCtx, p: ListParams) -> ListResult {
    let project = agent.brought(ctx, TrustedFolder::Agents).await;
    let (all, mut problems) = agent.definitions.load(&project);
    if let Some(refused) = &project.refused {
        problems.push(Problem::of_file(".dodona/agents", refused.clone()));
    }
    let catalogue = catalogue(agent, ctx);
    problems.extend(all.values().flat_map(|one| catalogue.problems(one)));
    let wanted = p.filter.unwrap_or_default().to_lowercase();
    let fits = |info: &AgentInfo| {
        let texts = [&info.name, &info.description];
        texts
            .iter()
            .any(|text| text.to_lowercase().contains(&wanted))
    };
    let defined = all.values().map(|definition| catalogue.defined(definition));
    let agents = std::iter::once(catalogue.main()).chain(defined);
    ListResult {
        agents: agents.filter(fits).collect(),
        problems,
    }
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct AgentParams {
    /// The name of the agent.
    #[schemars(length(min = 1, max = 50))]
    agent_id: String,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct DescribeResult {
    agent: AgentInfo,
    /// The prompt template, before its variables are filled in.
    system_prompt: String,
    /// Tools and models of the definition that do not exist, and tools that are out of scope.
    problems: Vec<Problem>,
}

pub(crate) async fn describe(
    agent: &Agent,
    ctx: &CallCtx,
    p: AgentParams,
) -> Result<DescribeResult, CallError> {
    let catalogue = catalogue(agent, ctx);
    if p.agent_id == DEFAULT_AGENT {
        let project = agent.brought(ctx, TrustedFolder::Prompts).await;
        return Ok(DescribeResult {
            agent: catalogue.main(),
            system_prompt: agent.prompts.source(ORACLE, &project)?,
            problems: Vec::new(),
        });
    }
    let project = agent.brought(ctx, TrustedFolder::Agents).await;
    let definition = agent.definitions.get(&p.agent_id, &project)?;
    Ok(DescribeResult {
        agent: catalogue.defined(&definition),
        system_prompt: definition.prompt_text().to_owned(),
        problems: catalogue.problems(&definition),
    })
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct DefineParams {
    /// The name of the agent: lower-case letters, digits, `_` and `-`.
    #[schemars(length(min = 1, max = 50))]
    agent_id: String,
    /// What it is for. The main agent reads this when it chooses whom to delegate to.
    #[serde(default)]
    #[schemars(length(max = 1000))]
    description: String,
    /// The prompt: a template with the variables `agent`, `project` and `decisions`.
    #[schemars(length(min = 1, max = 262_144))]
    system_prompt: String,
    /// The tools that it may use, such as `vault_read`. The scope of each must include the agent.
    #[schemars(length(max = 1000))]
    allowed_tools: Vec<String>,
    /// Further tools that it may use although their scope does not include it.
    #[serde(default)]
    #[schemars(length(max = 1000))]
    extra_tools: Vec<String>,
    /// How many requests to a model one query may take.
    #[serde(default = "ten")]
    #[schemars(range(min = 1, max = 100))]
    max_turns: u32,
    /// The model that answers, by its name in the configuration. Default: the default model.
    #[schemars(length(min = 1, max = 64))]
    model_override: Option<String>,
    /// The token budget of its conversations. Default: `agent.token_budget`.
    #[schemars(range(min = 4000, max = 128_000))]
    token_budget: Option<u64>,
    /// Replace your definition of the same name. Without it an existing one is an error.
    #[serde(default)]
    replace: bool,
}

fn ten() -> u32 {
    10
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct DefineResult {
    agent_id: String,
    /// The file that was written.
    path: String,
    /// Whether it replaced an earlier definition of yours.
    replaced: bool,
    /// The tools that the agent can use now.
    tools: Vec<String>,
}

pub(crate) async fn define(
    agent: &Agent,
    ctx: &CallCtx,
    p: DefineParams,
) -> Result<DefineResult, CallError> {
    let new = NewDefinition {
        name: p.agent_id,
        description: p.description,
        allowed_tools: p.allowed_tools,
        extra_tools: p.extra_tools,
        max_turns: p.max_turns,
        model_override: p.model_override,
        token_budget: p.token_budget,
        system_prompt: p.system_prompt,
    };
    let (definition, text) = new.checked()?;
    let catalogue = catalogue(agent, ctx);
    let problems = catalogue.problems(&definition);
    if !problems.is_empty() {
        return Err(invalid_definition(&new.name, &problems));
    }
    let (definitions, name) = (agent.definitions.clone(), new.name.clone());
    let written = on_a_thread(move || definitions.write(&name, &text, p.replace)).await?;
    Ok(DefineResult {
        agent_id: new.name,
        path: written.path,
        replaced: written.replaced,
        tools: catalogue.tools.usable(&definition),
    })
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct DeleteResult {
    agent_id: String,
    /// The file that was deleted.
    path: String,
    /// The prompt file that the definition named. It was not deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_path: Option<String>,
    /// Whether the bundled agent of the same name is in use again.
    restored_bundled: bool,
}

pub(crate) async fn delete(agent: &Agent, p: AgentParams) -> Result<DeleteResult, CallError> {
    let (definitions, name) = (agent.definitions.clone(), p.agent_id.clone());
    let deleted = on_a_thread(move || definitions.delete(&name)).await?;
    Ok(DeleteResult {
        agent_id: p.agent_id,
        path: deleted.path,
        prompt_path: deleted.prompt_path,
        restored_bundled: deleted.is_bundled,
    })
}

/// Runs work that waits for the disk.
async fn on_a_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, CallError> + Send + 'static,
) -> Result<T, CallError> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| {
            let code = dodona_plugin::ErrorCode::Internal;
            Err(CallError::new(code, "the definition could not be changed").log(error))
        })
}
