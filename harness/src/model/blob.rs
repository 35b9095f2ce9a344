//! Keys and values that are cheap to share, and print in one line.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// How many bytes of a key or a value a message shows.
const SHOWN: usize = 32;

/// Shared bytes: a key or a value.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Blob(Arc<[u8]>);

/// What a store should hold.
pub type Model = BTreeMap<Blob, Blob>;

impl Blob {
    /// Whether both are the same write's bytes, and not only equal ones.
    pub fn is_clone_of(&self, other: &Blob) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl From<Vec<u8>> for Blob {
    fn from(bytes: Vec<u8>) -> Self {
        Blob(bytes.into())
    }
}

impl From<&[u8]> for Blob {
    fn from(bytes: &[u8]) -> Self {
        Blob(bytes.into())
    }
}

impl Deref for Blob {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for Blob {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Borrow<[u8]> for Blob {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.get(..SHOWN).unwrap_or(self);
        write!(f, "\"{}\"", shown.escape_ascii())?;
        if shown.len() < self.len() { write!(f, "… ({} bytes)", self.len()) } else { Ok(()) }
    }
}
