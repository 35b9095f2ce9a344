//! Asking filters.

use crate::boundary::run;
use crate::bytes::{Out, Slice, array, array_to_fill, bytes, object};
use crate::db::verdict;
use crate::error::{Code, Error, Failure};
use crate::filter::Filter;
use std::ffi::c_void;

/// Keys that are asked at once, so that the caller's arrays are not copied as a whole.
const CHUNK: usize = 1024;

/// Writes the verdict for each key.
fn answer<'k>(
    filter: &Filter,
    verdicts: &mut [u8],
    mut keys: impl Iterator<Item = Result<&'k [u8], Failure>>,
) -> Result<(), Failure> {
    let mut chunk = Vec::with_capacity(CHUNK.min(verdicts.len()));
    for verdicts in verdicts.chunks_mut(CHUNK) {
        chunk.clear();
        for key in keys.by_ref().take(verdicts.len()) {
            chunk.push(key?);
        }
        let found = match filter {
            Filter::Held(filter) => filter.contains_many(&chunk),
            Filter::Mapped(filter) => filter.contains_many(&chunk)?,
        };
        verdicts.iter_mut().zip(found).for_each(|(out, found)| *out = verdict(found));
    }
    Ok(())
}

/// Takes the verdicts' place. Until it is answered, each is "maybe".
///
/// # Safety
/// As for [`array_to_fill`].
unsafe fn maybes<'a>(verdicts: *mut u8, count: usize) -> Result<&'a mut [u8], Failure> {
    // SAFETY: the caller's promise.
    let verdicts = unsafe { array_to_fill(verdicts, count, "verdicts") }?;
    verdicts.fill(1);
    Ok(verdicts)
}

/// Sets `maybe` to false if a key is certainly not in the filter, and to true if it may be.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_filter_contains(
    filter: Option<&Filter>,
    key: *const c_void,
    key_length: usize,
    maybe: *mut bool,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let out = Out::new(maybe, true, "maybe")?;
            let key = bytes(key, key_length, "key")?;
            let found = match object(filter, "filter")? {
                Filter::Held(filter) => filter.contains(key),
                Filter::Mapped(filter) => filter.contains(key)?,
            };
            out.set(verdict(found) == 1);
            Ok(())
        })
    }
}

/// Asks for `count` keys, faster than one by one. Sets `verdicts[i]` to 0 if `keys[i]` is certainly not in
/// the filter, and to 1 if it may be. On an error, all are 1 or unchanged, or some are answered.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_filter_contains_many(
    filter: Option<&Filter>,
    keys: *const Slice,
    count: usize,
    verdicts: *mut u8,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let verdicts = maybes(verdicts, count)?;
            let keys = array(keys, count, "keys")?;
            let keys = keys.iter().map(|key| bytes(key.data, key.length, "a key"));
            answer(object(filter, "filter")?, verdicts, keys)
        })
    }
}

/// sb_filter_contains_many for `count` keys of `width` bytes each, one after the other in `keys`.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_filter_contains_fixed(
    filter: Option<&Filter>,
    keys: *const c_void,
    width: usize,
    count: usize,
    verdicts: *mut u8,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let verdicts = maybes(verdicts, count)?;
            let length = width.checked_mul(count);
            let too_large = || Error::invalid(format!("{count} keys of {width} bytes are too many"));
            let all = bytes(keys, length.ok_or_else(too_large)?, "keys")?;
            let keys = (0..count).map(|i| Ok(all.get(i * width..(i + 1) * width).unwrap_or_default()));
            answer(object(filter, "filter")?, verdicts, keys)
        })
    }
}

/// The keys that offsets delimit.
fn delimited(
    data: &[u8],
    offsets: impl Iterator<Item = i64> + Clone,
) -> impl Iterator<Item = Result<&[u8], Failure>> {
    let each = |(from, to): (i64, i64)| {
        let range = usize::try_from(from).ok().zip(usize::try_from(to).ok());
        let key = range.and_then(|(from, to)| data.get(from..to));
        key.ok_or_else(|| {
            let bytes = data.len();
            Error::invalid(format!("a key from offset {from} to {to}, in {bytes} bytes of data"))
        })
    };
    offsets.clone().zip(offsets.skip(1)).map(each)
}

/// The offsets of `count` keys.
///
/// # Safety
/// As for [`array()`].
unsafe fn offsets<'a, T>(offsets: *const T, count: usize) -> Result<&'a [T], Failure> {
    let ends = count.checked_add(1).ok_or_else(|| Error::invalid("a count of SIZE_MAX"))?;
    // SAFETY: the caller's promise.
    unsafe { array(offsets, ends, "offsets") }
}

/// sb_filter_contains_many for `count` keys that lie in `data`, key `i` from `offsets[i]` up to
/// `offsets[i + 1]`, as in Arrow's Binary and Utf8 arrays. There are `count + 1` offsets.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_filter_contains_offsets(
    filter: Option<&Filter>,
    data: *const c_void,
    data_length: usize,
    offsets: *const i32,
    count: usize,
    verdicts: *mut u8,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let verdicts = maybes(verdicts, count)?;
            let data = bytes(data, data_length, "data")?;
            let offsets = self::offsets(offsets, count)?.iter().map(|&offset| i64::from(offset));
            answer(object(filter, "filter")?, verdicts, delimited(data, offsets))
        })
    }
}

/// sb_filter_contains_offsets with offsets of 64 bits, as in Arrow's LargeBinary and LargeUtf8 arrays.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_filter_contains_large_offsets(
    filter: Option<&Filter>,
    data: *const c_void,
    data_length: usize,
    offsets: *const i64,
    count: usize,
    verdicts: *mut u8,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let verdicts = maybes(verdicts, count)?;
            let data = bytes(data, data_length, "data")?;
            let offsets = self::offsets(offsets, count)?.iter().copied();
            answer(object(filter, "filter")?, verdicts, delimited(data, offsets))
        })
    }
}
