//! `rules.rename`.

use dodona_plugin::CallCtx;
use schemars::JsonSchema;
use serde::Deserialize;

use super::RuleEditor;
use super::writable_file::{Saved, Scripts, WritableRuleFile, WriteError, WriteScope};
use crate::format;

#[derive(Deserialize, JsonSchema)]
pub(super) struct RenameParams {
    /// Whether the file belongs to the user or to the project.
    scope: WriteScope,
    /// File name without directory.
    #[schemars(length(min = 6, max = 200))]
    file: String,
    /// The new id. The file gets the same name.
    #[schemars(length(min = 1, max = 128), regex(pattern = "^[a-z0-9-]+$"))]
    id: String,
    /// The version that was read. The call fails if the file has changed since.
    #[schemars(length(max = 128))]
    if_version: String,
}

pub(super) async fn rename(
    editor: &RuleEditor,
    ctx: &CallCtx,
    p: RenameParams,
) -> Result<Saved, WriteError> {
    let _alone = editor.writing.lock().await;
    let old = WritableRuleFile::find(editor, ctx, p.scope, &p.file)?;
    let (text, _) = old.read_as(&p.if_version)?;
    let new = WritableRuleFile::find(editor, ctx, p.scope, &format!("{}.toml", p.id))?;
    let stays = new.path == old.path;
    if !stays {
        new.must_be_new()?;
    }
    let before = editor.label_of(ctx, &old.shown()).await;
    let text = with_id(&old.shown(), &text, &p.id);
    let none = Scripts::new();
    let rule = new.would_be(&text, &none)?.label.clone();
    editor.must_be_free(ctx, &rule).await?;
    new.save(&text, &none)?;
    new.trust(editor, ctx, Some(&text), &new.scripts(&text))
        .await?;
    if !stays {
        old.remove()?;
        old.trust(editor, ctx, None, &none).await?;
    }
    if let Some(before) = before {
        carry_switch(editor, ctx, &before, &rule).await?;
    }
    Ok(Saved {
        rule,
        version: new.version(&text),
        problems: editor.problems_of(ctx, &new.shown()).await,
        path: new.shown(),
    })
}

/// Replaces the id and keeps the rest of the text. A text without an id is returned unchanged.
fn with_id(path: &str, text: &str, id: &str) -> String {
    let (rule, _) = format::parse(path, text);
    let Some(rule) = rule else {
        return text.to_owned();
    };
    let mut changed = text.to_owned();
    changed.replace_range(rule.spots.id.span, &format!("\"{id}\""));
    changed
}

/// A disabled rule stays disabled under its new id.
async fn carry_switch(
    editor: &RuleEditor,
    ctx: &CallCtx,
    before: &str,
    now: &str,
) -> Result<(), WriteError> {
    let (host, user) = (&editor.engine.host, &ctx.principal.user);
    if !host.disabled(user).contains(before) {
        return Ok(());
    }
    for (rule, off) in [(now, true), (before, false)] {
        let set = host.set_disabled(user, rule, off).await;
        set.map_err(WriteError::Switch)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_id_leaves_comments_and_all_else_as_they_were() {
        let text = "# why\n[rule]\nid = 'old' # note\ntrigger = \"on_turn_start\"\n\n[condition]\nexpression = \"'old' == 'old'\"\n\n[action]\ntype = \"log\"\nmessage = \"old\"\n";
        let expected = text.replace("id = 'old'", "id = \"new\"");
        assert_eq!(with_id("a.toml", text, "new"), expected);
    }
}
