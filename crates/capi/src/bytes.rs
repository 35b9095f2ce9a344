//! What C programs pass by pointer and length, checked before anything is read or written through it.

use crate::error::{Code, Error, Failure};
use sidebloom::{MAX_KEY_BYTES, MAX_VALUE_BYTES};
use std::ffi::{CStr, OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Bytes of somebody else: a key, or what a function returns. `data` may be NULL if `length` is 0.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Slice {
    /// The first byte.
    pub data: *const c_void,
    /// How many there are.
    pub length: usize,
}

impl Slice {
    /// No bytes, at no address.
    pub const EMPTY: Slice = Slice { data: std::ptr::null(), length: 0 };

    /// Lends bytes to the caller.
    pub fn of(bytes: &[u8]) -> Slice {
        Slice { data: bytes.as_ptr().cast(), length: bytes.len() }
    }
}

/// The slice of `count` elements at `data`.
///
/// # Errors
/// For null, unless `count` is 0; for a misaligned pointer; for a length that no memory can have, as a
/// negative number is once it is converted to `size_t`.
///
/// # Safety
/// Unless one of these errors is returned, `data` points to `count` elements that nobody changes while the
/// result is in use.
pub unsafe fn array<'a, T>(data: *const T, count: usize, name: &str) -> Result<&'a [T], Failure> {
    check_array(data, count, name)?;
    if count == 0 {
        return Ok(&[]);
    }
    // SAFETY: not null, aligned, of a possible size; the rest is the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(data, count) })
}

/// [`array()`], to be filled. It is zeroed first.
///
/// # Errors
/// The errors of [`array()`].
///
/// # Safety
/// Unless there is an error, `data` points to memory for `count` elements that nobody else uses, and zeros
/// are valid for `T`.
pub unsafe fn array_to_fill<'a, T>(data: *mut T, count: usize, name: &str) -> Result<&'a mut [T], Failure> {
    check_array(data, count, name)?;
    if count == 0 {
        return Ok(&mut []);
    }
    // SAFETY: not null, aligned, of a possible size; the rest is the caller's promise.
    unsafe {
        data.write_bytes(0, count);
        Ok(std::slice::from_raw_parts_mut(data, count))
    }
}

fn check_array<T>(data: *const T, count: usize, name: &str) -> Result<(), Failure> {
    let bytes = count.checked_mul(size_of::<T>()).filter(|bytes| isize::try_from(*bytes).is_ok());
    if bytes.is_none() {
        return Err(Error::invalid(format!(
            "a length of {count} for {name} is more than any memory has; was it negative?"
        )));
    }
    if count > 0 && data.is_null() {
        return Err(Error::invalid(format!("{name} is NULL, but its length is {count}")));
    }
    if count > 0 && !data.is_aligned() {
        return Err(Error::invalid(format!("{name} is not aligned")));
    }
    Ok(())
}

/// Any bytes.
///
/// # Errors
/// The errors of [`array()`].
///
/// # Safety
/// As for [`array()`].
pub unsafe fn bytes<'a>(data: *const c_void, length: usize, name: &str) -> Result<&'a [u8], Failure> {
    // SAFETY: the caller's promise.
    unsafe { array(data.cast::<u8>(), length, name) }
}

/// A key of a store. Longer ones than a store has are refused unread.
///
/// # Errors
/// The errors of [`array()`]; [`Code::TooLarge`].
///
/// # Safety
/// As for [`array()`].
pub unsafe fn key<'a>(data: *const c_void, length: usize) -> Result<&'a [u8], Failure> {
    // SAFETY: the caller's promise.
    let key = unsafe { bytes(data, length, "key") }?;
    check_length(key.len(), MAX_KEY_BYTES, "key")?;
    Ok(key)
}

/// A value of a store. Longer ones than a store has are refused unread.
///
/// # Errors
/// The errors of [`array()`]; [`Code::TooLarge`].
///
/// # Safety
/// As for [`array()`].
pub unsafe fn value<'a>(data: *const c_void, length: usize) -> Result<&'a [u8], Failure> {
    // SAFETY: the caller's promise.
    let value = unsafe { bytes(data, length, "value") }?;
    check_length(value.len(), MAX_VALUE_BYTES, "value")?;
    Ok(value)
}

fn check_length(length: usize, max: usize, name: &str) -> Result<(), Failure> {
    if length <= max {
        return Ok(());
    }
    Err(Error::new(Code::TooLarge, format!("a {name} of {length} bytes is too large (at most {max} bytes)")))
}

/// Several byte strings, each at most `max` bytes long.
///
/// # Errors
/// The errors of [`array()`], also for each element; [`Code::TooLarge`].
///
/// # Safety
/// As for [`array()`], also for each element.
pub unsafe fn slices<'a>(
    data: *const Slice,
    count: usize,
    max: usize,
    name: &str,
) -> Result<Vec<&'a [u8]>, Failure> {
    // SAFETY: the caller's promise.
    let slices = unsafe { array(data, count, name) }?;
    let each = |slice: &Slice| {
        // SAFETY: the caller's promise.
        let bytes = unsafe { bytes(slice.data, slice.length, name) }?;
        check_length(bytes.len(), max, "key or value")?;
        Ok(bytes)
    };
    slices.iter().map(each).collect()
}

