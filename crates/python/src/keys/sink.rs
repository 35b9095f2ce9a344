//! Who takes keys.

use super::integer::IntegerKey;
use sidebloom::Error;

/// Keys that are handed over at once.
pub const CHUNK: usize = 4096;

/// Receives keys, without the GIL.
pub trait Sink: Send {
    fn take(&mut self, keys: &[&[u8]]) -> sidebloom::Result<()>;

    /// Takes integers. Their length is known when this is compiled, which makes hashing them faster.
    fn take_integers(&mut self, keys: &[IntegerKey]) -> sidebloom::Result<()> {
        self.take(&keys.iter().map(|key| &key[..]).collect::<Vec<_>>())
    }
}

impl<F: FnMut(&[&[u8]]) -> sidebloom::Result<()> + Send> Sink for F {
    fn take(&mut self, keys: &[&[u8]]) -> sidebloom::Result<()> {
        self(keys)
    }
}

/// Makes room for more elements.
///
/// # Errors
/// [`Error::OutOfMemory`], where a vector would end the process.
pub fn make_room<T>(elements: &mut Vec<T>, more: usize) -> sidebloom::Result<()> {
    elements.try_reserve(more).map_err(|_| Error::OutOfMemory {
        bytes: ((elements.len() as u64).saturating_add(more as u64)).saturating_mul(size_of::<T>() as u64),
    })
}
