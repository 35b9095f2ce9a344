//! Several keys as they are stored.

use super::Space;

/// The stored keys of some keys, in one piece of memory.
pub struct StoredKeys {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl StoredKeys {
    /// Of keys of one keyspace, in their order. `None` if all are stored as they are.
    pub fn new<K: AsRef<[u8]>>(space: Space, keys: &[K]) -> Option<Self> {
        if keys.iter().all(|key| space.head(key.as_ref()).is_empty()) {
            return None;
        }
        let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(keys.len()));
        for key in keys.iter().map(AsRef::as_ref) {
            bytes.extend_from_slice(space.head(key));
            bytes.extend_from_slice(key);
            ends.push(bytes.len());
        }
        Some(StoredKeys { bytes, ends })
    }

    /// The stored keys.
    pub fn keys(&self) -> Vec<&[u8]> {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts.zip(&self.ends).map(|(&from, &to)| self.bytes.get(from..to).unwrap_or_default()).collect()
    }
}
