//! `rules.delete`.

use dodona_plugin::CallCtx;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RuleEditor;
use super::writable_file::{Scripts, WritableRuleFile, WriteError, WriteScope};

#[derive(Deserialize, JsonSchema)]
pub(super) struct DeleteParams {
    /// Whether the file belongs to the user or to the project.
    scope: WriteScope,
    /// File name without directory.
    #[schemars(length(min = 6, max = 200))]
    file: String,
    /// The version that was read. The call fails if the file has changed since.
    #[schemars(length(max = 128))]
    if_version: String,
}

/// A deleted rule file.
#[derive(Serialize, JsonSchema)]
pub(super) struct Deleted {
    /// Path of the deleted file.
    path: String,
    /// File of the rule that it had overridden and that is in force again.
    instead: Option<String>,
}

pub(super) async fn delete(
    editor: &RuleEditor,
    ctx: &CallCtx,
    p: DeleteParams,
) -> Result<Deleted, WriteError> {
    let _alone = editor.writing.lock().await;
    let file = WritableRuleFile::find(editor, ctx, p.scope, &p.file)?;
    file.read_as(&p.if_version)?;
    let path = file.shown();
    let label = editor.label_of(ctx, &path).await;
    file.remove()?;
    file.trust(editor, ctx, None, &Scripts::new()).await?;
    let rules = editor.rules(ctx).await;
    let mut left = rules.loaded.rules.rules().iter();
    let instead = left.find(|rule| Some(&rule.label) == label.as_ref());
    Ok(Deleted {
        path,
        instead: instead.map(|rule| rule.origin.path.clone()),
    })
}
