//! A value that shares the block or log record it was read from.

use bytes::Bytes;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Deref, Range};
use std::sync::Arc;

/// A value as returned by reads. Dereferences to `[u8]` and clones without copying. It shares the block or
/// log record that it was read from, and keeps that in memory as long as it lives.
#[derive(Clone)]
pub struct Value(Shared);

#[derive(Clone)]
enum Shared {
    /// Of a log record.
    Bytes(Bytes),
    /// A range of a block. The block's reference count and its bytes share one allocation and cache line.
    Block(Arc<[u8]>, Range<u32>),
}

impl Value {
    /// Wraps shared bytes.
    pub fn new(bytes: Bytes) -> Self {
        Value(Shared::Bytes(bytes))
    }

    /// A part of a block; empty if out of the block's range.
    #[inline]
    pub(crate) fn of_block(block: Arc<[u8]>, part: Range<usize>) -> Self {
        Value(Shared::Block(block, part.start as u32..part.end as u32))
    }

    /// The shared bytes.
    pub fn into_bytes(self) -> Bytes {
        match self.0 {
            Shared::Bytes(bytes) => bytes,
            Shared::Block(..) => Bytes::from_owner(self),
        }
    }
}

impl Deref for Value {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Shared::Bytes(bytes) => bytes,
            Shared::Block(block, part) => {
                block.get(part.start as usize..part.end as usize).unwrap_or_default()
            }
        }
    }
}

impl AsRef<[u8]> for Value {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Default for Value {
    fn default() -> Self {
        Value::new(Bytes::new())
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Value {}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Value {
    fn cmp(&self, other: &Self) -> Ordering {
        (**self).cmp(&**other)
    }
}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.escape_ascii())
    }
}

impl From<Value> for Vec<u8> {
    fn from(value: Value) -> Vec<u8> {
        match value.0 {
            Shared::Bytes(bytes) => bytes.into(),
            Shared::Block(..) => value.to_vec(),
        }
    }
}

impl PartialEq<[u8]> for Value {
    fn eq(&self, other: &[u8]) -> bool {
        **self == *other
    }
}

impl<const N: usize> PartialEq<[u8; N]> for Value {
    fn eq(&self, other: &[u8; N]) -> bool {
        **self == *other
    }
}

impl<const N: usize> PartialEq<&[u8; N]> for Value {
    fn eq(&self, other: &&[u8; N]) -> bool {
        **self == **other
    }
}
