//! Whether the tools that a definition names exist, and are for that agent.

use std::collections::BTreeMap;
use std::sync::Arc;

use dodona_plugin::reading::{Problem, nearest};
use dodona_proto::MethodDescriptor;

use super::{Definition, in_scope};

/// The tools that exist, by their names on the model's side, with their scopes.
pub(crate) struct KnownTools(BTreeMap<String, Vec<String>>);

impl KnownTools {
    /// The tools among these methods.
    pub(crate) fn of(methods: &[Arc<MethodDescriptor>]) -> Self {
        let tools = methods.iter().filter_map(|method| {
            let mark = method.tool.as_ref()?;
            Some((method.name.as_str().replace('.', "_"), mark.agents.clone()))
        });
        Self(tools.collect())
    }

    /// The tools that an agent may use.
    pub(crate) fn usable<'t>(&'t self, definition: &'t Definition) -> Vec<String> {
        let usable = |(name, scope): (&'t String, &'t Vec<String>)| {
            definition.may_use(name, scope).then(|| name.clone())
        };
        self.0.iter().filter_map(usable).collect()
    }

    /// The tools whose scope includes an agent.
    pub(crate) fn in_scope_of(&self, agent: &str) -> Vec<String> {
        let tools = self.0.iter();
        tools
            .filter(|(_, scope)| in_scope(scope, agent))
            .map(|(name, _)| name.clone())
            .collect()
    }
}

impl Definition {
    /// Names of tools that do not exist, and of tools that the agent does not get because their
    /// scope leaves it out.
    pub(crate) fn tool_problems(&self, known: &KnownTools) -> Vec<Problem> {
        let keys = [
            ("allowed_tools", &self.allowed_tools),
            ("extra_tools", &self.extra_tools),
        ];
        let mut problems = Vec::new();
        for (key, names) in keys {
            let mut unknown = Vec::new();
            for tool in names {
                match known.0.get(tool) {
                    None => unknown.push(tool.as_str()),
                    Some(scope) if !self.may_use(tool, scope) => {
                        problems.push(self.out_of_scope(tool, scope));
                    }
                    Some(_) => {}
                }
            }
            problems.extend(self.unknown(key, &unknown, known));
        }
        problems
    }

    /// One problem for all unknown tools: an agent whose plugin is not active has many.
    fn unknown(&self, key: &str, tools: &[&str], known: &KnownTools) -> Option<Problem> {
        let list = match tools {
            [] => return None,
            [tool] => format!("the tool `{tool}`"),
            tools => format!("the tools `{}`", tools.join("`, `")),
        };
        let near = match tools {
            [tool] => nearest(tool, known.0.keys().map(String::as_str)),
            _ => None,
        };
        let hint = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`dodona plugins` shows which plugins are active; a tool is named after its \
                     method: `vault_read` is `vault.read`"
                .to_owned(),
        };
        let message = format!("`{key}`: no active plugin provides {list}");
        Some(Problem::of_file(&self.path, message).hint(hint))
    }

    fn out_of_scope(&self, tool: &str, scope: &[String]) -> Problem {
        let (agent, scope) = (&self.name, scope.join(", "));
        let message = format!("`{tool}` is not for the agent `{agent}`: its scope is {scope}");
        let hint = format!("add \"{tool}\" to `extra_tools` in your own definition to allow it");
        Problem::of_file(&self.path, message).hint(hint)
    }
}
