//! Filters: what they are, and their files.

use crate::boundary::{run, run_or};
use crate::bytes::{Out, bytes, object, path};
use crate::error::{Code, Error, Failure};
use crate::value::Value;
use crate::version;
use sidebloom::filter::{AnyFilter, Bloom};
use std::ffi::{CStr, c_char, c_void};

/// A filter: a set of keys that may answer "maybe" for a key that is not in it, and never "absent" for one
/// that is. Any number of threads may ask it at the same time, and only while no thread changes it. Free it
/// with sb_filter_free.
pub struct Filter(pub(crate) AnyFilter);

/// Frees a filter. NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn sb_filter_free(filter: Option<Box<Filter>>) {
    run_or((), || drop(filter));
}

/// Opens the file of a filter, which sb_filter_save or the command `sidebloom filter` has written, and
/// verifies every byte. Pass SB_INTERFACE.
///
/// SB_IO; SB_CORRUPTION for a file that is damaged or no filter; SB_OTHER_VERSION.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_filter_open(
    interface: u32,
    path: *const c_char,
    filter: *mut *mut Filter,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let out = Out::handle(filter, "filter")?;
            version::check(interface)?;
            out.give(Filter(sidebloom::read_filter(self::path(path)?)?));
            Ok(())
        })
    }
}

/// Writes a filter to a file, durably. Replaces an existing file, which stays as it is on an error.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_filter_save(
    filter: Option<&Filter>,
    path: *const c_char,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let (filter, path) = (object(filter, "filter")?, self::path(path)?);
            sidebloom::write_filter(path, &filter.0)?;
            Ok(())
        })
    }
}

/// Encodes a filter as a message. Free it with sb_value_free.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_filter_encode(
    filter: Option<&Filter>,
    message: *mut *mut Value,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let (out, mut message) = (Out::handle(message, "message")?, Vec::new());
            sidebloom::send_filter(&object(filter, "filter")?.0, &mut message)?;
            out.give(Value::own(message));
            Ok(())
        })
    }
}

/// Decodes a message, which may come from a stranger. Pass SB_INTERFACE, and the most bytes that the filter
/// may take in memory.
///
/// SB_CORRUPTION for a damaged message; SB_TOO_LARGE; SB_OTHER_VERSION.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_filter_decode(
    interface: u32,
    message: *const c_void,
    message_length: usize,
    bytes_max: u64,
    filter: *mut *mut Filter,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let out = Out::handle(filter, "filter")?;
            version::check(interface)?;
            let mut message = bytes(message, message_length, "message")?;
            let received = sidebloom::receive_filter(&mut message, bytes_max)?;
            if !message.is_empty() {
                let what = format!("{} bytes follow the filter in the message", message.len());
                return Err(Error::new(Code::Corruption, what));
            }
            out.give(Filter(received));
            Ok(())
        })
    }
}

/// Combines two Bloom filters.
///
/// # Safety
/// `error` is null or points to memory for a pointer; `both` is null or points to memory for one.
unsafe fn combine(
    a: Option<&Filter>,
    b: Option<&Filter>,
    both: *mut *mut Filter,
    error: *mut *mut Error,
    combine: fn(&Bloom, &Bloom) -> Result<Bloom, sidebloom::filter::Error>,
) -> Code {
    let bloom = |filter: &'_ Filter| match &filter.0 {
        AnyFilter::Bloom(bloom) => Ok(bloom.clone()),
        other => Err(Failure::from(sidebloom::filter::Error::Mismatch {
            what: format!("one is of kind {}, and only Bloom filters can be combined", other.name()),
        })),
    };
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let out = Out::handle(both, "both")?;
            let (a, b) = (bloom(object(a, "a")?)?, bloom(object(b, "b")?)?);
            out.give(Filter(AnyFilter::Bloom(combine(&a, &b)?)));
            Ok(())
        })
    }
}

/// The filter of all keys of two Bloom filters, which were made for the same number of keys and the same
/// rate.
///
/// SB_FILTER_MISMATCH.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_filter_union(
    a: Option<&Filter>,
    b: Option<&Filter>,
    both: *mut *mut Filter,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe { combine(a, b, both, error, Bloom::union) }
}

/// A filter of the keys that two Bloom filters share, which were made for the same number of keys and the
/// same rate.
///
/// SB_FILTER_MISMATCH.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_filter_intersection(
    a: Option<&Filter>,
    b: Option<&Filter>,
    both: *mut *mut Filter,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe { combine(a, b, both, error, Bloom::intersection) }
}

/// The number of keys, as far as the kind can tell; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn sb_filter_keys(filter: Option<&Filter>) -> u64 {
    run_or(0, || filter.map_or(0, |filter| filter.0.keys()))
}

/// The number of keys that it can hold; UINT64_MAX for a scalable one, 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn sb_filter_capacity(filter: Option<&Filter>) -> u64 {
    run_or(0, || filter.map_or(0, |filter| filter.0.capacity().unwrap_or(u64::MAX)))
}

/// The share of absent keys for which it now answers "maybe", 0 to 1; 1 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn sb_filter_rate(filter: Option<&Filter>) -> f64 {
    run_or(1.0, || filter.map_or(1.0, |filter| filter.0.fpr()))
}

/// Its size in memory, in bytes; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn sb_filter_bytes(filter: Option<&Filter>) -> u64 {
    run_or(0, || filter.map_or(0, |filter| filter.0.bytes()))
}

/// The name of its kind: "parity", "blocked-bloom", "bloom", "counting", "scalable" or "small"; "" for NULL.
/// Do not free it.
#[unsafe(no_mangle)]
pub extern "C" fn sb_filter_kind_name(filter: Option<&Filter>) -> *const c_char {
    let names = [c"parity", c"blocked-bloom", c"bloom", c"counting", c"scalable", c"small"];
    let name = filter.map_or("", |filter| filter.0.name());
    let known = names.into_iter().find(|known| known.to_bytes() == name.as_bytes());
    known.map_or(c"".as_ptr(), CStr::as_ptr)
}
