//! Filters: what they are, and their files.

use crate::boundary::{run, run_or};
use crate::bytes::{Out, bytes, object, path};
use crate::error::{Code, Error, Failure};
use crate::value::Value;
use crate::version;
use sidebloom::MappedFilter;
use sidebloom::filter::{AnyFilter, Bloom};
use std::ffi::{CStr, c_char, c_void};

/// A filter: a set of keys that may answer "maybe" for a key that is not in it, and never "absent" for one
/// that is. Any number of threads may ask it at the same time, and only while no thread changes it. Free it
/// with sb_filter_free.
pub enum Filter {
    /// In memory.
    Held(AnyFilter),
    /// In its file.
    Mapped(MappedFilter),
}

impl Filter {
    /// The filter, to be changed.
    ///
    /// # Errors
    /// [`Code::InvalidArgument`] for a mapped one.
    pub(crate) fn held(&mut self) -> Result<&mut AnyFilter, Failure> {
        match self {
            Filter::Held(filter) => Ok(filter),
            Filter::Mapped(_) => {
                Err(Error::invalid("a mapped filter cannot be changed: open it with sb_filter_open"))
            }
        }
    }

    /// Lends the filter. Copies a mapped one.
    fn with_held<R>(&self, body: impl FnOnce(&AnyFilter) -> Result<R, Failure>) -> Result<R, Failure> {
        match self {
            Filter::Held(filter) => body(filter),
            Filter::Mapped(filter) => body(&filter.to_memory()?),
        }
    }
}

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
            out.give(Filter::Held(sidebloom::read_filter(self::path(path)?)?));
            Ok(())
        })
    }
}

/// Opens the file of a filter without reading it, and maps it: processes share its pages, and questions read
/// only what they need, which is verified before its first use. The filter cannot be changed. Counting,
/// scalable and small filters are read as a whole. Pass SB_INTERFACE.
///
/// The errors of sb_filter_open; questions return SB_CORRUPTION for damage that they meet. As with every
/// mapped file, truncating it ends the process, unless sb_catch_sigbus was called.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_filter_map(
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
            out.give(Filter::Mapped(MappedFilter::open(self::path(path)?)?));
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
            filter.with_held(|filter| Ok(sidebloom::write_filter(path, filter).map(drop)?))
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
            object(filter, "filter")?
                .with_held(|filter| Ok(sidebloom::send_filter(filter, &mut message).map(drop)?))?;
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
            out.give(Filter::Held(received));
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
    let bloom = |filter: &'_ Filter| {
        filter.with_held(|filter| match filter {
            AnyFilter::Bloom(bloom) => Ok(bloom.clone()),
            other => Err(Failure::from(sidebloom::filter::Error::Mismatch {
                what: format!("one is of kind {}, and only Bloom filters can be combined", other.name()),
            })),
        })
    };
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let out = Out::handle(both, "both")?;
            let (a, b) = (bloom(object(a, "a")?)?, bloom(object(b, "b")?)?);
            out.give(Filter::Held(AnyFilter::Bloom(combine(&a, &b)?)));
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
    run_or(0, || match filter {
        None => 0,
        Some(Filter::Held(filter)) => filter.keys(),
        Some(Filter::Mapped(filter)) => filter.keys(),
    })
}

/// The number of keys that it can hold; UINT64_MAX for a scalable one, those that it has for a mapped one, 0
/// for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn sb_filter_capacity(filter: Option<&Filter>) -> u64 {
    run_or(0, || match filter {
        None => 0,
        Some(Filter::Held(filter)) => filter.capacity().unwrap_or(u64::MAX),
        Some(Filter::Mapped(filter)) => filter.keys(),
    })
}

/// The share of absent keys for which it answers "maybe", 0 to 1: now, or for a mapped filter when it was
/// saved; 1 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn sb_filter_rate(filter: Option<&Filter>) -> f64 {
    run_or(1.0, || match filter {
        None => 1.0,
        Some(Filter::Held(filter)) => filter.fpr(),
        Some(Filter::Mapped(filter)) => filter.fpr(),
    })
}

/// Its size in bytes, in memory or in its file; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn sb_filter_bytes(filter: Option<&Filter>) -> u64 {
    run_or(0, || match filter {
        None => 0,
        Some(Filter::Held(filter)) => filter.bytes(),
        Some(Filter::Mapped(filter)) => filter.bytes(),
    })
}

/// The name of its kind: "parity", "blocked-bloom", "bloom", "counting", "scalable" or "small"; "" for NULL.
/// Do not free it.
#[unsafe(no_mangle)]
pub extern "C" fn sb_filter_kind_name(filter: Option<&Filter>) -> *const c_char {
    let names = [c"parity", c"blocked-bloom", c"bloom", c"counting", c"scalable", c"small"];
    let name = match filter {
        None => "",
        Some(Filter::Held(filter)) => filter.name(),
        Some(Filter::Mapped(filter)) => filter.name(),
    };
    let known = names.into_iter().find(|known| known.to_bytes() == name.as_bytes());
    known.map_or(c"".as_ptr(), CStr::as_ptr)
}
