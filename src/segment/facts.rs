//! What a segment holds: the facts that are counted while it is written. Its properties block has them, and
//! the manifest repeats them.
//!
//! ```text
//! facts := smallest key bytes  largest key  count u8  number varint*count
//!
//! bytes       := length varint, then the bytes
//! largest key := 0, or varint 1 + length, then the bytes
//! numbers     :  entries, tombstones, longest streak, ranges, smallest seq, largest seq, raw bytes,
//!                expiring, first expiry, quarter, half, three quarters, last expiry, bucket end
//! ```
//!
//! - *smallest key*, *largest key*: of an entry or a deleted range. The largest key is the end of the last
//!   range, unless no key is between that and the last entry. 0 stands for the last key of all, 64 KiB of
//!   0xff, where a range without an end ends.
//! - *count*: 14. A new fact comes last and raises the versions of segments and manifests, so that earlier
//!   builds name them. In a file of an earlier version it is missing, and reads as 0.
//! - *entries*: includes tombstones.
//! - *longest streak*: the number of tombstones (of keys and ranges) in the longest streak without a put in
//!   between. A range counts where it begins, or at the end of a salvaged segment.
//! - *ranges*: the number of ranges that the range tombstones delete.
//! - *smallest seq*, *largest seq*: sequence numbers, those of range tombstones included.
//! - *raw bytes*: the sum of key and value lengths.
//! - *expiring*: the number of puts that expire. *first expiry* to *last expiry*: when the first of them
//!   does, about when a quarter, half and three quarters have, and when the last does, in milliseconds since
//!   1970; 0 without any (`expiries.rs`).
//! - *bucket end*: when the time bucket ends that its rows belong to, in milliseconds since 1970: those that
//!   live as long as their keyspace's window have expired then. 0 outside of windowed keyspaces.
//!
//! Invalid: no entries, more tombstones and expiring puts than entries, a streak longer than the tombstones
//! and ranges together, a smallest key, sequence number or expiry above the largest, a key over 64 KiB, a
//! sequence number above 2⁶³ - 1, an expiry or a bucket's end after the year 9999, expiries without expiring
//! puts or out of order, a count above 14.

use super::expiries::{Expiries, ExpiriesBuilder};
use crate::codec::{Decoder, Encode};
use crate::key::{EntryKind, MAX_SEQ, MAX_STORED_KEY_BYTES, Seq, Time};
use crate::ranges::{RangeTombstones, last_key, put_last_key, successor, take_last_key};
use bytes::Bytes;

/// What a segment holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// The smallest key of an entry or a deleted range.
    pub smallest: Vec<u8>,
    /// The largest one. The end of a deleted range counts, although it is not deleted itself. Segments whose
    /// ranges have no end share the memory of the last key of all.
    pub largest: Bytes,
    /// Number of entries, tombstones included; never 0.
    pub entries: u64,
    /// Number of tombstones.
    pub tombstones: u64,
    /// Length of the longest streak of tombstones, of keys and ranges, without a put in between.
    pub longest_streak: u64,
    /// Number of ranges that range tombstones delete.
    pub ranges: u64,
    /// The smallest sequence number.
    pub min_seq: Seq,
    /// The largest sequence number.
    pub max_seq: Seq,
    /// Length of keys and values before compression, in bytes.
    pub raw_bytes: u64,
    /// When its rows expire.
    pub expiries: Expiries,
    /// When the time bucket of its rows ends; [`Time::START`] outside of windowed keyspaces.
    pub bucket: Time,
}

impl Facts {
    /// How many numbers an encoding has.
    pub const NUMBERS: usize = 14;
    /// No encoding is longer: two keys with their lengths, and numbers of 10 bytes.
    pub const BYTES_MAX: usize = 2 * (3 + MAX_STORED_KEY_BYTES) + 1 + 10 * Self::NUMBERS;

