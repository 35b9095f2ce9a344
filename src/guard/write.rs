//! Changes: durable first, then in the answers.
//!
//! 1. Take the locks of the stripes that the keys fall into: a count is read, changed and written by one thread at a time.
//! 2. Write the counts that change, and the totals, as one batch of the live generation's store.
//! 3. Under `flux`, note the changes for a refresh that is under way.

use super::generation::{Op, STRIPES};
use super::handle::{Guard, Shared};
use super::hashed::Hashed;
use crate::db::{add, lock};
use crate::error::Result;
use std::collections::{BTreeSet, HashMap};
use std::sync::MutexGuard;

/// Changes that are applied together: all or none, also after a crash.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    keys: Vec<u8>,
    /// With the end of each key in `keys`.
    changes: Vec<(Op, usize)>,
    note: Option<Vec<u8>>,
}

impl Changes {
    /// No changes.
    pub fn new() -> Self {
        Self::default()
    }

    /// A row with this key comes.
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> &mut Self {
        self.push(Op::Insert, key.as_ref())
    }

    /// A key comes, unless it is there already: for a set of keys, where each counts once.
    pub fn insert_new(&mut self, key: impl AsRef<[u8]>) -> &mut Self {
        self.push(Op::InsertNew, key.as_ref())
    }

    /// A row with this key has gone.
    pub fn remove(&mut self, key: impl AsRef<[u8]>) -> &mut Self {
        self.push(Op::Remove, key.as_ref())
    }

    /// Replaces the guard's note, together with the changes: a caller's position in the stream that they come from. Up to 64 MiB.
    pub fn note(&mut self, note: impl Into<Vec<u8>>) -> &mut Self {
        self.note = Some(note.into());
        self
    }

    /// Puts the changes of `later` behind these. Its note, if it has one, replaces this one's.
    pub fn append(&mut self, later: &Changes) -> &mut Self {
        let start = self.keys.len();
        self.keys.extend_from_slice(&later.keys);
        self.changes.extend(later.changes.iter().map(|(op, end)| (*op, start + end)));
        self.note = later.note.clone().or(self.note.take());
        self
    }

    /// How many keys it changes.
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// Whether it changes no key.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    fn push(&mut self, op: Op, key: &[u8]) -> &mut Self {
        self.keys.extend_from_slice(key);
        self.changes.push((op, self.keys.len()));
        self
    }

    fn iter(&self) -> impl Iterator<Item = (Op, &[u8])> {
        let starts = std::iter::once(0).chain(self.changes.iter().map(|(_, end)| *end));
        let slices = starts.zip(&self.changes).map(|(start, (op, end))| (*op, self.keys.get(start..*end)));
        slices.map(|(op, key)| (op, key.unwrap_or_default()))
    }
}

/// What is under way: transactions, and a refresh.
#[derive(Default)]
pub(super) struct Flux {
    /// Rises when a refresh has taken the database's moment.
    pub epoch: u64,
    /// The insertions of transactions that the database may or may not have committed by now.
    pub open: HashMap<u64, Vec<(Hashed, Op)>>,
    pub next_transaction: u64,
    pub tape: Option<Tape>,
}

/// What changed since a refresh began, to be repeated on the generation that it builds.
#[derive(Default)]
pub(super) struct Tape {
    pub changes: Vec<(Hashed, Op)>,
    /// The epoch from which a transaction's removals are surely not in the refresh's moment yet. `None` before that moment.
    pub removals_from: Option<u64>,
}

/// Where changes come from.
#[derive(Clone, Copy)]
pub(super) enum Origin {
    /// A call of its own.
    Plain,
    /// The insertions of a transaction, before the database commits.
    Begin(u64),
    /// Its removals, after the database has committed. With the epoch of its begin.
    Finish { began: u64 },
}

impl Guard {
    /// A row with this key comes. Durable when it returns: only then commit the row to the database.
    ///
    /// Use [`transaction`](Self::transaction) where a [`refresh`](Self::refresh) may run at the same time: one that reads the database
    /// between this call and the commit would not know of the row.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) for a key that the canonical form does not allow; as
    /// [`Db::put`](crate::Db::put). Then do not commit the row.
    pub fn insert(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.write(Changes::new().insert(key))
    }

