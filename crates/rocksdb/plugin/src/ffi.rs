//! The C interface, declared in `sidebloom/filter.h`. Its functions catch panics: a reader then answers
//! "maybe", and a builder leaves a file without a filter.

use crate::block::NO_FILTER;
use crate::builder::{Builder, Failure};
use crate::policy::{Place, Policy};
use crate::reader::Reader;
use crate::size::Size;
use sidebloom_filter::Width;
use sidebloom_filter::hash::random_u64;
use std::alloc::{Layout, alloc};
use std::ffi::{c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;

/// The seed of all filters of a process: a stranger cannot know which keys collide in its filters.
static SEED: LazyLock<u64> = LazyLock::new(random_u64);

/// [`Policy`] in C: a width, or 0 and the bits per key.
#[repr(C)]
pub struct RawPolicy {
    width: u32,
    bits_per_key: f64,
}

/// [`Size`] in C.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RawSize {
    width: u32,
    keys_per_line: f64,
}

/// The caller's memory for a [`Reader`].
#[repr(C)]
pub struct RawReader([u64; 24]);

const _: () =
    assert!(size_of::<Reader>() <= size_of::<RawReader>() && align_of::<Reader>() <= align_of::<RawReader>());

/// `RocksDB`'s `Slice`, whose layout never changed.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RawSlice {
    data: *const u8,
    bytes: usize,
}

/// The results of [`sidebloom_parity_build`].
const BUILT: c_int = 0;
const NOT_BUILT: c_int = 1;
const CORRUPTED: c_int = 2;

fn guarded<R>(otherwise: R, body: impl FnOnce() -> R) -> R {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(otherwise)
}

impl RawPolicy {
    fn get(&self) -> Policy {
        match Width::from_number(self.width) {
            Some(width) => Policy::Width(width),
            None => Policy::Auto { bits_per_key: self.bits_per_key },
        }
    }
}

impl RawSize {
    fn get(self) -> Size {
        let width = Width::from_number(self.width).unwrap_or(Width::Eight);
        Size { width, keys_per_line: self.keys_per_line }
    }
}

/// # Safety
/// `data` points to `bytes` bytes that nobody changes while the result is in use, or `bytes` is 0.
unsafe fn slice<'a>(data: *const u8, bytes: usize) -> &'a [u8] {
    if bytes == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(data, bytes) }
}

/// Writes text with a terminating zero, cut to the available room.
///
/// # Safety
/// `to` points to `room` bytes that nobody else uses.
unsafe fn write_text(text: &str, to: *mut c_char, room: usize) {
    let Some(most) = room.checked_sub(1) else { return };
    // SAFETY: the caller's promise.
    let to = unsafe { std::slice::from_raw_parts_mut(to.cast::<u8>(), room) };
    let bytes = text.len().min(most);
    to[..bytes].copy_from_slice(&text.as_bytes()[..bytes]);
    to[bytes] = 0;
}

/// Reads a policy string into `policy`, and writes the policy's id to `text`. On an error, writes the reason
/// there instead, and returns false.
///
/// # Safety
/// `string` points to `bytes` bytes, `policy` to a policy, and `text` to `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sidebloom_parity_parse(
    string: *const u8,
    bytes: usize,
    policy: *mut RawPolicy,
    text: *mut c_char,
    room: usize,
) -> bool {
    guarded(false, || {
        // SAFETY: the caller's promise.
        let string = unsafe { slice(string, bytes) };
        let parsed = String::from_utf8_lossy(string).parse::<Policy>();
        let id = parsed.as_ref().map_or_else(ToString::to_string, ToString::to_string);
        // SAFETY: the caller's promise.
        unsafe { write_text(&id, text, room) };
        let Ok(parsed) = parsed else { return false };
        let (width, bits_per_key) = match parsed {
            Policy::Width(width) => (width.number(), 0.0),
            Policy::Auto { bits_per_key } => (0, bits_per_key),
        };
        // SAFETY: the caller's promise.
        unsafe { policy.write(RawPolicy { width, bits_per_key }) };
        true
    })
}

/// The size of the filters of files in a place, a number of [`Place`].
#[unsafe(no_mangle)]
pub extern "C" fn sidebloom_parity_size(policy: &RawPolicy, place: u32) -> RawSize {
    let otherwise = RawSize { width: 8, keys_per_line: Width::Eight.keys_per_line() };
    guarded(otherwise, || {
        let size = policy.get().size(Place::from_number(place));
        RawSize { width: size.width.number(), keys_per_line: size.keys_per_line }
    })
}

/// The expected size in bytes of the block of a filter with this many keys.
#[unsafe(no_mangle)]
pub extern "C" fn sidebloom_parity_bytes(size: RawSize, keys: usize) -> usize {
    guarded(0, || size.get().bytes(keys as u64))
}

/// How many keys are expected to fit a block of at most this many bytes.
#[unsafe(no_mangle)]
pub extern "C" fn sidebloom_parity_keys(size: RawSize, bytes: usize) -> usize {
    guarded(0, || size.get().keys(bytes) as usize)
}

/// The expected false-positive rate, 0 to 1, of a filter of this many keys in a block of at most this many
/// bytes; 1 if no filter is that small.
#[unsafe(no_mangle)]
pub extern "C" fn sidebloom_parity_fpr(keys: usize, bytes: usize) -> f64 {
    guarded(1.0, || Size::fitting(keys as u64, bytes).map_or(1.0, Size::fpr))
}

