//! Changes that are applied together.

use crate::key::Expiry;

/// How a change affects a key's count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangeKind {
    Insert,
    /// Inserts only if the key is missing.
    InsertNew,
    /// Inserts a key that expires, only if it is missing.
    InsertExpiring(Expiry),
    /// Puts a key that expires back, as it was before a refresh.
    KeepExpiring(Expiry),
    /// Removes a row, or the key that expires if there is no row.
    Remove,
    /// Removes a row, during a refresh.
    RemoveRow,
    /// Removes a key that expires, during a refresh.
    RemoveExpiring,
}

/// What a change did to a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    Nothing,
    Row,
    Expiring,
}

/// Changes that are applied together: all or none, even after a crash.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    keys: Vec<u8>,
    /// With the end of each key in `keys`.
    changes: Vec<(ChangeKind, usize)>,
    note: Option<Vec<u8>>,
}

impl Changes {
    /// No changes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Inserts a row with this key.
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> &mut Self {
        self.push(ChangeKind::Insert, key.as_ref())
    }

    /// Inserts a key unless it exists: for a set of keys, where each counts once.
    pub fn insert_new(&mut self, key: impl AsRef<[u8]>) -> &mut Self {
        self.push(ChangeKind::InsertNew, key.as_ref())
    }

    /// Inserts a key unless it exists, until it expires: then it is absent again. An existing key is left as
    /// it is. A moment that has passed inserts nothing, also where the key is new.
    ///
    /// Keys that expire are in no count of [`GuardStats`](super::GuardStats). A later insertion without an
    /// expiry makes the key stay. A removal removes a row before a key that expires.
    pub fn insert_new_with(&mut self, key: impl AsRef<[u8]>, expiry: Expiry) -> &mut Self {
        self.push(ChangeKind::InsertExpiring(expiry), key.as_ref())
    }

    /// Removes one row with this key.
    pub fn remove(&mut self, key: impl AsRef<[u8]>) -> &mut Self {
        self.push(ChangeKind::Remove, key.as_ref())
    }

    /// Replaces the guard's note together with the changes: the caller's position in the stream that they
    /// come from. Up to 64 MiB.
    pub fn note(&mut self, note: impl Into<Vec<u8>>) -> &mut Self {
        self.note = Some(note.into());
        self
    }

    /// Appends the changes of `later`. Its note, if any, replaces this one's.
    pub fn append(&mut self, later: &Changes) -> &mut Self {
        let start = self.keys.len();
        self.keys.extend_from_slice(&later.keys);
        self.changes.extend(later.changes.iter().map(|(kind, end)| (*kind, start + end)));
        self.note = later.note.clone().or(self.note.take());
        self
    }

    /// The number of changes.
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// Whether no key changes.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    fn push(&mut self, kind: ChangeKind, key: &[u8]) -> &mut Self {
        self.keys.extend_from_slice(key);
        self.changes.push((kind, self.keys.len()));
        self
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (ChangeKind, &[u8])> {
        let starts = std::iter::once(0).chain(self.changes.iter().map(|(_, end)| *end));
        let slices =
            starts.zip(&self.changes).map(|(start, (kind, end))| (*kind, self.keys.get(start..*end)));
        slices.map(|(kind, key)| (kind, key.unwrap_or_default()))
    }

    pub(super) fn new_note(&self) -> Option<&[u8]> {
        self.note.as_deref()
    }
}
