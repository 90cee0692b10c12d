//! `rules.write`.

use dodona_plugin::CallCtx;
use schemars::JsonSchema;
use serde::Deserialize;

use super::Desk;
use super::own::{OwnFile, Saved, Scripts, WriteError, WriteScope};

#[derive(Deserialize, JsonSchema)]
pub(super) struct WriteParams {
    /// Among whose rules.
    scope: WriteScope,
    /// The name of the file, without a directory: `no-main-writes.toml`.
    #[schemars(length(min = 6, max = 200))]
    file: String,
    /// All of its text.
    #[schemars(length(max = 262_144))]
    text: String,
    /// The script that it names, by the path by which it does, if that is to be saved too.
    #[serde(default)]
    scripts: Scripts,
    /// The version that was read, so that nobody's change is lost. Without it the file must be new.
    #[schemars(length(max = 128))]
    if_version: Option<String>,
}

pub(super) async fn write(desk: &Desk, ctx: &CallCtx, p: WriteParams) -> Result<Saved, WriteError> {
    let _alone = desk.writing.lock().await;
    let file = OwnFile::find(desk, ctx, p.scope, &p.file)?;
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
    file.trust(desk, ctx, Some(&p.text), &scripts).await?;
    Ok(Saved {
        rule: rule.label.clone(),
        version: file.version(&p.text),
        problems: desk.problems_of(ctx, &file.shown()).await,
        path: file.shown(),
    })
}
