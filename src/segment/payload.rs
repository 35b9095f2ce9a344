//! Decompressed blocks, and the memory of blocks that the cache has evicted.
//!
//! The thread that evicts a block reuses its memory for a later one. So it seldom allocates, and seldom frees
//! what another thread allocated: otherwise reading threads would wait for each other's allocator.

use std::cell::RefCell;
use std::convert::Infallible;
use std::ops::Deref;
use std::sync::Arc;

/// Blocks whose memory a thread keeps for the next ones.
const SPARES: usize = 16;
/// The largest memory that is kept.
const SPARE_BYTES: usize = 32 << 10;
/// Memory may exceed the block by this share of the block, an eighth, and by rounding.
const SLACK_SHARE: usize = 8;
/// Memory is allocated in multiples of this many bytes, so that it fits later blocks.
const UNIT_BYTES: usize = 256;

thread_local!(static SPARE: RefCell<Vec<Arc<[u8]>>> = const { RefCell::new(Vec::new()) });

/// A decompressed block, in memory that may be longer.
pub struct Payload {
    memory: Arc<[u8]>,
    len: usize,
}

impl Payload {
    /// `len` bytes that `fill` must write: at first they are zeros, or leftovers of an evicted block.
    pub fn filled<E>(len: usize, fill: impl FnOnce(&mut [u8]) -> Result<(), E>) -> Result<Self, E> {
        let mut memory = spare(len).unwrap_or_else(|| zeros(len));
        fill(Arc::get_mut(&mut memory).and_then(|memory| memory.get_mut(..len)).unwrap_or_default())?;
        Ok(Payload { memory, len })
    }

    /// The memory, which may be longer than the block.
    pub fn into_memory(self) -> Arc<[u8]> {
        self.memory
    }
}

impl Deref for Payload {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.memory.get(..self.len).unwrap_or_default()
    }
}

impl<B: AsRef<[u8]>> From<B> for Payload {
    fn from(bytes: B) -> Self {
        let bytes = bytes.as_ref();
        let copy = |raw: &mut [u8]| {
            raw.copy_from_slice(bytes);
            Ok::<_, Infallible>(())
        };
        let Ok(payload) = Payload::filled(bytes.len(), copy);
        payload
    }
}

/// Keeps the memory of an evicted block for this thread's next blocks, unless somebody else still uses it.
pub fn keep_spare(mut memory: Arc<[u8]>) {
    if memory.len() <= SPARE_BYTES && Arc::get_mut(&mut memory).is_some() {
        // Otherwise the thread is ending.
        _ = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() == SPARES {
                spare.remove(0); // The oldest, so that memory that fits no block is dropped.
            }
            spare.push(memory);
        });
    }
}

/// The smallest spare memory of at least `len` bytes that these nearly fill.
fn spare(len: usize) -> Option<Arc<[u8]>> {
    let fits = |memory: &Arc<[u8]>| (len..=rounded(len) + len / SLACK_SHARE).contains(&memory.len());
    SPARE
        .try_with(|spare| {
            let mut spare = spare.borrow_mut();
            let fitting = spare.iter().enumerate().filter(|(_, memory)| fits(memory));
            let (at, _) = fitting.min_by_key(|(_, memory)| memory.len())?;
            Some(spare.remove(at))
        })
        .ok()?
}

fn rounded(len: usize) -> usize {
    if len <= SPARE_BYTES { len.next_multiple_of(UNIT_BYTES) } else { len }
}

/// One allocation. Zeroing a block in the CPU's cache costs a few per cent of decompressing it.
fn zeros(len: usize) -> Arc<[u8]> {
    std::iter::repeat_n(0, rounded(len)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_memory_of_an_evicted_block_is_used_again_unless_somebody_reads_it() {
        let before = Payload::from([1; 4000]).into_memory();
        let (address, reader) = (before.as_ptr(), Arc::clone(&before));
        keep_spare(before);
        assert_ne!(Payload::from([2; 4000]).into_memory().as_ptr(), address);
        assert!(reader.iter().take(4000).all(|&byte| byte == 1));
        keep_spare(reader);
        let next = Payload::from([3; 3900]);
        assert_eq!((next.memory.as_ptr(), &*next), (address, &[3; 3900][..]));
        assert!(spare(3900).is_none(), "it is used once");
    }

    #[test]
    fn memory_that_fits_no_block_goes() {
        let all_of =
            |len: usize| (0..SPARES).for_each(|_| keep_spare(Payload::from(vec![0; len]).into_memory()));
        let lens = || SPARE.with_borrow(|spare| spare.iter().map(|memory| memory.len()).collect::<Vec<_>>());
        all_of(20_000);
        let old: Vec<_> = (0..SPARES).map(|_| Payload::from([0; 4000])).collect();
        old.into_iter().for_each(|payload| keep_spare(payload.into_memory()));
        assert_eq!(lens(), [4096; SPARES]);
    }

    proptest! {
        #[test]
        fn payloads_are_what_was_filled_in_whatever_is_spare(sizes in proptest::collection::vec(0usize..40_000, 1..200)) {
            let mut kept = Vec::new();
            for (number, &size) in sizes.iter().enumerate() {
                let bytes = vec![number as u8; size];
                let payload = Payload::from(&bytes);
                prop_assert_eq!(&*payload, &bytes[..]);
                prop_assert!(payload.memory.len() <= size + size / SLACK_SHARE + UNIT_BYTES);
                kept.push(payload.into_memory());
                if number % 3 > 0 {
                    keep_spare(kept.swap_remove(number % kept.len()));
                }
                let spares = SPARE.with_borrow(|spare| spare.iter().map(|memory| memory.len()).max());
                prop_assert!(SPARE.with_borrow(Vec::len) <= SPARES && spares.unwrap_or(0) <= SPARE_BYTES);
            }
        }
    }
}