    /// A row with this key has gone: its deletion is committed in the database. The key stays until its last row goes. A key that the
    /// guard does not have is counted in [`GuardStats::unknown_removals`](super::GuardStats) and otherwise fine.
    ///
    /// Use [`transaction`](Self::transaction) where a [`refresh`](Self::refresh) may run at the same time: one that begins and ends
    /// between the deletion and this call has counted without the row, and this would take away another row with the same key.
    ///
    /// # Errors
    /// As [`insert`](Self::insert). Then the key stays, which is safe.
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.write(Changes::new().remove(key))
    }

    /// A key comes, unless it is there already. Returns whether it is new: of several threads that insert one key, one is told so.
    ///
    /// For a guard that is itself the set of keys. Rows of a database are counted: use [`insert`](Self::insert) for them.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn insert_new(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.write_each(Changes::new().insert_new(key))?.contains(&true))
    }

    /// Applies several changes: all or none, also after a crash.
    ///
    /// # Errors
    /// As [`insert`](Self::insert); then nothing is applied.
    pub fn write(&self, changes: &Changes) -> Result<()> {
        self.write_each(changes).map(drop)
    }

    /// As [`write`](Self::write). Returns for each change whether it changed a count: `false` for a key that was to be removed and is not
    /// there, and for one that was to be new and is there.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_each(&self, changes: &Changes) -> Result<Vec<bool>> {
        let hash = |(op, key)| Ok((self.shared().hash(key)?, op));
        let hashed: Vec<(Hashed, Op)> = changes.iter().map(hash).collect::<Result<_>>()?;
        self.shared().apply(&hashed, changes.note.as_deref(), Origin::Plain)
    }
}

impl Shared {
    /// Whether each change that was not left out changed a count.
    pub fn apply(&self, changes: &[(Hashed, Op)], note: Option<&[u8]>, origin: Origin) -> Result<Vec<bool>> {
        self.check_writable()?;
        let _stripes = self.lock_stripes(changes, note.is_some());
        let live = self.live.load_full();
        let is_certain = |op| match origin {
            Origin::Finish { began } => op != Op::Remove || began >= live.since,
            Origin::Plain | Origin::Begin(_) => true,
        };
        let certain: Vec<_> = changes.iter().copied().filter(|(_, op)| is_certain(*op)).collect();
        let done = live.apply(&certain, note, self.options.durability)?;
        let unknown = certain.iter().zip(&done).filter(|((_, op), done)| *op == Op::Remove && !**done);
        add(&self.counters.unknown_removals, unknown.count() as u64);
        let mut doubtful = changes.len() - certain.len();
        let mut flux = lock(&self.flux);
        if let Some(tape) = &mut flux.tape {
            for &(hash, op) in changes {
                let is_after = match origin {
                    Origin::Finish { began } => tape.removals_from.is_some_and(|from| began >= from),
                    Origin::Plain | Origin::Begin(_) => false,
                };
                match op {
                    Op::Remove if !is_after => doubtful += 1,
                    _ => tape.changes.push((hash, op)),
                }
            }
        }
        if let Origin::Begin(id) = origin {
            flux.open.insert(id, changes.to_vec());
        }
        add(&self.counters.doubtful_removals, doubtful as u64);
        Ok(done)
    }

    /// The locks of all stripes that the changes touch, in order. The note counts as a change of the first stripe: one that comes alone
    /// must not go to a generation that a refresh is about to leave.
    fn lock_stripes(&self, changes: &[(Hashed, Op)], has_note: bool) -> Vec<MutexGuard<'_, ()>> {
        let of_note = has_note.then_some(0);
        let touched: BTreeSet<usize> =
            changes.iter().map(|(hash, _)| hash.stripe(STRIPES)).chain(of_note).collect();
        touched.into_iter().filter_map(|stripe| self.stripes.get(stripe)).map(lock).collect()
    }

    /// Keeps every change out.
    pub fn lock_all_stripes(&self) -> Vec<MutexGuard<'_, ()>> {
        self.stripes.iter().map(lock).collect()
    }
}
