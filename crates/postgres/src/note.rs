//! The note of a followed guard: which outbox it follows, and which of its changes the guard has.
//!
//! ```text
//! offset  size  field
//!      0     4  "pgf", version 1
//!      4     8  token of the followed outbox
//!     12     …  ranges of ids: for each, the distance from the end of the previous one, and its length minus
//!               one, as varints
//! ```
//! With any other note, the guard is refreshed before it follows.

use sidebloom_filter::codec::{Decoder, Encode};

const MAGIC: &[u8; 4] = b"pgf\x01";

/// Changes that are in the guard, and perhaps still in the outbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    pub token: u64,
    pub ids: Ids,
}

/// Ascending ids, stored as the first and last of each range.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ids(Vec<(i64, i64)>);

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

    /// The first and last ids of all ranges, in two columns.
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

    /// `None` unless it is a follower's note.
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
    fn ids_round_trip_as_ranges() {
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
    fn a_million_consecutive_changes_take_a_few_bytes() {
        let mut ids = Ids::default();
        (5..1_000_005).for_each(|id| ids.push(id));
        assert!(Note { token: 1, ids }.encode().len() <= 16);
    }
}
