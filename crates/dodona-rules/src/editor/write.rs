//! `rules.write`.

use dodona_plugin::CallCtx;
use schemars::JsonSchema;
use serde::Deserialize;

use super::RuleEditor;
use super::writable_file::{Saved, Scripts, WritableRuleFile, WriteError, WriteScope};

#[derive(Deserialize, JsonSchema)]
pub(super) struct WriteParams {
    /// Whether the file belongs to the user or to the project.
    scope: WriteScope,
    /// File name without directory, such as `no-main-writes.toml`.
    #[schemars(length(min = 6, max = 200))]
    file: String,
    /// The complete text of the file.
    #[schemars(length(max = 262_144))]
    text: String,
    /// Scripts to save too, by the path used in the rule.
    #[serde(default)]
    scripts: Scripts,
    /// The version that was read. The call fails if the file has changed since. Omit it for a new file.
    #[schemars(length(max = 128))]
    if_version: Option<String>,
}

pub(super) async fn write(
    editor: &RuleEditor,
    ctx: &CallCtx,
    p: WriteParams,
) -> Result<Saved, WriteError> {
    let _alone = editor.writing.lock().await;
    let file = WritableRuleFile::find(editor, ctx, p.scope, &p.file)?;
    let seen = match &p.if_version {
        Some(version) => file.read_as(version)?.1,
        None => file.must_be_new().map(|()| Scripts::new())?,
    };
    file.must_be_seen(&p.scripts, &seen)?;
    let rule = file.would_be(&p.text, &p.scripts)?;
    file.save(&p.text, &p.scripts)?;
    // A script that the caller has neither sent nor read keeps the trust it has.
    let mut scripts = file.scripts(&p.text);
    scripts.retain(|script, text| {
        let known = p.scripts.get(script).or_else(|| seen.get(script));
        known == Some(text)
    });
    file.trust(editor, ctx, Some(&p.text), &scripts).await?;
    Ok(Saved {
        rule: rule.label.clone(),
        version: file.version(&p.text),
        problems: editor.problems_of(ctx, &file.shown()).await,
        path: file.shown(),
    })
}
