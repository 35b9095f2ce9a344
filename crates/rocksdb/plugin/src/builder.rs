//! Building the filter of an SST file, or of a partition of it.

use crate::block;
use crate::reader::Reader;
use crate::size::Size;
use sidebloom_filter::{BuiltFilter, KeyHasher, Verdict};

/// Why there is no filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// Not enough memory, or too many keys.
    NoFilter,
    /// Memory was corrupted.
    Corrupted,
}

/// Collects the hashes of the keys and builds a filter from them.
pub struct Builder {
    size: Size,
    seed: u64,
    hasher: KeyHasher,
    hashes: Vec<u64>,
    last_alt: Option<u64>,
    /// Hashes added, whether or not there was memory for them.
    added: usize,
    /// Whether to detect corruption of memory, by broken hardware or a stray write.
    detect_corruption: bool,
    /// The XOR of all hashes.
    checksum: u64,
    built: Option<BuiltFilter>,
}

impl Builder {
    pub fn new(size: Size, seed: u64, detect_corruption: bool) -> Self {
        Builder {
            size,
            seed,
            hasher: seed.into(),
            hashes: Vec::new(),
            last_alt: None,
            added: 0,
            detect_corruption,
            checksum: 0,
            built: None,
        }
    }

    /// Adds a key, unless it equals the last one. Returns the number of hashes added.
    pub fn add(&mut self, key: &[u8]) -> usize {
        let hash = self.hasher.hash(key);
        if self.hashes.last() != Some(&hash) {
            self.add_hash(hash);
        }
        self.added
    }

    /// Adds a key and its prefix. Keys come in order, so equal prefixes are adjacent: each is added once.
    pub fn add_with_prefix(&mut self, key: &[u8], prefix: &[u8]) -> usize {
        let (key, prefix) = (self.hasher.hash(key), self.hasher.hash(prefix));
        let (last_key, last_prefix) = (self.hashes.last().copied(), self.last_alt.replace(prefix));
        // The prefix first, so that the last hash is always a key's.
        if prefix != key && Some(prefix) != last_prefix && Some(prefix) != last_key {
            self.add_hash(prefix);
        }
        if Some(key) != last_key && Some(key) != last_prefix {
            self.add_hash(key);
        }
        self.added
    }

    fn add_hash(&mut self, hash: u64) {
        self.added += 1;
        self.checksum ^= hash;
        if self.hashes.len() == self.hashes.capacity() && self.hashes.try_reserve(1).is_err() {
            // From here on, `added` exceeds their number.
            self.hashes = Vec::new();
            return;
        }
        if self.hashes.len() + 1 == self.added {
            self.hashes.push(hash);
        }
    }

    /// Builds no filter, since a key could not be added: a filter without it would deny it. Returns the
    /// number of hashes added.
    pub fn give_up(&mut self) -> usize {
        self.added += 1;
        self.hashes = Vec::new();
        self.added
    }

    /// Builds the filter, and returns the size of its block: with `room`, about this many bytes, at most 0.5
    /// % more for many keys.
    pub fn build(&mut self, room: Option<usize>) -> Result<usize, Failure> {
        let keys = self.hashes.len();
        if keys == 0 || keys < self.added {
            return Err(Failure::NoFilter);
        }
        // The hashes decide how many lines the lower levels get.
        let fitting = room.and_then(|room| Size::fitting(keys as u64, room - room / 200));
        let size = fitting.unwrap_or(self.size);
        let built = BuiltFilter::parity(size.width, size.keys_per_line, &self.hashes);
        let built = self.built.insert(built.map_err(|_| Failure::NoFilter)?);
        let bytes = block::bytes(built);
        if self.detect_corruption {
            if self.hashes.iter().fold(0, |sum, hash| sum ^ hash) != self.checksum {
                self.hashes = Vec::new();
                return Err(Failure::Corrupted);
            }
        } else {
            self.hashes = Vec::new();
        }
        Ok(bytes)
    }

    /// Writes the block, and returns its size.
    pub fn write(&mut self, to: &mut [u8]) -> Option<usize> {
        block::write(&self.built.take()?, self.seed, to)
    }

