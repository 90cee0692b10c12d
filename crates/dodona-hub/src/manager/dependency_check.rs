//! Whether everything that a plugin needs is there.

use dodona_plugin::reading::nearest;
use dodona_proto::{PluginName, PluginState};

use super::Outcome;
use super::dependency::Dependency;
use super::discover::{Candidate, Plan};

type Refusal = (PluginState, String);

/// Why a plugin that needs itself is not activated.
pub(super) fn circle(way: &[PluginName]) -> Refusal {
    let names: Vec<&str> = way.iter().map(PluginName::as_str).collect();
    let reason = format!("it needs itself: {}", names.join(" → "));
    (PluginState::Failed, reason)
}

/// Whether a plugin may be activated now, or why not.
pub(super) fn check(candidate: &Candidate, plan: &Plan, so_far: &Outcome) -> Result<(), Refusal> {
    if let Some((state, reason)) = &candidate.refused {
        return Err((*state, reason.clone()));
    }
    for dependency in &candidate.dependencies {
        plugin(dependency, plan, so_far)?;
    }
    let manifest = candidate.manifest.iter();
    for name in manifest.flat_map(|manifest| &manifest.requires) {
        tool(name, plan, so_far)?;
    }
    Ok(())
}

fn plugin(dependency: &Dependency, plan: &Plan, so_far: &Outcome) -> Result<(), Refusal> {
    let skipped = |reason: String| Err((PluginState::SkippedDependency, reason));
    let name = &dependency.plugin;
    let Some(known) = plan.candidates.get(name) else {
        let hint = match nearest(name.as_str(), plan.candidates.keys()) {
            Some(near) => format!("; did you mean `{near}`?"),
            None => String::new(),
        };
        return skipped(format!("needs {name}, which is not installed{hint}"));
    };
    let state = so_far.statuses.get(name).map(|status| status.state);
    if state != Some(PluginState::Active) {
        return skipped(format!("needs {name}, {}", why_not(state, name)));
    }
    match known.manifest.as_ref().map(|manifest| &manifest.version) {
        Some(version) if !dependency.accepts(version) => skipped(format!(
            "needs {dependency}, and {name} is version {version}"
        )),
        _ => Ok(()),
    }
}

/// What the state of something that is needed means.
fn why_not(state: Option<PluginState>, name: &PluginName) -> String {
    match state {
        Some(PluginState::Disabled) => {
            format!("which is disabled; run `dodona plugins enable {name}`")
        }
        Some(PluginState::SkippedDependency) => {
            "which is not active because a dependency is missing".to_owned()
        }
        Some(PluginState::Starting) => "which is starting".to_owned(),
        _ => format!("which failed; run `dodona plugins info {name}`"),
    }
}

/// Whether an active plugin provides a tool.
fn tool(tool: &str, plan: &Plan, so_far: &Outcome) -> Result<(), Refusal> {
    let wanted = tool.replace('.', "_");
    let mut routes = so_far.active.iter().flat_map(|active| &active.routes);
    let provided = routes.any(|route| {
        let descriptor = route.descriptor();
        descriptor.tool.is_some() && descriptor.name.as_str().replace('.', "_") == wanted
    });
    if provided {
        return Ok(());
    }
    let owner = owner(tool, plan);
    let state = |name| so_far.statuses.get(name).map(|status| status.state);
    match owner {
        Some(name) if state(name) != Some(PluginState::Active) => Err((
            PluginState::SkippedDependency,
            format!(
                "needs the tool `{tool}` of {name}, {}",
                why_not(state(name), name)
            ),
        )),
        _ => Err((
            PluginState::Failed,
            format!(
                "needs the tool `{tool}`, which no active plugin provides; run `dodona methods`"
            ),
        )),
    }
}

/// The plugin that a tool's name begins with. The longest name counts.
pub(super) fn owner<'p>(tool: &str, plan: &'p Plan) -> Option<&'p PluginName> {
    let wanted = tool.replace('.', "_");
    let begins = |name: &&PluginName| {
        let rest = wanted.strip_prefix(&name.as_str().replace('.', "_"));
        rest.is_some_and(|rest| rest.starts_with('_'))
    };
    let names = plan.candidates.keys().filter(begins);
    names.max_by_key(|name| name.as_str().len())
}
