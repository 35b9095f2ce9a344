//! Moving a filter between servers while both work, as `SCANDUMP` and `LOADCHUNK` do.
//!
//! ```text
//! chunk  = magic "SBLDUMP1", kind u8 (0 head, 1 rows), payload, CRC-32 of all that, u32
//! head   = the filter's record (record.rs), without its totals and its expiry
//! rows   = mark u64, (hash u128 big-endian, count varint)*
//! ```
//!
//! - *mark*: the first half of the hash of nothing, under the filter's key: rows of another filter are
//!   refused.
//! - *hash*, *count*: those of a row. Hashes ascend.
//!
//! A filter with the head's parameters and key of the hash is created first. Then the rows are put, in any
//! order and as often as one likes: a row of a chunk replaces that of the filter. Items that are added to the
//! first filter during a dump may be missing from it.
//!
//! Positions are those of RedisBloom's protocol: 0 asks for the head, which is loaded at position 1; position
//! p ≥ 1 asks for rows whose hash has p - 1 or more in its first 62 bits, which are loaded at the next
//! position, at least 2. After the last chunk, the next position is 0.

use super::filter::Filter;
use super::keys::Created;
use super::parameters::Kind;
use super::record::{ITEMS_MAX, ItemKey, Record, Totals, decode_count, encode_count};
use super::refusal::{Refusal, Result};
use super::store::Filters;
use sidebloom::Batch;
use sidebloom_filter::codec::{Decoder, Encode, crc32};
use std::sync::Arc;

const MAGIC: &[u8; 8] = b"SBLDUMP1";
const HEAD: u8 = 0;
pub(super) const ROWS: u8 = 1;
const CRC_BYTES: usize = 4;
/// Rows of a chunk, at least, unless there are no more: about 300 KB.
const ROWS_MIN: usize = 1 << 14;
/// Rows of a chunk, at most: of random hashes, no two are alike where it has to end. Those that a client has
/// chosen may be.
pub(super) const ROWS_MAX: usize = 2 * ROWS_MIN;
/// Bits of a hash that are not part of a position, so that all positions fit in an i64.
const BELOW_POSITION: u32 = 128 - 62;

impl Filters {
    /// The part of a filter at a position, and the position of the next one. 0 and nothing after the last.
    ///
    /// # Errors
    /// [`Refusal::Store`]; [`Refusal::NoDump`] for a filter that was loaded from a dump made by hand.
    pub fn dump(&self, filter: &Filter, position: u64) -> Result<(u64, Vec<u8>)> {
        let Some(first) = position.checked_sub(1) else {
            let record = Record { expires_at: 0, ..filter.record(Totals::default()) };
            return Ok((1, seal(HEAD, &record.encode())));
        };
        let Some(first) = start_of(first) else { return Ok((0, Vec::new())) };
        let (mut payload, mut count, mut last) = (mark_of(filter).to_le_bytes().to_vec(), 0, None);
        let (from, to) = (filter.key(first), filter.key(u128::MAX));
        let mut rows = self.items.range(from.as_ref()..=to.as_ref());
        while let Some((key, value)) = rows.next_row()? {
            let (_, hash) = ItemKey::split(key).ok_or_else(|| self.damaged("the key of an item"))?;
            if count >= ROWS_MIN && last.is_some_and(|last| last != hash >> BELOW_POSITION) {
                break;
            }
            if count == ROWS_MAX {
                return Err(Refusal::NoDump);
            }
            last = Some(hash >> BELOW_POSITION);
            count += 1;
            payload.extend_from_slice(&hash.to_be_bytes());
            payload.put_varint(decode_count(value).ok_or_else(|| self.damaged("the count of an item"))?);
        }
        match last {
            None => Ok((0, Vec::new())),
            Some(last) => Ok((last as u64 + 2, seal(ROWS, &payload))), // One more, counted from 1.
        }
    }

