//! The note that a followed guard keeps: whose changes it has had, and which.
//!
//! ```text
//! offset  size  field
//!      0     4  "pgf", version 1
//!      4     8  the token of the outbox that it follows
//!     12     …  ranges of ids: for each, the distance from the end of the one before and the length less one, two varints
//! ```
//! Anything else is no position: the guard is refreshed before it follows.

use crate::codec::{Decoder, Encode};

const MAGIC: &[u8; 4] = b"pgf\x01";

/// Ids of changes that are in the guard, and perhaps still in the outbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Note {
    pub token: u64,
    pub ids: Ids,
}

/// Ascending ids, as first and last of each run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Ids(Vec<(i64, i64)>);

impl Ids {
    /// Adds an id above all others.
    pub fn push(&mut self, id: i64) {
        match self.0.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(id) => *last = id,
            _ => self.0.push((id, id)),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// First and last id of each run, in two columns.
    pub fn columns(&self) -> (Vec<i64>, Vec<i64>) {
        self.0.iter().copied().unzip()
    }
}

impl Note {
    pub fn encode(&self) -> Vec<u8> {
        let mut buf = Vec::with_capacity(16 + 4 * self.ids.0.len());
        buf.extend_from_slice(MAGIC);
        buf.put_u64(self.token);
        let mut end = 0i64;
        for &(first, last) in &self.ids.0 {
            buf.put_varint(first.wrapping_sub(end) as u64);
            buf.put_varint(last.wrapping_sub(first) as u64);
            end = last;
        }
        buf
    }

    /// `None` for anything that is no note of a follower.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut fields = Decoder::new(bytes);
        if fields.take(MAGIC.len())? != MAGIC {
            return None;
        }
        let token = fields.u64()?;
        let mut ids = Vec::new();
        let mut end = 0i64;
        while fields.remaining() > 0 {
            let first = end.checked_add_unsigned(fields.varint()?)?;
            end = first.checked_add_unsigned(fields.varint()?)?;
            ids.push((first, end));
        }
        Some(Note { token, ids: Ids(ids) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_kept_as_runs_and_come_back() {
        let mut ids = Ids::default();
        [1, 2, 3, 7, 9, 10, i64::MAX].into_iter().for_each(|id| ids.push(id));
        assert_eq!(ids.columns(), (vec![1, 7, 9, i64::MAX], vec![3, 7, 10, i64::MAX]));
        let note = Note { token: u64::MAX - 5, ids };
        let bytes = note.encode();
        assert_eq!(Note::decode(&bytes), Some(note));
        assert!(bytes.len() < 4 + 8 + 6 + 12, "{}", bytes.len());
        for cut in 0..12 {
            assert_eq!(Note::decode(&bytes[..cut]), None);
        }
        assert_eq!(Note::decode(b"somebody else's note"), None);
    }

    #[test]
    fn a_million_changes_in_a_row_take_a_few_bytes() {
        let mut ids = Ids::default();
        (5..1_000_005).for_each(|id| ids.push(id));
        assert!(Note { token: 1, ids }.encode().len() <= 16);
    }
}
