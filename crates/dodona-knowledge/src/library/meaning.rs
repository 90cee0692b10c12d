//! Search by nearness of meaning, where an endpoint that knows about it is configured.

use std::collections::HashMap;
use std::sync::Arc;

use dodona_llm::Embedder;
use dodona_plugin::{CallCtx, CallError, ErrorCode};

use super::shelf::{Shelf, blocking, index_error};
use super::sync::tell;
use super::vectors::{Placed, Vectors};
use crate::search::{Hit, Question};

/// How many files are embedded while a question waits. The rest follows with the next looks, or
/// with `search.index`, which does all of them.
const WHILE_WAITING: u64 = 64;

/// How many files are looked up at once.
const STEP: u32 = 16;

/// How much of a passage is embedded; most models read no more.
const MAX_TEXT: usize = 6_000;

/// How many passages each ranking proposes.
const CANDIDATES: usize = 50;

/// How much the first places of a ranking stand out; 60 is what the literature settled on.
const SMOOTH: f32 = 60.0;

/// How much is embedded in one look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    /// What a question can wait for.
    Some,
    /// All of it.
    All,
}

impl Shelf {
    /// Makes vectors for passages that have none. An endpoint that does not answer is no reason
    /// not to search.
    pub(super) async fn embed_new(&self, ctx: Option<&CallCtx>, effort: Effort) {
        let Some(embedder) = &self.options.embedder else {
            return;
        };
        if let Err(error) = self.try_embed_new(embedder, ctx, effort).await {
            tracing::warn!(%error, "passages were not embedded; the next look tries again");
        }
    }

    async fn try_embed_new(
        &self,
        embedder: &Embedder,
        ctx: Option<&CallCtx>,
        effort: Effort,
    ) -> Result<(), CallError> {
        let model = embedder.model();
        let (_, all) = self.catalogue.without_vectors(model, 0).await?;
        let wanted = match effort {
            Effort::Some => all.min(WHILE_WAITING),
            Effort::All => all,
        };
        let mut done = 0;
        while done < wanted {
            tell(ctx, "embedding", "files", done as usize, wanted as usize).await?;
            let (paths, _) = self.catalogue.without_vectors(model, STEP).await?;
            if paths.is_empty() {
                break;
            }
            done += paths.len() as u64;
            for path in paths {
                self.embed_file(embedder, path).await?;
            }
            *self.vectors.lock().await = None;
        }
        Ok(())
    }

    async fn embed_file(&self, embedder: &Embedder, path: String) -> Result<(), CallError> {
        let hash = self.catalogue.hash(&path).await?;
        let passages = self.passages_of(&path).await?;
        let texts: Vec<String> = passages.iter().map(text).collect();
        let vectors = embedder.embed(&texts).await.map_err(not_embedded)?;
        let placed = passages
            .iter()
            .zip(vectors)
            .map(|(passage, vector)| Placed {
                line_start: passage.line_start,
                vector,
            })
            .collect();
        let model = embedder.model().to_owned();
        Ok(self
            .catalogue
            .add_vectors(path, hash, model, placed)
            .await?)
    }

    async fn passages_of(&self, path: &str) -> Result<Vec<Hit>, CallError> {
        let (index, path) = (Arc::clone(&self.index), path.to_owned());
        blocking(move || index.passages_of(&path))
            .await?
            .map_err(index_error)
    }

    /// The passages that answer best, best first: by words, and by meaning where that is known.
    pub(crate) async fn search(&self, question: Question) -> Result<Vec<Hit>, CallError> {
        let Some(embedder) = &self.options.embedder else {
            return self.search_words(question).await;
        };
        let near = match self.near(embedder, &question).await {
            Ok(near) => near,
            Err(error) => {
                tracing::warn!(%error, "the question was not embedded; words alone decide");
                Vec::new()
            }
        };
        if near.is_empty() {
            return self.search_words(question).await;
        }
        let limit = question.limit;
        let words = Question {
            limit: CANDIDATES.max(limit),
            ..question
        };
        let by_words = self.search_words(words).await?;
        Ok(fuse(by_words, near, limit))
    }