    /// Appends the encoding. [`decode`](Self::decode) refuses that of facts that are not
    /// [sound](Self::is_sound).
    pub fn encode(&self, out: &mut Vec<u8>) {
        let numbers = self.numbers();
        out.put_bytes(&self.smallest);
        put_last_key(out, &self.largest);
        out.put_u8(Self::NUMBERS as u8);
        numbers.iter().for_each(|&number| out.put_varint(number));
    }

    /// Decodes the next facts; `None` if they are cut short or not [sound](Self::is_sound).
    pub fn decode(fields: &mut Decoder<'_>) -> Option<Self> {
        let (smallest, largest) = (fields.bytes()?.to_vec(), take_last_key(fields)?);
        let mut numbers = [0; Self::NUMBERS];
        for number in numbers.get_mut(..fields.u8()?.into())? {
            *number = fields.varint()?;
        }
        Some(Self::new(smallest, largest, numbers)).filter(Self::is_sound)
    }

    /// The facts with these numbers, in the order of the encoding.
    #[rustfmt::skip]
    pub fn new(smallest: Vec<u8>, largest: Bytes, numbers: [u64; Self::NUMBERS]) -> Self {
        let [
            entries, tombstones, longest_streak, ranges, min_seq, max_seq, raw_bytes, count, quartiles @ .., bucket,
        ] = numbers;
        let (expiries, bucket) = (Expiries { count, quartiles }, Time::from_stored(bucket));
        Facts {
            smallest, largest, entries, tombstones, longest_streak, ranges, min_seq, max_seq, raw_bytes, expiries,
            bucket,
        }
    }

    /// The numbers, in the order of the encoding.
    #[rustfmt::skip]
    pub fn numbers(&self) -> [u64; Self::NUMBERS] {
        let Facts {
            smallest: _, largest: _, entries, tombstones, longest_streak, ranges, min_seq, max_seq, raw_bytes,
            expiries: Expiries { count, quartiles: [first, quarter, half, three, last] }, bucket,
        } = *self;
        [
            entries, tombstones, longest_streak, ranges, min_seq, max_seq, raw_bytes, count, first, quarter, half,
            three, last, bucket.millis(),
        ]
    }

    /// Whether they do not contradict each other.
    pub fn is_sound(&self) -> bool {
        self.entries > 0
            && self.tombstones.saturating_add(self.expiries.count) <= self.entries
            && self.expiries.is_sound()
            && self.bucket <= Time::MAX
            && self.longest_streak <= self.tombstones.saturating_add(self.ranges)
            && self.min_seq <= self.max_seq
            && self.max_seq <= MAX_SEQ
            && *self.smallest <= *self.largest
            && self.smallest.len().max(self.largest.len()) <= MAX_STORED_KEY_BYTES
    }

    /// From when on no put is visible, because the last one has expired; `None` if one does not expire, or
    /// there is none.
    pub fn expires_at(&self) -> Option<Time> {
        let all_expire = self.tombstones.saturating_add(self.expiries.count) == self.entries;
        self.expiries.last().filter(|_| all_expire)
    }

    /// Whether no put is visible at a moment.
    pub fn has_expired(&self, now: Time) -> bool {
        self.tombstones == self.entries || self.expires_at().is_some_and(|at| at <= now)
    }

    /// From when on more than `share` of the entries have expired, about; `None` if that never happens.
    pub fn expired_from(&self, share: f64) -> Option<Time> {
        self.expiries.when((self.entries as f64 * share) as u64 + 1)
    }

    /// Whether there are tombstones, of keys or ranges.
    pub fn has_tombstones(&self) -> bool {
        self.tombstones > 0 || self.ranges > 0
    }

    /// With the sequence number of all rows, if the footer has it; otherwise that is 0.
    pub fn numbered(self, number: Seq) -> Self {
        let [min_seq, max_seq] = [self.min_seq, self.max_seq].map(|seq| seq.saturating_add(number));
        Facts { min_seq, max_seq, ..self }
    }
}