/// An optional key, by a pointer to a slice: null for none.
///
/// # Errors
/// The errors of [`key`].
///
/// # Safety
/// `slice` is null, or points to a slice for which [`key`] can be called.
pub unsafe fn bound<'a>(slice: *const Slice, name: &str) -> Result<Option<&'a [u8]>, Failure> {
    if slice.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise; alignment is checked first.
    unsafe {
        let [slice] = *array(slice, 1, name)? else { return Ok(None) };
        key(slice.data, slice.length).map(Some)
    }
}

/// Text that ends in NUL.
///
/// # Errors
/// For null, and for what is not UTF-8.
///
/// # Safety
/// `text` is null, or points to text that ends in NUL and does not change while the result is in use.
pub unsafe fn text<'a>(text: *const c_char, name: &str) -> Result<&'a str, Failure> {
    // SAFETY: the caller's promise.
    let text = unsafe { c_str(text, name) }?;
    text.to_str().map_err(|_| Error::invalid(format!("{name} is not UTF-8")))
}

/// A path. It need not be UTF-8.
///
/// # Errors
/// For null, and for an empty path.
///
/// # Safety
/// As for [`text`].
pub unsafe fn path<'a>(path: *const c_char) -> Result<&'a Path, Failure> {
    // SAFETY: the caller's promise.
    let path = unsafe { c_str(path, "path") }?;
    if path.is_empty() {
        return Err(Error::invalid("path is empty"));
    }
    Ok(Path::new(OsStr::from_bytes(path.to_bytes())))
}

unsafe fn c_str<'a>(text: *const c_char, name: &str) -> Result<&'a CStr, Failure> {
    if text.is_null() {
        return Err(null(name));
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { CStr::from_ptr(text) })
}

/// The error for a null pointer.
pub fn null(name: &str) -> Failure {
    Error::invalid(format!("{name} is NULL"))
}

/// An object of the caller.
///
/// # Errors
/// For null.
pub fn object<'a, T>(object: Option<&'a T>, name: &str) -> Result<&'a T, Failure> {
    object.ok_or_else(|| null(name))
}

/// An object of the caller, to change.
///
/// # Errors
/// For null.
pub fn object_mut<'a, T>(object: Option<&'a mut T>, name: &str) -> Result<&'a mut T, Failure> {
    object.ok_or_else(|| null(name))
}

/// Where a result is written.
pub struct Out<T>(*mut T);

impl<T> Out<T> {
    /// Takes the place, and writes `blank` there, which stays if the call fails.
    ///
    /// # Errors
    /// For null, and for a misaligned pointer.
    ///
    /// # Safety
    /// `place` is null or points to memory for a `T` until the result is dropped.
    pub unsafe fn new(place: *mut T, blank: T, name: &str) -> Result<Self, Failure> {
        if place.is_null() {
            return Err(null(name));
        }
        check_array(place, 1, name)?;
        // SAFETY: not null, aligned; the rest is the caller's promise.
        unsafe { place.write(blank) };
        Ok(Out(place))
    }

    /// [`new`](Self::new), for a result that the caller need not want.
    ///
    /// # Errors
    /// For a misaligned pointer.
    ///
    /// # Safety
    /// As for [`new`](Self::new).
    pub unsafe fn optional(place: *mut T, blank: T, name: &str) -> Result<Option<Self>, Failure> {
        if place.is_null() {
            return Ok(None);
        }
        // SAFETY: the caller's promise.
        unsafe { Out::new(place, blank, name) }.map(Some)
    }

    /// Writes the result.
    pub fn set(self, value: T) {
        // SAFETY: the promise of `new`.
        unsafe { self.0.write(value) };
    }
}

impl<T> Out<*mut T> {
    /// [`new`](Self::new), for a handle.
    ///
    /// # Errors
    /// The errors of [`new`](Self::new).
    ///
    /// # Safety
    /// As for [`new`](Self::new).
    pub unsafe fn handle(place: *mut *mut T, name: &str) -> Result<Self, Failure> {
        // SAFETY: the caller's promise.
        unsafe { Out::new(place, std::ptr::null_mut(), name) }
    }

    /// Gives an object to the caller.
    pub fn give(self, object: T) {
        self.set(Box::into_raw(Box::new(object)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr;

    fn code<T>(result: Result<T, Failure>) -> Code {
        result.err().map_or(Code::Ok, |failure| failure.code())
    }

    #[test]
    fn null_misaligned_and_impossible_arrays_are_refused() {
        let [none, odd] = [ptr::null(), ptr::without_provenance::<u64>(9)];
        // SAFETY: none of them is read.
        unsafe {
            assert_eq!(code(array(none, 0, "x")), Code::Ok);
            assert_eq!(code(array(odd, 0, "x")), Code::Ok);
            for (data, count) in [(none, 1), (odd, 1), (odd, usize::MAX), (ptr::dangling(), usize::MAX / 8)] {
                assert_eq!(code(array(data, count, "x")), Code::InvalidArgument, "{data:?}, {count}");
                assert_eq!(code(array_to_fill(data.cast_mut(), count, "x")), Code::InvalidArgument);
            }
            assert_eq!(code(bytes(ptr::dangling(), -1isize as usize, "x")), Code::InvalidArgument);
            assert_eq!(code(Out::new(ptr::without_provenance_mut::<u64>(9), 0, "x")), Code::InvalidArgument);
        }
    }
}
