//! The hook points as types: payload and edit of each.

use std::ops::ControlFlow;

use dodona_proto::hook::{
    CompactEdit, Compacted, Compacting, ModelCall, ModelCallEdit, ModelResponse, ModelResponseEdit,
    NoEdit, Preload, PreloadEdit, Preloaded, PreloadedEdit, PromptEdit, ResultEdit, RouteTable,
    ServerRoute, SessionEnded, SystemPrompt, ToolAddition, ToolEnded, ToolEnding, ToolPending,
    ToolTable, Verdict,
};
use dodona_proto::{HookPoint, PluginName, hook};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::about::AboutQuery;
use crate::list::List;
use crate::registry::Hooks;

/// Whether the following callbacks run too.
pub type Flow = ControlFlow<()>;

pub trait Point: Sized + Send + Sync + 'static {
    const POINT: HookPoint;

    /// The payload that callbacks get.
    type Payload: Serialize + AboutQuery + Clone + Send + Sync + 'static;

    /// The edit that callbacks may return.
    type Edit: Serialize + DeserializeOwned + Send + 'static;

    fn apply(payload: &mut Self::Payload, edit: Self::Edit, plugin: &PluginName) -> Flow;

    /// The edit for a failed callback that fails closed.
    fn refusal(_plugin: &PluginName) -> Option<Self::Edit> {
        None
    }

    #[doc(hidden)]
    fn list(lists: &Lists) -> &List<Self>;

    #[doc(hidden)]
    fn list_mut(lists: &mut Lists) -> &mut List<Self>;
}