/// Counts entries and range tombstones, in the order of a segment.
#[derive(Debug, Clone)]
pub struct FactsBuilder {
    counted: Facts,
    /// Tombstones since the last put, of keys and ranges.
    streak: u64,
    expiries: ExpiriesBuilder,
}

impl Default for FactsBuilder {
    fn default() -> Self {
        FactsBuilder {
            counted: Facts { min_seq: Seq::MAX, ..Facts::default() },
            streak: 0,
            expiries: ExpiriesBuilder::default(),
        }
    }
}

impl FactsBuilder {
    /// Number of entries so far.
    pub fn entries(&self) -> u64 {
        self.counted.entries
    }

    /// Sets when the time bucket of the rows ends.
    pub fn set_bucket(&mut self, end: Time) {
        self.counted.bucket = end;
    }

    /// Counts the next entry.
    #[inline]
    pub fn count(&mut self, key: &[u8], seq: Seq, kind: EntryKind, value_len: usize) {
        let of = &mut self.counted;
        if of.entries == 0 {
            of.smallest = key.to_vec();
        }
        of.entries += 1;
        if kind == EntryKind::TOMBSTONE {
            of.tombstones += 1;
            self.streak += 1;
            of.longest_streak = of.longest_streak.max(self.streak);
        } else {
            self.streak = 0;
        }
        if let Some(expiry) = kind.expiry() {
            self.expiries.add(expiry);
        }
        of.min_seq = of.min_seq.min(seq);
        of.max_seq = of.max_seq.max(seq);
        of.raw_bytes += (key.len() + value_len) as u64;
    }

    /// Counts ranges that begin before the next entry. [`finish`](Self::finish) counts all others as if they
    /// came after the last entry.
    pub fn pass_ranges(&mut self, count: u64) {
        self.counted.ranges += count;
        self.streak += count;
        self.counted.longest_streak = self.counted.longest_streak.max(self.streak);
    }

    /// Counts the range tombstones. `last_of_entries` is the key of the last entry.
    pub fn finish(mut self, ranges: &RangeTombstones, last_of_entries: Vec<u8>) -> Facts {
        let count = ranges.len() as u64;
        self.pass_ranges(count.saturating_sub(self.counted.ranges));
        let (largest, expiries) = (last_of_entries.into(), self.expiries.finish());
        let mut of = Facts { ranges: count, largest, expiries, ..self.counted };
        let Some((oldest, newest)) = ranges.seqs() else { return of };
        (of.min_seq, of.max_seq) = (of.min_seq.min(oldest), of.max_seq.max(newest));
        if ranges.start() < &*of.smallest {
            of.smallest = ranges.start().to_vec();
        }
        match ranges.end() {
            None => of.largest = last_key(),
            Some(end) if successor(&of.largest).is_none_or(|next| *end <= *next) => {}
            Some(end) => of.largest = Bytes::copy_from_slice(end),
        }
        of
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i14_a_fact_that_an_earlier_version_lacked_reads_as_0() {
        let facts = Facts { entries: 1, max_seq: 2, raw_bytes: 3, ..Facts::default() };
        let mut bytes = Vec::new();
        facts.encode(&mut bytes);
        let decode = |count: usize| {
            let numbers = [1, 0, 0, 0, 0, 2, 3, 0, 0, 0, 0, 0, 0, 0, 4].into_iter().take(count);
            let bytes: Vec<u8> = [0, 1, count as u8].into_iter().chain(numbers).collect();
            (Facts::decode(&mut Decoder::new(&bytes)), bytes)
        };
        assert_eq!(decode(Facts::NUMBERS), (Some(facts.clone()), bytes));
        assert_eq!(decode(Facts::NUMBERS - 7).0, Some(facts.clone()));
        assert_eq!(decode(Facts::NUMBERS - 8).0, Some(Facts { raw_bytes: 0, ..facts }));
        assert_eq!(decode(Facts::NUMBERS + 1).0, None);
    }
}