    /// Creates the filter that the head of a dump describes.
    ///
    /// # Errors
    /// [`Refusal::BadChunk`], also for one of the other kind; [`Refusal::Exists`]; the errors of
    /// [`create`](Self::create).
    pub fn load_head(&self, database: u8, name: &[u8], kind: Kind, chunk: &[u8]) -> Result<()> {
        let record = open(HEAD, chunk).and_then(|payload| Record::decode(payload).ok());
        let Some(record) = record.filter(|record| record.parameters.kind() == kind) else {
            return Err(Refusal::BadChunk);
        };
        match self.create_with_key(database, name, record.parameters, record.hash_key)? {
            Created::New(_) => Ok(()),
            Created::Existing(_) => Err(Refusal::Exists),
        }
    }

    /// Puts the rows of a part of a dump into a filter that was created with the head of that dump.
    ///
    /// # Errors
    /// [`Refusal::BadChunk`], also for rows of another filter; [`Refusal::Full`] for more than it can have;
    /// [`Refusal::NotFound`] if the filter was deleted; [`Refusal::Store`].
    pub fn load_rows(&self, filter: &Arc<Filter>, chunk: &[u8]) -> Result<()> {
        let rows = open(ROWS, chunk).and_then(|payload| decode_rows(payload, filter));
        let rows = rows.ok_or(Refusal::BadChunk)?;
        let _changing = self.change();
        let Some(place) = self.names.place_of(filter.id()) else { return Err(Refusal::NotFound) };
        let keys: Vec<ItemKey> = rows.iter().map(|(hash, _)| filter.key(*hash)).collect();
        let before = self.items_at(&keys)?;
        let mut totals = filter.totals();
        let mut batch = Batch::new();
        let mut items = batch.keyspace(&self.items);
        for ((key, (_, count)), before) in keys.iter().zip(&rows).zip(before) {
            let (bytes, len) = encode_count(*count);
            items.put(key, bytes.split_at(len).0);
            totals.items = totals.items.saturating_sub(before).saturating_add(*count);
            if totals.items > ITEMS_MAX {
                return Err(Refusal::BadChunk);
            }
        }
        if totals.items > filter.items() && filter.parameters().is_full(totals.items - 1) {
            return Err(Refusal::Full);
        }
        batch.keyspace(&self.records).put(place.as_key(), filter.record(totals).encode());
        self.db.write(batch)?;
        filter.set_totals(totals);
        Ok(())
    }
}

/// Whether it begins as the chunks of a dump do.
pub fn is_chunk(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// The least hash at a position, counted from 0; `None` if there is none.
fn start_of(position: u64) -> Option<u128> {
    (position < 1 << 62).then(|| u128::from(position) << BELOW_POSITION)
}

/// A chunk of this kind.
pub(super) fn seal(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut chunk = Vec::with_capacity(MAGIC.len() + 1 + payload.len() + CRC_BYTES);
    chunk.extend_from_slice(MAGIC);
    chunk.put_u8(kind);
    chunk.extend_from_slice(payload);
    chunk.put_u32(crc32(&[&chunk]));
    chunk
}

/// The payload of a chunk of this kind.
fn open(kind: u8, chunk: &[u8]) -> Option<&[u8]> {
    let (covered, crc) = chunk.split_at_checked(chunk.len().checked_sub(CRC_BYTES)?)?;
    let is_intact = crc == crc32(&[covered]).to_le_bytes();
    covered.strip_prefix(MAGIC)?.strip_prefix(&[kind]).filter(|_| is_intact)
}

/// What the rows of a filter begin with in chunks.
pub(super) fn mark_of(filter: &Filter) -> u64 {
    (filter.hash(b"") >> 64) as u64
}

/// The rows of a chunk; `None` unless it is of a filter with this key, the hashes ascend, and the counts can
/// be those of this kind.
fn decode_rows(payload: &[u8], filter: &Filter) -> Option<Vec<(u128, u64)>> {
    let (mut d, mut rows) = (Decoder::new(payload), Vec::<(u128, u64)>::new());
    if d.u64()? != mark_of(filter) {
        return None;
    }
    while d.remaining() > 0 {
        let hash = u128::from_be_bytes(d.take(16)?.try_into().ok()?);
        let count = d.varint()?;
        let is_count = if filter.kind() == Kind::Bloom { count == 1 } else { count >= 1 };
        if !is_count || rows.last().is_some_and(|(before, _)| *before >= hash) {
            return None;
        }
        rows.push((hash, count));
    }
    Some(rows)
}
