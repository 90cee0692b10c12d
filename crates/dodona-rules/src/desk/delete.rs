//! `rules.delete`.

use dodona_plugin::CallCtx;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Desk;
use super::own::{OwnFile, Scripts, WriteError, WriteScope};

#[derive(Deserialize, JsonSchema)]
pub(super) struct DeleteParams {
    /// Among whose rules.
    scope: WriteScope,
    /// The name of the file, without a directory.
    #[schemars(length(min = 6, max = 200))]
    file: String,
    /// The version that was read, so that nobody's change is lost.
    #[schemars(length(max = 128))]
    if_version: String,
}

/// What became of a rule.
#[derive(Serialize, JsonSchema)]
pub(super) struct Deleted {
    /// The file that is gone.
    path: String,
    /// The file of the rule that counts under its name now, where it had taken another one's place.
    instead: Option<String>,
}

pub(super) async fn delete(
    desk: &Desk,
    ctx: &CallCtx,
    p: DeleteParams,
) -> Result<Deleted, WriteError> {
    let _alone = desk.writing.lock().await;
    let file = OwnFile::find(desk, ctx, p.scope, &p.file)?;
    file.read_as(&p.if_version)?;
    let path = file.shown();
    let label = desk.label_of(ctx, &path).await;
    file.remove()?;
    file.trust(desk, ctx, None, &Scripts::new()).await?;
    let rules = desk.rules(ctx).await;
    let mut left = rules.library.rules.rules().iter();
    let instead = left.find(|rule| Some(&rule.label) == label.as_ref());
    Ok(Deleted {
        path,
        instead: instead.map(|rule| rule.origin.path.clone()),
    })
}
