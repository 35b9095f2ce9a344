//! What a segment holds, counted while it is written and read back from its properties block. The byte map is
//! in [`format`](mod@super::format).

use super::format::{Compression, Location, Parsed};
use crate::codec::{Decoder, Encode};
use crate::error::{Error, Result};
use crate::hash::{KeyHasher, is_newer_code};
use crate::key::{EntryKind, MAX_SEQ, Seq, check_seq};
use crate::ranges::{RangeTombstones, last_key, put_last_key, successor, take_last_key};
use bytes::Bytes;

/// The numbers before the code of the hash.
const NUMBERS_BYTES: usize = 8 * 8;

/// What identifies a store: set when it is created, never changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreIdentity {
    /// A random number. Binds logs and segments to their store.
    pub store_id: u64,
    /// The key hash.
    pub hasher: KeyHasher,
}

/// The contents of the properties block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Properties {
    /// Number of entries, tombstones included.
    pub entries: u64,
    /// Number of tombstones.
    pub tombstones: u64,
    /// Length of the longest streak of tombstones, of keys and ranges, without a put in between.
    pub longest_streak: u64,
    /// Number of ranges that range tombstones delete.
    pub ranges: u64,
    /// Smallest sequence number.
    pub min_seq: Seq,
    /// Largest sequence number.
    pub max_seq: Seq,
    /// Sum of key and value lengths.
    pub raw_bytes: u64,
    /// The store.
    pub store: StoreIdentity,
    /// The writer's setting.
    pub compression: Compression,
    /// The smallest key of an entry or a deleted range.
    pub smallest: Vec<u8>,
    /// The largest one.
    pub largest: Bytes,
}

/// Counts entries and range tombstones, in the order of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PropertiesBuilder {
    counted: Properties,
    /// Tombstones since the last put, of keys and ranges.
    streak: u64,
    /// The ranges among all tombstones so far.
    ranges: u64,
}

impl PropertiesBuilder {
    /// The properties of a segment without entries.
    pub fn new(store: StoreIdentity, compression: Compression) -> Self {
        let (smallest, largest) = (Vec::new(), Bytes::new());
        let (entries, tombstones, longest_streak, ranges, min_seq, max_seq, raw_bytes) =
            (0, 0, 0, 0, Seq::MAX, 0, 0);
        #[rustfmt::skip]
        let counted = Properties {
            entries, tombstones, longest_streak, ranges, min_seq, max_seq, raw_bytes, store, compression, smallest, largest,
        };
        PropertiesBuilder { counted, streak: 0, ranges: 0 }
    }

    /// The store.
    pub fn store(&self) -> StoreIdentity {
        self.counted.store
    }

    /// Number of entries so far.
    pub fn entries(&self) -> u64 {
        self.counted.entries
    }

    /// Counts the next entry.
    #[inline]
    pub fn count(&mut self, key: &[u8], seq: Seq, kind: EntryKind, value_len: usize) {
        let of = &mut self.counted;
        if of.entries == 0 {
            of.smallest = key.to_vec();
        }
        of.entries += 1;
        if kind == EntryKind::Tombstone {
            of.tombstones += 1;
            self.streak += 1;
            of.longest_streak = of.longest_streak.max(self.streak);
        } else {
            self.streak = 0;
        }
        of.min_seq = of.min_seq.min(seq);
        of.max_seq = of.max_seq.max(seq);
        of.raw_bytes += (key.len() + value_len) as u64;
    }

    /// Counts ranges that begin before the next entry. [`finish`](Self::finish) counts all others as if they
    /// came after the last entry.
    pub fn pass_ranges(&mut self, count: u64) {
        self.ranges += count;
        self.streak += count;
        self.counted.longest_streak = self.counted.longest_streak.max(self.streak);
    }

    /// Counts the range tombstones. `last_of_entries` is the key of the last entry.
    pub fn finish(mut self, ranges: &RangeTombstones, last_of_entries: Vec<u8>) -> Properties {
        let count = ranges.len() as u64;
        self.pass_ranges(count.saturating_sub(self.ranges));
        let (mut of, largest) = (self.counted, Bytes::from(last_of_entries));
        let Some((oldest, newest)) = ranges.seqs() else {
            return Properties { largest, ..of };
        };
        of.ranges = count;
        (of.min_seq, of.max_seq) = (of.min_seq.min(oldest), of.max_seq.max(newest));
        if ranges.start() < &*of.smallest {
            of.smallest = ranges.start().to_vec();
        }
        let behind = successor(&largest);
        of.largest = match ranges.end() {
            None => last_key(),
            Some(end) if behind.is_none_or(|behind| *end <= *behind) => largest,
            Some(end) => Bytes::copy_from_slice(end),
        };
        of
    }
}

