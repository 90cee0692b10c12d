//! The one who changes the notes of a project: one change at a time, each of them whole.
//!
//! A change is written down first, with everything that is in the files before and after. Then the
//! files are changed, and then it is written down that they are. Whatever ends the process in
//! between, the next one finds what was begun and finishes it, or takes it back.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::{Mutex, OwnedMutexGuard};

use super::apply::{self, Numbered, Outcome, Stand};
use super::change::{ChangeId, Edit, Found, Planned, Why, version_of};
use super::error::{MAX_NOTE, MAX_NOTES, WriteError};
use super::ledger::Ledger;
use super::outside;
use super::path::PathError;
use crate::library::{FileAccess, Shelf, blocking};

/// How often a change is planned anew because somebody else was faster.
const ATTEMPTS: usize = 5;

/// Looks at the disk and says what to change, with what is there. Asked again when that turns out
/// to have changed meanwhile.
pub(super) type Plan = Arc<dyn Fn(&Path) -> Result<Vec<Planned>, WriteError> + Send + Sync>;

/// A change that was made.
#[derive(Debug)]
pub(super) struct Made {
    /// Nothing where there was nothing to change.
    pub(super) change: Option<ChangeId>,
    pub(super) edits: Vec<Edit>,
}

/// Whether what was begun is also finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Books {
    Open,
    Settled,
}

/// Changes the notes of one project.
pub(super) struct Scribe {
    pub(super) root: PathBuf,
    access: FileAccess,
    pub(super) ledger: Ledger,
    /// Held while notes change, so that changes come one after the other.
    books: Mutex<Books>,
    /// Held from before a change is thought of until it is made.
    turns: Arc<Mutex<()>>,
}

/// The right to make the next change: whatever it is planned from stays as it is until it is made.
pub(super) struct Turn {
    shelf: Arc<Shelf>,
    _alone: OwnedMutexGuard<()>,
}

impl Drop for Turn {
    /// Whoever is next looks at the disk again.
    fn drop(&mut self) {
        self.shelf.touch();
    }
}

impl Scribe {
    /// For a project's directory, which is canonical. What another process left unfinished is
    /// settled before the first use.
    pub(super) fn new(root: PathBuf, access: FileAccess, ledger: Ledger) -> Self {
        Self {
            root,
            access,
            ledger,
            books: Mutex::new(Books::Open),
            turns: Arc::default(),
        }
    }

    /// Waits until nobody else is about to change notes.
    pub(super) async fn turn(&self, shelf: &Arc<Shelf>) -> Turn {
        Turn {
            _alone: Arc::clone(&self.turns).lock_owned().await,
            shelf: Arc::clone(shelf),
        }
    }

    /// Makes a change. It goes on when nobody waits for it any more: a change that is begun is
    /// finished.
    pub(super) async fn change(
        self: &Arc<Self>,
        turn: Turn,
        why: Why,
        undoes: Vec<ChangeId>,
        plan: Plan,
    ) -> Result<Made, WriteError> {
        let scribe = Arc::clone(self);
        let made = tokio::spawn(async move {
            let mut books = scribe.books.lock().await;
            scribe.settle(&mut books).await?;
            let made = scribe.make(&mut books, why, undoes, plan).await;
            drop(turn);
            made
        });
        made.await.map_err(|_| WriteError::Lost)?
    }

    /// Settles what was left unfinished, if anything was.
    pub(super) async fn open(&self) -> Result<(), WriteError> {
        self.settle(&mut *self.books.lock().await).await
    }

    /// Keeps what somebody else did to notes, of which these are the paths and versions that were
    /// seen last.
    pub(super) async fn notice(&self, notes: Vec<(String, String)>) -> Result<(), WriteError> {
        let mut books = self.books.lock().await;
        self.settle(&mut books).await?;
        let heads = self.ledger.heads().await?;
        let root = self.root.clone();
        let found = run(move || Ok(outside::compare(&root, notes, heads))).await?;
        Ok(self.ledger.found(found).await?)
    }

    /// Refuses a plan that touches a closed file, whichever method made it.
    fn check_open(&self, plan: &[Planned]) -> Result<(), WriteError> {
        for planned in plan {
            let checked = self.access.check(&self.root, Path::new(&planned.path));
            checked.map_err(|why| PathError::Closed {
                path: planned.path.clone(),
                why,
            })?;
        }
        Ok(())
    }

