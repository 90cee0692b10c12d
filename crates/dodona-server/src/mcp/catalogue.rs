//! The tools that somebody is offered, described once and kept.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use dodona_proto::{Approval, MethodDescriptor, Mutation, ProjectId, Scopes, ToolCategory};
use rmcp::model::{MetaObject, Tool, ToolAnnotations};
use serde_json::json;

use super::groups::Groups;
use super::sources::{self, Source};
use super::{ask, blocks, groups, name, schema};

/// How many tools one page lists.
pub(super) const PAGE: usize = 50;

/// How many sets of tools are kept: one for each different token and choice of groups.
const KEPT: usize = 32;

/// What a tool stands for.
#[derive(Clone)]
pub(super) enum Work {
    /// A method of that name.
    Method(Arc<MethodDescriptor>),
    /// A question to the agent.
    Ask,
}

/// A tool as it is offered.
pub(super) struct Offered {
    pub(super) tool: Tool,
    pub(super) work: Work,
}

/// The tools that somebody is offered, by name.
pub(super) struct Catalogue {
    tools: Vec<Offered>,
    by_name: HashMap<String, usize>,
    sources: Vec<Source>,
    may_agree: bool,
}

impl Catalogue {
    /// Describes the tools among these methods, which are in order of their names.
    pub(super) fn new(methods: &[Arc<MethodDescriptor>], groups: &Groups) -> Self {
        let mut taken = HashSet::new();
        let mut tools = Vec::new();
        // A name must not depend on the groups.
        for method in methods.iter().filter(|method| method.tool.is_some()) {
            let name = name::of(&method.name, &taken);
            taken.insert(name.clone());
            if groups.offer(method) {
                tools.extend(describe(name, method));
            }
        }
        if groups.offer_ask()
            && methods
                .iter()
                .any(|method| method.name.as_str() == ask::METHOD)
        {
            let (tool, work) = (ask::tool(), Work::Ask);
            tools.push(Offered { tool, work });
        }
        tools.sort_by(|a, b| a.tool.name.cmp(&b.tool.name));
        let by_name = tools.iter().enumerate();
        let by_name = by_name.map(|(at, offered)| (offered.tool.name.to_string(), at));
        Self {
            by_name: by_name.collect(),
            tools,
            sources: sources::among(methods, groups),
            may_agree: methods
                .iter()
                .any(|method| method.name.as_str() == "hub.approve"),
        }
    }

    /// The plugins that have resources or prompts.
    pub(super) fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// Whether the agent can be asked.
    pub(super) fn has_ask(&self) -> bool {
        self.get(groups::ASK).is_some()
    }

    /// Whether who asks may also answer what a person is asked.
    pub(super) fn may_agree(&self) -> bool {
        self.may_agree
    }

    /// All of them, in order.
    pub(super) fn tools(&self) -> &[Offered] {
        &self.tools
    }

    /// What a name stands for.
    pub(super) fn get(&self, name: &str) -> Option<&Work> {
        self.by_name.get(name).map(|at| &self.tools[*at].work)
    }
}

/// A method as a tool. One whose parameters are no object cannot be one.
fn describe(name: String, method: &Arc<MethodDescriptor>) -> Option<Offered> {
    let title = title(method);
    let tool = Tool::new(
        name,
        method.description.clone(),
        schema::object(&method.params)?,
    );
    let tool = tool
        .with_title(title.clone())
        .with_annotations(annotations(method, title))
        .with_meta(meta(method));
    let tool = match schema::object(&method.result) {
        // Its blocks are not described by a schema.
        Some(_) if blocks::has_blocks(method) => tool,
        Some(result) => tool.with_raw_output_schema(Arc::new(result)),
        None => tool,
    };
    let work = Work::Method(Arc::clone(method));
    Some(Offered { tool, work })
}

/// `vault.create_index` is "Vault: create index".
fn title(method: &MethodDescriptor) -> String {
    let (plugin, verb) = method.name.as_str().split_once('.').unwrap_or_default();
    let mut plugin = plugin.replace(['_', '-'], " ");
    if let Some(first) = plugin.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    format!("{plugin}: {}", verb.replace(['_', '-'], " "))
}

/// What a client may tell its user. A change that an agent needs no leave for only adds.
fn annotations(method: &MethodDescriptor, title: String) -> ToolAnnotations {
    let reads = method.mutation == Mutation::Reads;
    let mark = method.tool.as_ref();
    let adds = mark.is_some_and(|mark| mark.approval == Approval::Never);
    let open = mark.and_then(|mark| match mark.category {
        ToolCategory::Web => Some(true),
        ToolCategory::Vault | ToolCategory::Thread | ToolCategory::Code => Some(false),
        _ => None,
    });
    ToolAnnotations::from_raw(
        Some(title),
        Some(reads),
        Some(!reads && !adds),
        Some(reads),
        open,
    )
}

fn meta(method: &MethodDescriptor) -> MetaObject {
    let mut meta = MetaObject::new();
    meta.insert("dodona/method".to_owned(), json!(method.name));
    meta
}

/// For whom, and of what, a catalogue is.
#[derive(Clone, PartialEq)]
struct For {
    scopes: Scopes,
    project: Option<ProjectId>,
    groups: Groups,
}

/// The catalogues of one set of installed methods.
#[derive(Default)]
pub(super) struct Catalogues(Mutex<Vec<(For, Arc<Catalogue>)>>);

impl Catalogues {
    /// The one of somebody with these rights in a project, made if it is not there yet.
    pub(super) fn get(
        &self,
        scopes: &Scopes,
        project: Option<&ProjectId>,
        groups: &Groups,
        methods: impl FnOnce() -> Vec<Arc<MethodDescriptor>>,
    ) -> Arc<Catalogue> {
        let wanted = For {
            scopes: scopes.clone(),
            project: project.cloned(),
            groups: groups.clone(),
        };
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, found)) = kept.iter().find(|(of, _)| *of == wanted) {
            return Arc::clone(found);
        }
        let made = Arc::new(Catalogue::new(&methods(), groups));
        if kept.len() >= KEPT {
            kept.remove(0);
        }
        kept.push((wanted, Arc::clone(&made)));
        made
    }
}