impl Properties {
    /// With the sequence number of all rows, if the footer has it; otherwise that is 0.
    pub fn numbered(self, number: Seq) -> Self {
        let [min_seq, max_seq] = [self.min_seq, self.max_seq].map(|seq| seq.saturating_add(number));
        Properties { min_seq, max_seq, ..self }
    }

    /// Appends the payload of the properties block.
    ///
    /// # Errors
    /// [`Error::NumbersExhausted`]; [`Error::Unencodable`] for what [`decode`](Self::decode) refuses.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<()> {
        check_seq(self.max_seq)?;
        if !self.is_sensible() {
            let why = "they contradict themselves".into();
            return Err(Error::Unencodable { what: "the properties of a segment", why });
        }
        let StoreIdentity { store_id, hasher } = self.store;
        let counts = [self.entries, self.tombstones, self.longest_streak, self.ranges];
        let sums = counts.into_iter().chain([self.min_seq, self.max_seq, self.raw_bytes]);
        sums.chain([store_id]).for_each(|number| out.put_u64(number));
        let (code, key) = hasher.to_code();
        out.put_u8(code);
        key.iter().for_each(|&word| out.put_u64(word));
        out.put_bytes(self.compression.name().as_bytes());
        out.put_bytes(&self.smallest);
        put_last_key(out, &self.largest);
        Ok(())
    }

    fn is_sensible(&self) -> bool {
        self.entries > 0
            && self.tombstones <= self.entries
            && self.longest_streak <= self.tombstones.saturating_add(self.ranges)
            && self.min_seq <= self.max_seq
            && self.max_seq <= MAX_SEQ
            && *self.smallest <= *self.largest
    }

    /// Decodes the payload of the properties block at `location`.
    ///
    /// # Errors
    /// [`Error::Corruption`], or [`Error::UnknownCode`] for a newer version's hash, compression or field.
    pub fn decode(location: Location<'_>, payload: &[u8]) -> Result<Self> {
        match Self::parse(payload) {
            Ok(properties) => Ok(properties),
            Err(what) => Err(match unknown_code(payload) {
                Some(unknown) => location.unknown_code(unknown),
                None => location.damaged(what),
            }),
        }
    }

    fn parse(payload: &[u8]) -> Parsed<Self> {
        let mut fields = Decoder::new(payload);
        let mut decode = || -> Option<Properties> {
            Some(Properties {
                entries: fields.u64()?,
                tombstones: fields.u64()?,
                longest_streak: fields.u64()?,
                ranges: fields.u64()?,
                min_seq: fields.u64()?,
                max_seq: fields.u64()?,
                raw_bytes: fields.u64()?,
                store: StoreIdentity {
                    store_id: fields.u64()?,
                    hasher: KeyHasher::from_code(fields.u8()?, [fields.u64()?, fields.u64()?])?,
                },
                compression: Compression::from_name(fields.bytes()?)?,
                smallest: fields.bytes()?.to_vec(),
                largest: take_last_key(&mut fields)?,
            })
        };
        let properties = decode().ok_or("the properties do not parse")?;
        if !properties.is_sensible() || fields.remaining() != 0 {
            return Err("the properties contradict themselves");
        }
        Ok(properties)
    }
}

/// The hash, compression or field in a payload that does not parse, if it belongs to a newer version.
fn unknown_code(payload: &[u8]) -> Option<String> {
    let mut fields = Decoder::new(payload);
    fields.take(NUMBERS_BYTES)?;
    let hash = fields.u8()?;
    if is_newer_code(hash) {
        return Some(format!("hash code {hash} in its properties"));
    }
    fields.take(16)?;
    let name = fields.bytes()?;
    if Compression::from_name(name).is_none() && !name.is_empty() {
        return Some(format!("compression \"{}\" in its properties", name.escape_ascii()));
    }
    fields.bytes()?;
    take_last_key(&mut fields)?;
    let field = fields.u8().filter(|&code| code > 0)?;
    Some(format!("field {field} in its properties"))
}
