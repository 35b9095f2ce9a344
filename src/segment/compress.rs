//! Block compression, and the memory of decompressed blocks.
//!
//! The thread that evicts a block reuses its memory for a later one. So it seldom allocates, and seldom frees
//! what another thread allocated: otherwise reading threads would wait for each other's allocator.

use super::format::{Compression, DATA_BYTES_MAX, LZ4_MAX_RATIO, Location};
use crate::codec::{Decoder, Encode};
use crate::error::{Error, Result};
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
    if (1..=SPARE_BYTES).contains(&memory.len()) && Arc::get_mut(&mut memory).is_some() {
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

/// Compresses the blocks of one segment, one at a time.
pub struct Compressor {
    packed: Vec<u8>,
    method: Method,
}

enum Method {
    None,
    Lz4(Box<lz4_flex::block::CompressTable>),
    #[cfg(feature = "zstd")]
    Zstd(zstd::bulk::Compressor<'static>),
}

impl Compressor {
    /// For one segment. [`Error::FeatureMissing`] when this build lacks the method.
    pub fn new(compression: Compression) -> Result<Self> {
        let method = match compression {
            Compression::None | Compression::Fsst => Method::None,
            Compression::Lz4 | Compression::Auto => {
                Method::Lz4(Box::new(lz4_flex::block::CompressTable::large()))
            }
            #[cfg(feature = "zstd")]
            Compression::Zstd => Method::Zstd(
                zstd::bulk::Compressor::new(3).map_err(|e| Error::Internal(format!("zstd: {e}")))?,
            ),
            #[cfg(not(feature = "zstd"))]
            Compression::Zstd => return Err(lacks_zstd("Compression::Zstd".to_owned())),
        };
        Ok(Compressor { packed: Vec::new(), method })
    }

    /// Replaces the bytes of `out` from `start` on with their compressed form if that saves at least an
    /// eighth. Returns the form used.
    pub fn pack(&mut self, out: &mut Vec<u8>, start: usize) -> Compression {
        let Compressor { packed, method } = self;
        let raw = &out[start..];
        let room = raw.len() - raw.len().div_ceil(8);
        let (kind, len) = match method {
            Method::None => return Compression::None,
            Method::Lz4(table) => {
                grow(packed, 4 + lz4_flex::block::get_maximum_output_size(raw.len()));
                match lz4_flex::block::compress_into_with_table(raw, &mut packed[4..], table) {
                    Ok(len) => (Compression::Lz4, 4 + len),
                    Err(_) => return Compression::None,
                }
            }
            #[cfg(feature = "zstd")]
            Method::Zstd(compressor) => {
                grow(packed, 4 + zstd::zstd_safe::compress_bound(raw.len()));
                match compressor.compress_to_buffer(raw, &mut packed[4..]) {
                    Ok(len) => (Compression::Zstd, 4 + len),
                    Err(_) => return Compression::None,
                }
            }
        };
        if len > room {
            return Compression::None;
        }
        let raw_len = raw.len() as u32;
        out.truncate(start);
        out.put_u32(raw_len);
        out.extend_from_slice(&packed[4..len]);
        kind
    }
}

/// Makes a buffer at least this long. It keeps its length, so that it is not zeroed for each block.
fn grow(buffer: &mut Vec<u8>, len: usize) {
    if buffer.len() < len {
        buffer.resize(len, 0);
    }
}

/// Decompresses the payload of a data block whose crc has been checked.
pub fn unpack(location: Location<'_>, kind: Compression, payload: &[u8]) -> Result<Payload> {
    if kind == Compression::None {
        return Ok(payload.into());
    }
    let mut fields = Decoder::new(payload);
    let len = fields.u32().ok_or_else(|| location.damaged("the compressed block lacks its length"))? as usize;
    let packed = fields.take(fields.remaining()).unwrap_or_default();
    let bound = match kind {
        Compression::Lz4 => packed.len().saturating_mul(LZ4_MAX_RATIO).min(DATA_BYTES_MAX),
        Compression::None | Compression::Zstd | Compression::Fsst | Compression::Auto => DATA_BYTES_MAX,
    };
    if len > bound {
        return Err(location.damaged(format!(
            "a compressed block of {} bytes claims to expand to {len} bytes",
            packed.len()
        )));
    }
    Payload::filled(len, |raw| {
        let written = match kind {
            Compression::None | Compression::Fsst | Compression::Auto => None,
            Compression::Lz4 => lz4_flex::block::decompress_into(packed, raw).ok(),
            Compression::Zstd => unzstd(location, packed, raw)?,
        };
        if written == Some(len) {
            Ok(())
        } else {
            Err(location.damaged(format!("the {} data does not decompress", kind.name())))
        }
    })
}

#[cfg(feature = "zstd")]
fn unzstd(_: Location<'_>, packed: &[u8], raw: &mut [u8]) -> Result<Option<usize>> {
    Ok(zstd::bulk::decompress_to_buffer(packed, raw).ok())
}

#[cfg(not(feature = "zstd"))]
fn unzstd(location: Location<'_>, _: &[u8], _: &mut [u8]) -> Result<Option<usize>> {
    Err(lacks_zstd(format!("the zstd compression of {}", location.path.display())))
}

#[cfg(not(feature = "zstd"))]
fn lacks_zstd(what: String) -> Error {
    Error::FeatureMissing { what, feature: "zstd" }
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
