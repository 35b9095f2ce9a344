//! The byte maps of a filter's two kinds of rows. Integers are little-endian unless noted.
//!
//! ```text
//! keyspace "filters"                       keyspace "items"
//! key   = database u8, name                key   = length of id u8, id, hash u128, both big-endian
//! value = record                           value = nothing: the item is there once
//!                                                | count u64, at least 2
//!
//! record, 50 bytes and the parameters      parameters of a Bloom filter, 20 bytes
//!  0  1  version, 1                         0  8  error rate f64
//!  1  1  kind: 1 Bloom, 2 cuckoo            8  8  capacity
//!  2  8  id                                16  4  expansion; 0 if it does not scale
//! 10 16  key of the hash                   parameters of a cuckoo filter, 13 bytes
//! 26  8  items                              0  8  capacity
//! 34  8  deletions                          8  1  bucket size
//! 42  8  expiry, ms since 1970; 0 if none   9  2  greatest number of iterations
//!                                          11  2  expansion
//! ```
//!
//! - *id*: of this filter and no other, above 0. Its items have it, so a filter is renamed by moving its
//!   record. In their keys it has as few bytes as it can, so that the first eight bytes of a key, by which
//!   memtables and merges compare most keys, have part of the hash. Those of a filter are neighbours.
//! - *hash*: SipHash-1-3 with 128 bits under the key of the hash, which is random.
//! - *items*: how many items the filter has, in a cuckoo filter counted as often as they were added; less
//!   than 2⁶³, as the protocol's integers.
//! - *deletions*: since the last compaction of a cuckoo filter; 0 in a Bloom filter.
//!
//! The store's own checksums cover all of it. A record of another length or with parameters out of range is
//! damaged; another version is one of a newer build.

use super::bloom::Bloom;
use super::cuckoo::Cuckoo;
use super::parameters::Parameters;
use sidebloom_filter::codec::{Decoder, Encode};

const VERSION: u8 = 1;
const BLOOM: u8 = 1;
const CUCKOO: u8 = 2;

/// A filter as stored.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Record {
    pub id: u64,
    pub hash_key: [u64; 2],
    pub parameters: Parameters,
    pub totals: Totals,
    /// Milliseconds since 1970; 0 if it does not expire.
    pub expires_at: u64,
}

/// More items than this no filter has.
pub const ITEMS_MAX: u64 = i64::MAX as u64;

/// What a filter counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    pub items: u64,
    pub deletions: u64,
}

/// Why a record cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreadable {
    Damaged,
    /// Written by a newer build.
    Newer(u8),
}

impl Record {
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(70);
        bytes.put_u8(VERSION);
        bytes.put_u8(if matches!(self.parameters, Parameters::Bloom(_)) { BLOOM } else { CUCKOO });
        bytes.put_u64(self.id);
        self.hash_key.iter().for_each(|word| bytes.put_u64(*word));
        bytes.put_u64(self.totals.items);
        bytes.put_u64(self.totals.deletions);
        bytes.put_u64(self.expires_at);
        encode_parameters(&self.parameters, &mut bytes);
        bytes
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, Unreadable> {
        let mut d = Decoder::new(bytes);
        match d.u8() {
            Some(VERSION) => {}
            Some(newer @ 2..) => return Err(Unreadable::Newer(newer)),
            _ => return Err(Unreadable::Damaged),
        }
        let mut fields = || {
            let kind = d.u8()?;
            let (id, hash_key) = (d.u64()?, [d.u64()?, d.u64()?]);
            let totals = Totals { items: d.u64()?, deletions: d.u64()? };
            let expires_at = d.u64()?;
            let parameters = decode_parameters(kind, &mut d)?;
            let is_fine = d.remaining() == 0 && id > 0 && totals.items <= ITEMS_MAX;
            is_fine.then_some(Record { id, hash_key, parameters, totals, expires_at })
        };
        fields().ok_or(Unreadable::Damaged)
    }
}

