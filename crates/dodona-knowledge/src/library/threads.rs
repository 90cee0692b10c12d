//! Entries of threads, among everything else that is found.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use dodona_plugin::CallError;

use super::shelf::{Shelf, THREAD, blocking, index_error};

/// Before it is known which entries the index has.
pub(super) const NOT_YET: i64 = -1;

/// How many entries one step takes in.
const STEP: usize = 500;

impl Shelf {
    /// Takes in the entries that are new. What an index has from earlier is asked once; one that was
    /// made anew has nothing.
    pub(super) async fn take_in_threads(&self) -> Result<(), CallError> {
        let Some(threads) = self.told.threads.get() else {
            return Ok(());
        };
        let until = self.threads_until.load(Ordering::Acquire);
        let mut entries = threads.since(self, until.max(0)).await?;
        let Some(newest) = entries.last().map(|(id, _)| *id) else {
            self.threads_until.store(until.max(0), Ordering::Release);
            return Ok(());
        };
        if until == NOT_YET {
            let known = self.threads_in_index().await?;
            entries.retain(|(_, passages)| !known.contains(&passages.path));
        }
        let passages: Vec<_> = entries.into_iter().map(|(_, passages)| passages).collect();
        for step in passages.chunks(STEP) {
            self.replace(step.to_vec()).await?;
        }
        self.threads_until.store(newest, Ordering::Release);
        Ok(())
    }

    async fn threads_in_index(&self) -> Result<HashSet<String>, CallError> {
        let index = Arc::clone(&self.index);
        let mut paths = blocking(move || index.paths())
            .await?
            .map_err(index_error)?;
        paths.retain(|path| path.starts_with(THREAD));
        Ok(paths.into_iter().collect())
    }
}