/// A builder, or null if memory is short.
#[unsafe(no_mangle)]
pub extern "C" fn sidebloom_parity_builder_new(size: RawSize, detect_corruption: bool) -> *mut Builder {
    guarded(std::ptr::null_mut(), || {
        let builder = Builder::new(size.get(), *SEED, detect_corruption);
        // SAFETY: a builder's size is not zero.
        let memory = unsafe { alloc(Layout::new::<Builder>()) }.cast::<Builder>();
        if !memory.is_null() {
            // SAFETY: memory for a builder, with its size and alignment.
            unsafe { memory.write(builder) };
        }
        memory
    })
}

/// Frees a builder.
///
/// # Safety
/// The builder is one of [`sidebloom_parity_builder_new`], or null, and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sidebloom_parity_builder_free(builder: *mut Builder) {
    if !builder.is_null() {
        // SAFETY: made of the global allocator's memory with this layout, and never used again.
        guarded((), || drop(unsafe { Box::from_raw(builder) }));
    }
}

/// Adds a key. Returns the number of keys added.
///
/// # Safety
/// `key` is a readable slice.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sidebloom_parity_add(builder: &mut Builder, key: RawSlice) -> usize {
    // SAFETY: the caller's promise.
    let key = unsafe { slice(key.data, key.bytes) };
    catch_unwind(AssertUnwindSafe(|| builder.add(key))).unwrap_or_else(|_| builder.give_up())
}

/// Adds a key and its prefix. Returns the number of keys and prefixes added.
///
/// # Safety
/// `key` and `prefix` are readable slices.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sidebloom_parity_add_with_prefix(
    builder: &mut Builder,
    key: RawSlice,
    prefix: RawSlice,
) -> usize {
    // SAFETY: the caller's promise.
    let (key, prefix) = unsafe { (slice(key.data, key.bytes), slice(prefix.data, prefix.bytes)) };
    catch_unwind(AssertUnwindSafe(|| builder.add_with_prefix(key, prefix)))
        .unwrap_or_else(|_| builder.give_up())
}

/// Builds the filter, of about `room` bytes unless `room` is 0. Sets `bytes` to the size of its block.
#[unsafe(no_mangle)]
pub extern "C" fn sidebloom_parity_build(builder: &mut Builder, room: usize, bytes: &mut usize) -> c_int {
    guarded(NOT_BUILT, || match builder.build((room > 0).then_some(room)) {
        Ok(size) => {
            *bytes = size;
            BUILT
        }
        Err(Failure::NoFilter) => NOT_BUILT,
        Err(Failure::Corrupted) => CORRUPTED,
    })
}

/// Writes the filter's block. Returns its size; 0 if it does not fit into `room` bytes.
///
/// # Safety
/// `to` points to `room` bytes that nobody else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sidebloom_parity_write(builder: &mut Builder, to: *mut u8, room: usize) -> usize {
    guarded(0, || {
        // SAFETY: the caller's promise.
        let to = unsafe { std::slice::from_raw_parts_mut(to, room) };
        builder.write(to).unwrap_or(0)
    })
}

/// Whether a block has all added keys, if the builder detects corruption.
///
/// # Safety
/// `block` is a readable slice.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sidebloom_parity_verify(builder: &mut Builder, block: RawSlice) -> bool {
    // SAFETY: the caller's promise.
    guarded(false, || builder.verify(unsafe { slice(block.data, block.bytes) }))
}

/// The block of a file without a filter.
#[unsafe(no_mangle)]
pub extern "C" fn sidebloom_parity_no_filter() -> RawSlice {
    RawSlice { data: NO_FILTER.as_ptr(), bytes: NO_FILTER.len() }
}

/// Makes a reader of a block, whatever its contents.
///
/// # Safety
/// `block` is a readable slice that outlives the reader unchanged, and `reader` points to memory for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sidebloom_parity_reader_init(reader: *mut RawReader, block: RawSlice) {
    // SAFETY: the caller's promise.
    let made = catch_unwind(|| Reader::of(unsafe { slice(block.data, block.bytes) }));
    let made = made.unwrap_or_else(|_| Reader::of(&[]));
    // SAFETY: the memory is large and aligned enough, as asserted above.
    unsafe { reader.cast::<Reader>().write(made) };
}

/// Whether the file may have a key.
///
/// # Safety
/// [`sidebloom_parity_reader_init`] made the reader, its block still exists, and `key` is a readable slice.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sidebloom_parity_may_match(reader: *const RawReader, key: RawSlice) -> bool {
    // SAFETY: the caller's promise.
    guarded(true, || unsafe { (*reader.cast::<Reader>()).may_match(slice(key.data, key.bytes)) })
}

/// [`sidebloom_parity_may_match`] for `count` keys.
///
/// # Safety
/// As for one key; `keys` points to `count` pointers to readable slices, and `may_match` to `count` answers,
/// which nobody else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sidebloom_parity_may_match_many(
    reader: *const RawReader,
    count: usize,
    keys: *const *const RawSlice,
    may_match: *mut bool,
) {
    if count == 0 {
        return; // Then the pointers may be null.
    }
    guarded((), || {
        // SAFETY: the caller's promise.
        let (reader, keys, answers) = unsafe {
            (
                &*reader.cast::<Reader>(),
                std::slice::from_raw_parts(keys, count),
                std::slice::from_raw_parts_mut(may_match, count),
            )
        };
        answers.fill(true);
        // SAFETY: the caller's promise.
        let keys = keys.iter().map(|&key| unsafe { slice((*key).data, (*key).bytes) });
        reader.may_match_many(keys, answers);
    });
}
