//! What a guard stores of a key: its hash.

use super::format::HashWidth;
use crate::hash::KeyHasher;

/// The keyed hash of a canonical key: a `u64` or `u128`, by the guard's width. Orders like big-endian bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct StoredHash(pub u128);

/// A hash as bytes: the key in the guard's store.
#[derive(Clone, Copy)]
pub(super) struct HashBytes {
    bytes: [u8; 16],
    width: HashWidth,
}

impl StoredHash {
    #[inline]
    pub fn of(canonical_key: &[u8], hasher: &KeyHasher, width: HashWidth) -> Self {
        match width {
            HashWidth::Bits64 => StoredHash(u128::from(hasher.hash(canonical_key))),
            HashWidth::Bits128 => StoredHash(hasher.hash_128(canonical_key)),
        }
    }

    #[inline]
    pub fn to_bytes(self, width: HashWidth) -> HashBytes {
        let aligned = match width {
            HashWidth::Bits64 => self.0 << 64,
            HashWidth::Bits128 => self.0,
        };
        HashBytes { bytes: aligned.to_be_bytes(), width }
    }

    /// `None` unless `bytes` is a hash of this width.
    pub fn from_bytes(bytes: &[u8], width: HashWidth) -> Option<Self> {
        match width {
            HashWidth::Bits64 => Some(StoredHash(u128::from(u64::from_be_bytes(bytes.try_into().ok()?)))),
            HashWidth::Bits128 => Some(StoredHash(u128::from_be_bytes(bytes.try_into().ok()?))),
        }
    }

    /// The stripe of this hash, out of `stripes` (a power of two).
    #[inline]
    pub fn stripe(self, stripes: usize) -> usize {
        self.0 as usize & (stripes - 1)
    }
}

impl AsRef<[u8]> for HashBytes {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        match self.width {
            HashWidth::Bits64 => self.bytes.split_at(8).0,
            HashWidth::Bits128 => &self.bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_keep_the_order_and_round_trip() {
        let hasher = KeyHasher::siphash13([9, 10]);
        for width in [HashWidth::Bits64, HashWidth::Bits128] {
            let mut hashes: Vec<StoredHash> =
                (0..200u8).map(|i| StoredHash::of(&[i], &hasher, width)).collect();
            hashes.sort();
            let bytes: Vec<Vec<u8>> =
                hashes.iter().map(|hash| hash.to_bytes(width).as_ref().to_vec()).collect();
            assert!(bytes.is_sorted());
            assert!(bytes.iter().all(|bytes| bytes.len() == width.bytes()));
            let back = bytes.iter().map(|bytes| StoredHash::from_bytes(bytes, width).unwrap());
            assert!(back.eq(hashes.iter().copied()));
        }
        assert_eq!(StoredHash::from_bytes(&[0; 9], HashWidth::Bits64), None);
    }
}