    /// Whether a block, written by [`write`](Self::write), has all hashes. Without the detection of
    /// corruption, always true.
    pub fn verify(&mut self, block: &[u8]) -> bool {
        let hashes = std::mem::take(&mut self.hashes);
        let reader = Reader::of(block);
        hashes.iter().all(|&hash| reader.probe(hash) == Verdict::Maybe)
            && (hashes.is_empty() || reader.has_filter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidebloom_filter::Width;

    fn builder(detect_corruption: bool) -> Builder {
        Builder::new(Size::of_width(Width::Eight), 3, detect_corruption)
    }

    fn with_keys(detect_corruption: bool) -> Builder {
        let mut builder = builder(detect_corruption);
        for n in 0..1000u32 {
            builder.add(&n.to_be_bytes());
        }
        builder
    }

    fn written(builder: &mut Builder) -> Vec<u8> {
        let mut block = vec![0; builder.build(None).unwrap()];
        assert_eq!(builder.write(&mut block), Some(block.len()));
        block
    }

    #[test]
    fn repeated_keys_and_prefixes_are_added_once() {
        let mut plain = builder(false);
        assert_eq!([b"a", b"a", b"b", b"b"].map(|key| plain.add(key)), [1, 1, 2, 2]);
        let mut both = builder(false);
        assert_eq!(both.add(b"k1"), 1);
        assert_eq!(both.add_with_prefix(b"k2", b"k1"), 2, "the prefix is the last key");
        assert_eq!(both.add_with_prefix(b"k2", b"k"), 3);
        assert_eq!(both.add_with_prefix(b"k3", b"k"), 4, "the prefix was added");
        assert_eq!(both.add_with_prefix(b"m", b"m"), 5, "the key is its prefix");
        assert_eq!(both.add_with_prefix(b"m1", b"m"), 6);
        assert_eq!(both.add_with_prefix(b"m", b"l"), 7, "the key is the last prefix");
        let block = written(&mut both);
        let reader = Reader::of(&block);
        for key in ["k1", "k2", "k3", "k", "m", "m1", "l"] {
            assert!(reader.may_match(key.as_bytes()), "{key}");
        }
    }

    #[test]
    fn i1_a_filter_within_less_or_more_room_has_all_keys() {
        for room in [0, 900, 1_000, 1_100, 1_200, 1_400, 2_000, 5_000] {
            let slack = 3 * sidebloom_filter::LINE_BYTES;
            let mut builder = with_keys(true);
            let bytes = builder.build(Some(room)).unwrap();
            let least = Size::of_width(Width::Eight).bytes(1000) - 192;
            assert!(
                bytes <= room + slack || Size::fitting(1000, room).is_none() && bytes >= least,
                "{room}: {bytes}"
            );
            let mut block = vec![0; bytes];
            assert_eq!(builder.write(&mut block), Some(block.len()));
            let reader = Reader::of(&block);
            assert!((0..1000u32).all(|n| reader.may_match(&n.to_be_bytes())) && builder.verify(&block));
        }
    }

    #[test]
    fn a_changed_hash_is_detected_while_building() {
        let mut builder = with_keys(true);
        builder.hashes[500] ^= 1;
        assert_eq!(builder.build(None), Err(Failure::Corrupted));
        let mut unasked = with_keys(false);
        unasked.hashes[500] ^= 1;
        assert!(unasked.build(None).is_ok());
    }

    #[test]
    fn a_changed_block_is_detected_after_building() {
        for at in [0, 64 * 8, 1000] {
            let mut builder = with_keys(true);
            let mut block = written(&mut builder);
            block[at] ^= 4;
            assert!(!builder.verify(&block), "{at}");
        }
        let mut builder = with_keys(true);
        let block = written(&mut builder);
        assert!(builder.verify(&block));
        let mut other = self::builder(true);
        other.add(b"another key");
        assert!(!with_keys(true).verify(&written(&mut other)), "a sound block of other keys");
    }

    #[test]
    fn i1_without_memory_for_one_key_there_is_no_filter() {
        let mut builder = with_keys(false);
        assert_eq!(builder.give_up(), 1001);
        assert_eq!(builder.add(b"a later key"), 1002);
        assert_eq!(builder.build(None), Err(Failure::NoFilter));
    }

    #[test]
    fn without_keys_there_is_no_filter() {
        let mut builder = builder(true);
        assert_eq!((builder.build(None), builder.write(&mut [0; 100])), (Err(Failure::NoFilter), None));
        assert!(builder.verify(&block::NO_FILTER), "nothing to verify");
    }
}