fn encode_parameters(parameters: &Parameters, bytes: &mut Vec<u8>) {
    match parameters {
        Parameters::Bloom(bloom) => {
            bytes.put_u64(bloom.error_rate().to_bits());
            bytes.put_u64(bloom.first_capacity());
            bytes.put_u32(bloom.expansion().unwrap_or(0));
        }
        Parameters::Cuckoo(cuckoo) => {
            bytes.put_u64(cuckoo.capacity());
            bytes.put_u8(cuckoo.bucket_size());
            bytes.put_uint(cuckoo.max_iterations().into(), 2);
            bytes.put_uint(cuckoo.expansion().into(), 2);
        }
    }
}

fn decode_parameters(kind: u8, d: &mut Decoder<'_>) -> Option<Parameters> {
    match kind {
        BLOOM => {
            let (error_rate, capacity) = (f64::from_bits(d.u64()?), d.u64()?);
            let expansion = Some(d.u32()?).filter(|expansion| *expansion > 0);
            Bloom::new(error_rate, capacity, expansion).map(Parameters::Bloom)
        }
        CUCKOO => {
            let (capacity, bucket_size) = (d.u64()?, d.u8()?);
            let (max_iterations, expansion) = (u16_of(d)?, u16_of(d)?);
            Cuckoo::new(capacity, bucket_size, max_iterations, expansion).ok().map(Parameters::Cuckoo)
        }
        _ => None,
    }
}

fn u16_of(d: &mut Decoder<'_>) -> Option<u16> {
    Some(u16::from_le_bytes(d.take(2)?.try_into().ok()?))
}

/// The key of an item's row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ItemKey {
    bytes: [u8; KEY_MAX],
    len: u8,
}

/// Bytes of the longest key.
const KEY_MAX: usize = 1 + size_of::<u64>() + HASH_BYTES;
const HASH_BYTES: usize = size_of::<u128>();

impl ItemKey {
    pub fn new(id: u64, hash: u128) -> Self {
        let prefix = ItemKey::prefix(id);
        let mut key = prefix;
        let tail = key.bytes.iter_mut().skip(prefix.as_ref().len());
        tail.zip(hash.to_be_bytes()).for_each(|(to, byte)| *to = byte);
        key.len += HASH_BYTES as u8;
        key
    }

    /// What the keys of all items of a filter begin with, and those of no other filter.
    pub fn prefix(id: u64) -> Self {
        let (mut bytes, len) = ([0; KEY_MAX], id_len(id));
        let number = id.to_be_bytes();
        let number = number.iter().skip(size_of::<u64>() - len);
        bytes.iter_mut().zip([len as u8].iter().chain(number)).for_each(|(to, byte)| *to = *byte);
        ItemKey { bytes, len: 1 + len as u8 }
    }

    /// The filter's number and the hash in a key.
    pub fn split(key: &[u8]) -> Option<(u64, u128)> {
        let (len, rest) = key.split_first()?;
        let (number, hash) = rest.split_at_checked(usize::from(*len))?;
        let id = number.iter().try_fold(0u64, |id, byte| Some(id.checked_mul(256)? | u64::from(*byte)))?;
        let is_shortest = id > 0 && id_len(id) == number.len();
        is_shortest.then_some((id, u128::from_be_bytes(hash.try_into().ok()?)))
    }
}

impl AsRef<[u8]> for ItemKey {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }
}

/// How many bytes a number takes.
fn id_len(id: u64) -> usize {
    (u64::BITS - id.leading_zeros()).div_ceil(8) as usize
}

/// The value of an item's row, and its length.
pub fn encode_count(count: u64) -> ([u8; 8], usize) {
    (count.to_le_bytes(), if count > 1 { 8 } else { 0 })
}

