//! Keys and values that are cheap to share, and print in one line.

use sidebloom::Expiry;
use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

/// How many bytes of a key or a value a message shows.
const SHOWN: usize = 32;

/// Shared bytes: a key or a value.
#[derive(Clone)]
pub struct Blob {
    bytes: Arc<[u8]>,
    /// When the value expires, in milliseconds; the largest number if never.
    expiry: u64,
}

/// What a store should hold.
pub type Model = BTreeMap<Blob, Blob>;

impl Blob {
    /// The value of a write of its own that expires then.
    pub fn until(&self, millis: u64) -> Self {
        Blob { bytes: Arc::from(&*self.bytes), expiry: millis }
    }

    /// The value of a write that expires then; of one that does not expire, itself.
    pub fn until_or_never(&self, millis: Option<u64>) -> Self {
        millis.map_or_else(|| self.clone(), |millis| self.until(millis))
    }

    /// When it expires.
    pub fn expiry(&self) -> u64 {
        self.expiry
    }

    /// When it expires, as a store is told.
    pub fn to_expiry(&self) -> Expiry {
        match self.expiry {
            u64::MAX => Expiry::never(),
            millis => Expiry::at(UNIX_EPOCH + Duration::from_millis(millis)),
        }
    }

    /// Whether the value has expired.
    pub fn has_expired(&self, now: u64) -> bool {
        self.expiry <= now
    }

    /// Whether both are the same write's bytes, and not only equal ones.
    pub fn is_clone_of(&self, other: &Blob) -> bool {
        Arc::ptr_eq(&self.bytes, &other.bytes)
    }
}

impl PartialEq for Blob {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for Blob {}

impl PartialOrd for Blob {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Blob {
    fn cmp(&self, other: &Self) -> Ordering {
        self.bytes.cmp(&other.bytes)
    }
}

impl From<Vec<u8>> for Blob {
    fn from(bytes: Vec<u8>) -> Self {
        Blob { bytes: bytes.into(), expiry: u64::MAX }
    }
}

impl From<&[u8]> for Blob {
    fn from(bytes: &[u8]) -> Self {
        Blob { bytes: bytes.into(), expiry: u64::MAX }
    }
}

impl Deref for Blob {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl AsRef<[u8]> for Blob {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Borrow<[u8]> for Blob {
    fn borrow(&self) -> &[u8] {
        &self.bytes
    }
}

impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.get(..SHOWN).unwrap_or(self);
        write!(f, "\"{}\"", shown.escape_ascii())?;
        if shown.len() < self.len() { write!(f, "… ({} bytes)", self.len()) } else { Ok(()) }
    }
}