    async fn make(
        &self,
        books: &mut Books,
        why: Why,
        undoes: Vec<ChangeId>,
        plan: Plan,
    ) -> Result<Made, WriteError> {
        let mut busy = String::new();
        for _ in 0..ATTEMPTS {
            let (root, look) = (self.root.clone(), Arc::clone(&plan));
            let mut plan = run(move || look(&root)).await?;
            plan.retain(|planned| planned.before != planned.after);
            check(&plan)?;
            self.check_open(&plan)?;
            if plan.is_empty() {
                return Ok(Made {
                    change: None,
                    edits: Vec::new(),
                });
            }
            apply::order(&mut plan);
            self.notice_of(&plan).await?;
            *books = Books::Open;
            let change = self
                .ledger
                .intend(why.clone(), plan.clone(), undoes.clone())
                .await?;
            let edits = plan.iter().map(Edit::from).collect();
            let root = self.root.clone();
            let applied = run(move || {
                let numbered: Vec<_> = plan.iter().enumerate().collect();
                apply::apply(&root, change, &numbered)
            });
            match applied.await {
                Ok(Outcome::Done) => {
                    self.ledger.settle(change).await?;
                    *books = Books::Settled;
                    let change = Some(change);
                    return Ok(Made { change, edits });
                }
                Ok(Outcome::Interfered { path, lost }) => {
                    self.ledger.abandon(change).await?;
                    *books = Books::Settled;
                    self.keep(&path, lost).await?;
                    busy = path;
                }
                Err(error) => {
                    // What cannot be settled now is before the next change.
                    if let Err(later) = self.settle(books).await {
                        tracing::warn!(change, error = %later, "a change of notes that failed is not settled yet");
                    }
                    return Err(error);
                }
            }
        }
        Err(WriteError::Busy { path: busy })
    }

    /// What is on the disk and was never seen becomes a version before it is written over.
    async fn notice_of(&self, plan: &[Planned]) -> Result<(), WriteError> {
        let heads = self.ledger.heads().await?;
        let unseen = plan.iter().filter_map(|planned| {
            let before = heads.get(&planned.path).cloned();
            let here = planned.before.as_deref().map(version_of);
            (here != before).then(|| Found {
                path: planned.path.clone(),
                before,
                after: planned.before.clone(),
                origin: None,
            })
        });
        Ok(self.ledger.found(unseen.collect()).await?)
    }

    /// Keeps what somebody else had written and was written over at once.
    async fn keep(&self, path: &str, lost: Option<Vec<u8>>) -> Result<(), WriteError> {
        let Some(bytes) = lost else { return Ok(()) };
        let before = self.ledger.heads().await?.remove(path);
        let found = Found {
            path: path.to_owned(),
            before,
            after: Some(bytes),
            origin: None,
        };
        Ok(self.ledger.found(vec![found]).await?)
    }

    /// Finishes what was begun, or takes it back.
    async fn settle(&self, books: &mut Books) -> Result<(), WriteError> {
        if *books == Books::Settled {
            return Ok(());
        }
        for (change, edits) in self.ledger.intended().await? {
            let versions = edits
                .iter()
                .flat_map(|edit| [edit.before.clone(), edit.after.clone()]);
            let contents = self.ledger.contents(versions.flatten().collect()).await?;
            let bytes =
                |version: &Option<String>| version.as_ref().and_then(|v| contents.get(v).cloned());
            let plan: Vec<Planned> = edits
                .iter()
                .map(|edit| Planned {
                    path: edit.path.clone(),
                    before: bytes(&edit.before),
                    after: bytes(&edit.after),
                    origin: edit.origin.clone(),
                })
                .collect();
            let root = self.root.clone();
            match run(move || resume(&root, change, &edits, &plan)).await? {
                Resumed::Finished => self.ledger.settle(change).await?,
                Resumed::TakenBack => self.ledger.abandon(change).await?,
            }
            tracing::info!(change, root = %self.root.display(), "a change of notes that was interrupted is settled");
        }
        *books = Books::Settled;
        Ok(())
    }
}

/// How a change that was interrupted was settled.
enum Resumed {
    Finished,
    TakenBack,
}

/// A change of which nothing is on the disk is not made at all: nobody was told that it is. One that
/// was begun is finished, unless somebody has changed one of its files since: then all of it is taken
/// back, so that links and notes fit each other.
fn resume(
    root: &Path,
    change: ChangeId,
    edits: &[Edit],
    plan: &[Planned],
) -> Result<Resumed, WriteError> {
    let mut stands = Vec::with_capacity(edits.len());
    for (n, edit) in edits.iter().enumerate() {
        stands.push(apply::inspect(root, change, n, edit)?);
    }
    let of = |stand: Stand| -> Vec<Numbered<'_>> {
        let numbered = plan.iter().enumerate();
        numbered.filter(|(n, _)| stands[*n] == stand).collect()
    };
    let (made, left) = (of(Stand::After), of(Stand::Before));
    if made.is_empty() {
        return Ok(Resumed::TakenBack);
    }
    if !stands.contains(&Stand::Other)
        && matches!(apply::apply(root, change, &left)?, Outcome::Done)
    {
        return Ok(Resumed::Finished);
    }
    apply::take_back(root, change, &made)?;
    Ok(Resumed::TakenBack)
}

fn check(plan: &[Planned]) -> Result<(), WriteError> {
    if plan.len() > MAX_NOTES {
        return Err(WriteError::TooMany { count: plan.len() });
    }
    for Planned { path, after, .. } in plan {
        let size = after.as_ref().map_or(0, Vec::len);
        if size > MAX_NOTE {
            let path = path.clone();
            return Err(WriteError::TooLarge { path, size });
        }
    }
    Ok(())
}

async fn run<R: Send + 'static>(
    work: impl FnOnce() -> Result<R, WriteError> + Send + 'static,
) -> Result<R, WriteError> {
    blocking(work).await.map_err(|_| WriteError::Lost)?
}
