//! The order of callbacks.

use dodona_proto::PluginName;

use crate::hook::Terms;

/// A callback and its plugin, before sorting.
pub(crate) struct Placed<'a> {
    pub(crate) plugin: &'a PluginName,
    pub(crate) terms: &'a Terms,
}

/// The order, as indices: ascending priority, then plugin name, then order of registration; `before` and
/// `after` take precedence. If these form a cycle, the first callback in that order runs first, and a warning
/// is logged.
pub(crate) fn order(hooks: &[Placed<'_>]) -> Vec<usize> {
    let mut waiting: Vec<usize> = (0..hooks.len()).collect();
    waiting.sort_by_key(|&at| (hooks[at].terms.priority, hooks[at].plugin, at));
    if hooks
        .iter()
        .all(|hook| hook.terms.before.is_empty() && hook.terms.after.is_empty())
    {
        return waiting;
    }
    let mut ordered = Vec::with_capacity(hooks.len());
    while !waiting.is_empty() {
        let is_free = |&at: &usize| {
            let others = waiting.iter().filter(|&&other| other != at);
            others
                .into_iter()
                .all(|&other| !follows(&hooks[at], &hooks[other]))
        };
        let next = waiting.iter().position(is_free).unwrap_or_else(|| {
            let stuck = &hooks[waiting[0]];
            tracing::warn!(plugin = %stuck.plugin, hook = %stuck.terms.point, "`before` and `after` of hooks form a cycle");
            0
        });
        ordered.push(waiting.remove(next));
    }
    ordered
}

/// Whether one callback must run after another.
fn follows(one: &Placed<'_>, other: &Placed<'_>) -> bool {
    one.terms.point == other.terms.point
        && one.plugin != other.plugin
        && (one.terms.after.contains(other.plugin) || other.terms.before.contains(one.plugin))
}
