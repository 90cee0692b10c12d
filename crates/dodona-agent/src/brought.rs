//! What the project of a call brings: prompts and agents, once somebody trusts it.

use dodona_plugin::{CallCtx, TrustedFolder, TrustedTexts};
use dodona_proto::ProjectId;

use crate::agent::Agent;

/// The texts of a folder of the project, or why none of them counts.
#[derive(Debug, Default)]
pub(crate) struct Brought {
    pub(crate) texts: TrustedTexts,
    pub(crate) refused: Option<String>,
}

impl Agent {
    /// What the project of a call brings. Read anew for each query, so that what is changed and
    /// trusted again counts at once, and what is changed and not trusted no longer does.
    pub(crate) async fn brought(&self, ctx: &CallCtx, folder: TrustedFolder) -> Brought {
        let project = ctx.project.as_ref().map(|project| &project.id);
        self.brought_by(project, folder).await
    }

    /// The same for a project by its id.
    pub(crate) async fn brought_by(
        &self,
        project: Option<&ProjectId>,
        folder: TrustedFolder,
    ) -> Brought {
        let Some(project) = project else {
            return Brought::default();
        };
        match self.trust.texts(project, folder).await {
            Ok(texts) => Brought {
                texts,
                refused: None,
            },
            Err(why) => {
                let folder = folder.as_str();
                tracing::warn!(%project, folder, why, "a folder of a project is not used");
                Brought {
                    texts: TrustedTexts::new(),
                    refused: Some(format!(
                        "`.dodona/{folder}` of the project is not used: {why}"
                    )),
                }
            }
        }
    }
}
