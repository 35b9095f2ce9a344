//! Who takes keys.

use super::integer::IntegerKey;

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
