//! The directory of an index: opened if it is ours and whole, made anew otherwise.

use std::path::Path;
use std::{fs, io};

use tantivy::{Index, IndexReader, ReloadPolicy};

use super::schema::{self, Fields, VERSION};

/// Says which version wrote the index. It is written with the first passages and not before: what
/// else is known of the files is cleared in between, and a process that dies there has to begin
/// anew.
const VERSION_FILE: &str = "dodona-search.version";

/// Blocks of stored text kept per segment. Few: an answer reads ten passages.
const CACHED_BLOCKS: usize = 8;

/// Opens or makes the index; the last value says which.
pub(super) fn open(dir: &Path) -> tantivy::Result<(Index, IndexReader, Fields, bool)> {
    match open_existing(dir) {
        Ok(Some((index, reader, fields))) => return Ok((index, reader, fields, false)),
        Ok(None) => {}
        Err(error) => tracing::warn!(%error, dir = %dir.display(), "search index unreadable"),
    }
    let (index, reader, fields) = create(dir)?;
    Ok((index, reader, fields, true))
}

/// None when there is no index of this version.
fn open_existing(dir: &Path) -> tantivy::Result<Option<(Index, IndexReader, Fields)>> {
    match fs::read_to_string(dir.join(VERSION_FILE)) {
        Ok(version) if version == VERSION => {}
        Ok(_) => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let index = Index::open_in_dir(dir)?;
    let (expected, fields) = schema::schema();
    if index.schema() != expected {
        return Ok(None);
    }
    schema::register(&index);
    let reader = reader(&index)?;
    Ok(Some((index, reader, fields)))
}

fn create(dir: &Path) -> tantivy::Result<(Index, IndexReader, Fields)> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        _ => fs::create_dir_all(dir)?,
    }
    let (schema, fields) = schema::schema();
    let index = Index::create_in_dir(dir, schema)?;
    schema::register(&index);
    let reader = reader(&index)?;
    Ok((index, reader, fields))
}

/// From now on the index is to be kept.
pub(super) fn keep(dir: &Path) -> io::Result<()> {
    fs::write(dir.join(VERSION_FILE), VERSION)
}

fn reader(index: &Index) -> tantivy::Result<IndexReader> {
    index
        .reader_builder()
        .reload_policy(ReloadPolicy::Manual)
        .doc_store_cache_num_blocks(CACHED_BLOCKS)
        .try_into()
}
