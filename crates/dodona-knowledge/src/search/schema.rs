//! What the index keeps of a passage.

use std::hash::{DefaultHasher, Hash, Hasher};

use dodona_proto::SourceKind;
use tantivy::schema::{
    FAST, Field, IndexRecordOption, STORED, STRING, Schema, TextFieldIndexing, TextOptions, Value,
};
use tantivy::{Index, TantivyDocument};

use super::tuning::FIELDS;
use super::{FileChunks, Hit, analyzer};
use crate::parse::Chunk;

/// Goes up with every change of fields or analyzer: an index of another version is made anew.
pub(super) const VERSION: &str = "2";

/// The name under which the analyzer is registered.
const ANALYZER: &str = "dodona";
/// The name of the column that tells files apart.
pub(super) const FILE: &str = "file";
/// The name of the column with the line where a passage begins.
pub(super) const LINE: &str = "line_start";

/// The fields of the index.
#[derive(Clone)]
pub(super) struct Fields {
    /// The path as it is: what is deleted by.
    pub(super) path: Field,
    /// The path and every folder above it: what is filtered by.
    pub(super) within: Field,
    pub(super) kind: Field,
    pub(super) language: Field,
    /// The squashed symbol, as one term.
    pub(super) name: Field,
    pub(super) path_words: Field,
    pub(super) title: Field,
    pub(super) heading: Field,
    pub(super) symbol: Field,
    pub(super) body: Field,
    /// Tells the passages of one file from those of another, without reading their paths.
    pub(super) file: Field,
    line_start: Field,
    line_end: Field,
}

/// Builds the schema.
pub(super) fn schema() -> (Schema, Fields) {
    let indexing = TextFieldIndexing::default()
        .set_tokenizer(ANALYZER)
        .set_index_option(IndexRecordOption::WithFreqsAndPositions);
    let words = TextOptions::default().set_indexing_options(indexing);
    let kept = words.clone().set_stored();
    let mut builder = Schema::builder();
    let fields = Fields {
        path: builder.add_text_field("path", STRING | STORED),
        within: builder.add_text_field("within", STRING),
        kind: builder.add_text_field("kind", STRING | STORED),
        language: builder.add_text_field("language", STRING | STORED),
        name: builder.add_text_field("name", STRING),
        path_words: builder.add_text_field("path_words", words),
        title: builder.add_text_field("title", kept.clone()),
        heading: builder.add_text_field("heading", kept.clone()),
        symbol: builder.add_text_field("symbol", kept.clone()),
        body: builder.add_text_field("body", kept),
        file: builder.add_u64_field(FILE, FAST),
        line_start: builder.add_u64_field(LINE, STORED | FAST),
        line_end: builder.add_u64_field("line_end", STORED),
    };
    (builder.build(), fields)
}

/// Makes the analyzer known to an index.
pub(super) fn register(index: &Index) {
    index.tokenizers().register(ANALYZER, analyzer::stemming());
}

/// A number for a path. Two paths with one number would share what is known of their files, which
/// moves a rank and breaks nothing.
fn number(path: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    hasher.finish()
}

impl Fields {
    /// The fields that are ranked, in the order of `Tuning`.
    pub(super) fn ranked(&self) -> [Field; FIELDS] {
        [
            self.title,
            self.heading,
            self.symbol,
            self.path_words,
            self.body,
        ]
    }

    /// The document of a passage.
    pub(super) fn document(&self, file: &FileChunks, chunk: &Chunk) -> TantivyDocument {
        let mut doc = TantivyDocument::default();
        doc.add_text(self.path, &file.path);
        doc.add_text(self.path_words, &file.path);
        doc.add_u64(self.file, number(&file.path));
        for (end, _) in file.path.match_indices('/').filter(|(end, _)| *end > 0) {
            doc.add_text(self.within, &file.path[..end]);
        }
        doc.add_text(self.within, &file.path);
        doc.add_text(self.kind, file.kind.as_str());
        if let Some(language) = file.language {
            doc.add_text(self.language, language);
        }
        doc.add_text(self.title, &file.title);
        doc.add_text(self.heading, &chunk.heading);
        doc.add_text(self.symbol, &chunk.symbol);
        let name = analyzer::squash(&mut analyzer::plain(), &chunk.symbol);
        if !name.is_empty() {
            doc.add_text(self.name, name);
        }
        doc.add_text(self.body, &chunk.text);
        doc.add_u64(self.line_start, u64::from(chunk.line_start));
        doc.add_u64(self.line_end, u64::from(chunk.line_end));
        doc
    }

    /// Reads a passage back.
    pub(super) fn hit(&self, doc: &TantivyDocument, score: f32) -> Hit {
        let text = |field| {
            let value = doc.get_first(field).and_then(|v| v.as_str());
            value.unwrap_or_default().to_owned()
        };
        let line = |field| {
            let value = doc.get_first(field).and_then(|v| v.as_u64());
            value.and_then(|n| u32::try_from(n).ok()).unwrap_or(1)
        };
        Hit {
            path: text(self.path),
            kind: SourceKind::from_name(&text(self.kind)).unwrap_or(SourceKind::Text),
            language: Some(text(self.language)).filter(|l| !l.is_empty()),
            title: text(self.title),
            heading: text(self.heading),
            symbol: text(self.symbol),
            line_start: line(self.line_start),
            line_end: line(self.line_end),
            text: text(self.body),
            score,
        }
    }
}
