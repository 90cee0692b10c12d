//! The hook points as types: what callbacks are shown at each, and what they may change.

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

/// Whether the callbacks after this one are asked too.
pub type Flow = ControlFlow<()>;

/// A hook point.
pub trait Point: Sized + Send + Sync + 'static {
    /// Which.
    const POINT: HookPoint;

    /// What callbacks are shown.
    type Payload: Serialize + AboutQuery + Clone + Send + Sync + 'static;

    /// What they may change.
    type Edit: Serialize + DeserializeOwned + Send + 'static;

    /// Makes a change.
    fn apply(payload: &mut Self::Payload, edit: Self::Edit, plugin: &PluginName) -> Flow;

    /// What it comes to when a callback fails that must not.
    fn refusal(_plugin: &PluginName) -> Option<Self::Edit> {
        None
    }

    #[doc(hidden)]
    fn list(lists: &Lists) -> &List<Self>;

    #[doc(hidden)]
    fn list_mut(lists: &mut Lists) -> &mut List<Self>;
}

/// Makes the points' types, the table of their callbacks, and the way from a name to a type.
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

        /// The callbacks of every point.
        #[doc(hidden)]
        #[derive(Default)]
        pub struct Lists {
            $($field: List<$name>,)+
        }

        /// Does the same for whichever point has a name.
        pub(crate) fn visit<V: Visitor>(point: HookPoint, visitor: V) -> V::Output {
            match point {
                $(HookPoint::$name => visitor.visit::<$name>(),)+
            }
        }
    };
}

/// Something to do with a point that is known only by its name.
pub(crate) trait Visitor {
    /// What comes of it.
    type Output;

    /// Does it.
    fn visit<P: Point>(self) -> Self::Output;
}

points! {
    /// It is known which conversation a query belongs to.
    SessionResolved: session_resolved, hook::SessionResolved, NoEdit, |_, edit, _| match edit {};
    /// A question has come.
    QueryReceived: query_received, hook::QueryReceived, NoEdit, |_, edit, _| match edit {};
    /// While the tools are gathered that a model is offered.
    ToolRegistryBuild: tool_registry_build, ToolTable, Vec<ToolAddition>, |table, more, _| {
        table.added.extend(more);
        Flow::Continue(())
    };
    /// While the system prompt is made.
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
    /// Before passages are looked for that the model is shown unasked.
    PrePreload: pre_preload, Preload, PreloadEdit, |preload, edit, _| {
        preload.requests = edit.requests;
        Flow::Continue(())
    };
    /// After they were found.
    PostPreload: post_preload, Preloaded, PreloadedEdit, |preloaded, edit, _| {
        preloaded.passages = edit.passages;
        Flow::Continue(())
    };
    /// Before each request to a model.
    PreLlmCall: pre_llm_call, ModelCall, ModelCallEdit, change_request;
    /// After each answer of a model.
    PostLlmResponse: post_llm_response, ModelResponse, ModelResponseEdit, |said, edit, _| {
        said.text = edit.text.unwrap_or_else(|| std::mem::take(&mut said.text));
        said.calls = edit.calls.unwrap_or_else(|| std::mem::take(&mut said.calls));
        Flow::Continue(())
    };
    /// Before a tool runs.
    PreToolExecute: pre_tool_execute, ToolPending, Verdict, judge,
        refusing |plugin| Verdict::Deny(format!("the gate of plugin `{plugin}` failed"));
    /// After a tool has run, or was kept from it.
    PostToolExecute: post_tool_execute, ToolEnded, ResultEdit, |ended, edit, _| {
        if ended.ending == ToolEnding::Success {
            ended.result = edit.result;
        }
        Flow::Continue(())
    };
    /// A request to a model and the tools it asked for are done.
    TurnCompleted: turn_completed, hook::TurnCompleted, NoEdit, |_, edit, _| match edit {};
    /// Before a conversation is shortened.
    PreCompact: pre_compact, Compacting, CompactEdit, |compacting, edit, _| {
        compacting.pinned.extend(edit.pin);
        compacting.summarizer = edit.summarizer.unwrap_or_else(|| std::mem::take(&mut compacting.summarizer));
        Flow::Continue(())
    };
    /// After it was.
    PostCompact: post_compact, Compacted, NoEdit, |_, edit, _| match edit {};
    /// A conversation is over.
    SessionEnd: session_end, SessionEnded, NoEdit, |_, edit, _| match edit {};
    /// While the server gathers its routes.
    DaemonServerRegister: daemon_server_register, RouteTable, Vec<ServerRoute>, |table, more, plugin| {
        table.routes.extend(more.into_iter().map(|route| (plugin.clone(), route)));
        Flow::Continue(())
    };
}

impl Hooks {
    /// Whether anybody would be asked. Look before a payload is built.
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

/// A refusal beats everything, a question beats an answer, and the first of equals counts.
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