/// How often an item is there, given its row's value. `None` if that is damaged.
pub fn decode_count(value: &[u8]) -> Option<u64> {
    match value {
        [] => Some(1),
        count => Some(u64::from_le_bytes(count.try_into().ok()?)).filter(|count| *count > 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records() -> [Record; 3] {
        let record = |id, parameters, expires_at| Record {
            id,
            hash_key: [id << 32, !id],
            parameters,
            totals: Totals { items: (id * 3).min(ITEMS_MAX), deletions: id },
            expires_at,
        };
        [
            record(1, Parameters::Bloom(Bloom::default()), 0),
            record(2, Parameters::Bloom(Bloom::new(0.999, 1 << 30, None).unwrap()), u64::MAX),
            record(u64::MAX / 3, Parameters::Cuckoo(Cuckoo::new(510, 255, 65_535, 32_768).unwrap()), 5),
        ]
    }

    #[test]
    fn records_round_trip_and_cut_or_long_ones_are_damaged() {
        for record in records() {
            let mut bytes = record.encode();
            assert_eq!(Record::decode(&bytes), Ok(record));
            for len in 0..bytes.len() {
                assert_eq!(Record::decode(&bytes[..len]), Err(Unreadable::Damaged), "{len}");
            }
            bytes.push(0);
            assert_eq!(Record::decode(&bytes), Err(Unreadable::Damaged));
            bytes[0] = 2;
            assert_eq!(Record::decode(&bytes), Err(Unreadable::Newer(2)));
        }
    }

    #[test]
    fn fields_out_of_range_are_damage() {
        let [bloom, _, cuckoo] = records().map(|record| record.encode());
        let wrong =
            [(0, 0, &bloom), (1, 3, &bloom), (33, 0x80, &bloom), (57, 0x7f, &bloom), (58, 0, &cuckoo)];
        for (at, byte, record) in wrong {
            let mut bytes = record.clone();
            bytes[at] = byte;
            assert_eq!(Record::decode(&bytes), Err(Unreadable::Damaged), "{at}");
        }
        let mut no_id = bloom;
        no_id[2..10].fill(0);
        assert_eq!(Record::decode(&no_id), Err(Unreadable::Damaged));
    }

    #[test]
    fn the_bytes_are_frozen() {
        let bytes = records()[0].encode();
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            hex,
            "0101010000000000000000000000010000 00feffffffffffffff0300000000000000010000000000000000000000000000007b14ae47e17a843f640000000000000002000000"
                .replace(' ', "")
        );
    }

    #[test]
    fn rows_of_items_sort_by_filter_and_then_by_hash() {
        let ids = [1, 2, 255, 256, 65_535, 65_536, u64::MAX - 1, u64::MAX];
        let hashes = [0, 5, 1 << 100, u128::MAX];
        let rows = || ids.into_iter().flat_map(|id| hashes.map(|hash| (id, hash)));
        let keys: Vec<ItemKey> = rows().map(|(id, hash)| ItemKey::new(id, hash)).collect();
        assert!(keys.is_sorted_by(|a, b| a.as_ref() < b.as_ref()));
        for (key, (id, hash)) in keys.iter().zip(rows()) {
            assert_eq!(ItemKey::split(key.as_ref()), Some((id, hash)));
            let with_prefix =
                keys.iter().filter(|key| key.as_ref().starts_with(ItemKey::prefix(id).as_ref()));
            assert_eq!(with_prefix.count(), hashes.len());
        }
        assert_eq!(ItemKey::new(7, 1).as_ref().len(), 18);
        let wrong = [&[][..], &[1], &[0; 17], &[1; 17], &[1; 19], &[2, 0, 7, 0], &[255; 26], &[9; 26]];
        assert!(wrong.into_iter().all(|key| ItemKey::split(key).is_none()));
        let padded = [&[2, 0, 7][..], &[0; 16]].concat();
        assert_eq!(ItemKey::split(&padded), None, "a number has one form");
        for count in [1, 2, u64::MAX] {
            let (bytes, len) = encode_count(count);
            assert_eq!(decode_count(&bytes[..len]), Some(count));
        }
        for damaged in [&[0][..], &[1, 0, 0, 0, 0, 0, 0, 0], &[0; 8], &[2; 9]] {
            assert_eq!(decode_count(damaged), None);
        }
    }
}