    /// The passages whose meaning is nearest to the question's.
    async fn near(&self, embedder: &Embedder, question: &Question) -> Result<Vec<Hit>, CallError> {
        let asked = [question.text.chars().take(MAX_TEXT).collect::<String>()];
        let vector = embedder.embed(&asked).await.map_err(not_embedded)?;
        let Some(vector) = vector.into_iter().next() else {
            return Ok(Vec::new());
        };
        let vectors = self.vectors(embedder.model()).await?;
        let mut near = Vec::new();
        for (path, line) in vectors.nearest(vector, CANDIDATES * 4) {
            let passages = self.passages_of(path).await?;
            let found = passages.into_iter().find(|hit| hit.line_start == *line);
            near.extend(found.filter(|hit| wanted(hit, question)));
            if near.len() == CANDIDATES {
                break;
            }
        }
        Ok(near)
    }

    async fn vectors(&self, model: &str) -> Result<Arc<Vectors>, CallError> {
        let mut held = self.vectors.lock().await;
        if let Some(vectors) = held.as_ref() {
            return Ok(Arc::clone(vectors));
        }
        let read = Arc::new(self.catalogue.vectors(model).await?);
        *held = Some(Arc::clone(&read));
        Ok(read)
    }
}

fn not_embedded(error: dodona_llm::ModelError) -> CallError {
    CallError::new(
        ErrorCode::Plugin("search.embedding".into()),
        error.to_string(),
    )
}

/// What stands for a passage: where it is and what it says.
fn text(hit: &Hit) -> String {
    let Hit {
        title,
        heading,
        symbol,
        text,
        ..
    } = hit;
    let mut whole = format!("{title}\n{heading}\n{symbol}\n{text}");
    whole.truncate(whole.floor_char_boundary(MAX_TEXT));
    whole
}

fn wanted(hit: &Hit, question: &Question) -> bool {
    let below = question.path.as_deref().unwrap_or_default();
    let below = below.trim_start_matches("./").trim_end_matches('/');
    (question.kinds.is_empty() || question.kinds.contains(&hit.kind))
        && question
            .language
            .as_ref()
            .is_none_or(|language| hit.language.as_deref() == Some(&language.to_lowercase()))
        && (matches!(below, "" | ".") || std::path::Path::new(&hit.path).starts_with(below))
}

/// Two rankings as one: what stands high in both is first. Places count and not scores, because
/// the scores of the two do not compare.
fn fuse(by_words: Vec<Hit>, by_meaning: Vec<Hit>, limit: usize) -> Vec<Hit> {
    let mut fused: Vec<Hit> = Vec::new();
    let mut known: HashMap<(String, u32), usize> = HashMap::new();
    for ranking in [by_words, by_meaning] {
        for (place, hit) in (1_u16..).zip(ranking) {
            let score = 1.0 / (SMOOTH + f32::from(place));
            match known.get(&(hit.path.clone(), hit.line_start)) {
                Some(index) => fused[*index].score += score,
                None => {
                    known.insert((hit.path.clone(), hit.line_start), fused.len());
                    fused.push(Hit { score, ..hit });
                }
            }
        }
    }
    fused.sort_by(|a, b| b.score.total_cmp(&a.score));
    fused.truncate(limit);
    fused
}

#[cfg(test)]
mod tests {
    use super::*;
    use dodona_proto::SourceKind;

    fn hit(path: &str) -> Hit {
        let empty = String::new;
        Hit {
            path: path.to_owned(),
            kind: SourceKind::Note,
            language: None,
            title: empty(),
            heading: empty(),
            symbol: empty(),
            line_start: 1,
            line_end: 1,
            text: empty(),
            score: 9.0,
        }
    }

    #[test]
    fn what_both_rankings_know_comes_first() {
        let by_words = ["a", "b", "c"].map(hit).to_vec();
        let by_meaning = ["d", "c"].map(hit).to_vec();
        let fused = fuse(by_words, by_meaning, 3);
        let paths: Vec<&str> = fused.iter().map(|hit| hit.path.as_str()).collect();
        assert_eq!(paths, ["c", "a", "d"]);
    }

    #[test]
    fn what_was_not_asked_for_is_left_out() {
        let question = |path: &str, kinds| Question {
            path: Some(path.to_owned()),
            kinds,
            ..Question::default()
        };
        assert!(wanted(&hit("docs/a.md"), &question("docs", vec![])));
        assert!(!wanted(&hit("docs2/a.md"), &question("docs", vec![])));
        assert!(!wanted(
            &hit("a.md"),
            &question(".", vec![SourceKind::Code])
        ));
    }
}