/// Generates the types of the hook points, the table of their callbacks, and the mapping from name to type.
macro_rules! points {
    ($($(#[$doc:meta])* $name:ident: $field:ident, $payload:ty, $edit:ty, $apply:expr $(, refusing $refusal:expr)?;)+) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy)]
            pub struct $name;

            impl Point for $name {
                const POINT: HookPoint = HookPoint::$name;
                type Payload = $payload;
                type Edit = $edit;

                #[inline]
                fn apply(payload: &mut $payload, edit: $edit, plugin: &PluginName) -> Flow {
                    let apply: fn(&mut $payload, $edit, &PluginName) -> Flow = $apply;
                    apply(payload, edit, plugin)
                }

                $(fn refusal(plugin: &PluginName) -> Option<$edit> {
                    let refuse: fn(&PluginName) -> $edit = $refusal;
                    Some(refuse(plugin))
                })?

                #[inline]
                fn list(lists: &Lists) -> &List<Self> {
                    &lists.$field
                }

                #[inline]
                fn list_mut(lists: &mut Lists) -> &mut List<Self> {
                    &mut lists.$field
                }
            }
        )+

        /// The callbacks of all hook points.
        #[doc(hidden)]
        #[derive(Default)]
        pub struct Lists {
            $($field: List<$name>,)+
        }

        /// Runs a visitor for the hook point with this name.
        pub(crate) fn visit<V: Visitor>(point: HookPoint, visitor: V) -> V::Output {
            match point {
                $(HookPoint::$name => visitor.visit::<$name>(),)+
            }
        }
    };
}

/// An operation on a hook point that is known only by name.
pub(crate) trait Visitor {
    type Output;

    fn visit<P: Point>(self) -> Self::Output;
}

points! {
    /// The conversation of a query has been determined.
    SessionResolved: session_resolved, hook::SessionResolved, NoEdit, |_, edit, _| match edit {};
    /// A query has started.
    QueryReceived: query_received, hook::QueryReceived, NoEdit, |_, edit, _| match edit {};
    /// While the tools offered to the model are collected.
    ToolRegistryBuild: tool_registry_build, ToolTable, Vec<ToolAddition>, |table, more, _| {
        table.added.extend(more);
        Flow::Continue(())
    };
    /// While the system prompt is built.
    SystemPromptExtend: system_prompt_extend, SystemPrompt, PromptEdit, |system, edit, _| {
        match edit {
            PromptEdit::Append(more) => {
                system.prompt.push_str("\n\n");
                system.prompt.push_str(&more);
            }
            PromptEdit::Replace(prompt) => system.prompt = prompt,
        }
        Flow::Continue(())
    };
    /// Before passages are retrieved for the first request.
    PrePreload: pre_preload, Preload, PreloadEdit, |preload, edit, _| {
        preload.requests = edit.requests;
        Flow::Continue(())
    };
    /// After the passages were retrieved.
    PostPreload: post_preload, Preloaded, PreloadedEdit, |preloaded, edit, _| {
        preloaded.passages = edit.passages;
        Flow::Continue(())
    };
    /// Before each request to a model.
    PreLlmCall: pre_llm_call, ModelCall, ModelCallEdit, change_request;
    /// After each response of a model.
    PostLlmResponse: post_llm_response, ModelResponse, ModelResponseEdit, |said, edit, _| {
        said.text = edit.text.unwrap_or_else(|| std::mem::take(&mut said.text));
        said.calls = edit.calls.unwrap_or_else(|| std::mem::take(&mut said.calls));
        Flow::Continue(())
    };
    /// Before a tool runs.
    PreToolExecute: pre_tool_execute, ToolPending, Verdict, judge,
        refusing |plugin| Verdict::Deny(format!("the gate of plugin `{plugin}` failed"));
    /// After a tool has run or was denied.
    PostToolExecute: post_tool_execute, ToolEnded, ResultEdit, |ended, edit, _| {
        if ended.ending == ToolEnding::Success {
            ended.result = edit.result;
        }
        Flow::Continue(())
    };
    /// A request to a model and its tool calls are complete.
    TurnCompleted: turn_completed, hook::TurnCompleted, NoEdit, |_, edit, _| match edit {};
    /// Before a conversation is compacted.
    PreCompact: pre_compact, Compacting, CompactEdit, |compacting, edit, _| {
        compacting.pinned.extend(edit.pin);
        compacting.summarizer = edit.summarizer.unwrap_or_else(|| std::mem::take(&mut compacting.summarizer));
        Flow::Continue(())
    };
    /// After a conversation was compacted.
    PostCompact: post_compact, Compacted, NoEdit, |_, edit, _| match edit {};
    /// A session has ended.
    SessionEnd: session_end, SessionEnded, NoEdit, |_, edit, _| match edit {};
    /// While the server collects its routes.
    DaemonServerRegister: daemon_server_register, RouteTable, Vec<ServerRoute>, |table, more, plugin| {
        table.routes.extend(more.into_iter().map(|route| (plugin.clone(), route)));
        Flow::Continue(())
    };
}

impl Hooks {
    /// Whether the hook point has callbacks. Check this before building a payload.
    #[inline]
    pub fn has_subscribers<P: Point>(&self) -> bool {
        !P::list(self.lists()).is_empty()
    }
}

fn change_request(call: &mut ModelCall, edit: ModelCallEdit, _: &PluginName) -> Flow {
    if let Some(messages) = edit.messages {
        call.messages = messages;
    }
    call.messages.extend(edit.append);
    if let Some(only) = edit.tools {
        call.tools.retain(|tool| only.contains(tool));
    }
    let options = &mut call.options;
    options.temperature = edit.options.temperature.or(options.temperature);
    options.max_output_tokens = (edit.options.max_output_tokens).or(options.max_output_tokens);
    Flow::Continue(())
}

/// Deny takes precedence over ask, and ask over answer. Of equal verdicts the first counts.
fn judge(call: &mut ToolPending, verdict: Verdict, plugin: &PluginName) -> Flow {
    match verdict {
        Verdict::Allow => {}
        Verdict::Modify(arguments) => call.arguments = arguments,
        Verdict::Ask(message) => {
            call.ask.get_or_insert((plugin.clone(), message));
        }
        Verdict::Answer(value) => {
            call.answer.get_or_insert((plugin.clone(), value));
        }
        Verdict::Deny(message) => {
            call.denied = Some((plugin.clone(), message));
            return Flow::Break(());
        }
    }
    Flow::Continue(())
}
