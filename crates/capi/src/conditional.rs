//! Writes that depend on what the store has.

use crate::boundary::run;
use crate::bytes::{Out, Slice, array_to_fill, key, slices, value};
use crate::db::{Db, expiry, with_db};
use crate::error::{Code, Error, Failure};
use sidebloom::{MAX_KEY_BYTES, MAX_VALUE_BYTES};
use std::ffi::c_void;

/// Puts a key if it does not exist, and sets `inserted` to whether it did not. Of any number of calls at the
/// same time with the same key, in any threads, one inserts it.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_insert_new(
    db: Option<&Db>,
    key: *const c_void,
    key_length: usize,
    value: *const c_void,
    value_length: usize,
    inserted: *mut bool,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let out = Out::new(inserted, false, "inserted")?;
            let (key, value) = (self::key(key, key_length)?, self::value(value, value_length)?);
            out.set(with_db(db, |db| Ok(db.insert_new(key, value)?))?);
            Ok(())
        })
    }
}

/// sb_insert_new of a row that expires `milliseconds` after it is written: at least 1.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_insert_new_expiring(
    db: Option<&Db>,
    key: *const c_void,
    key_length: usize,
    value: *const c_void,
    value_length: usize,
    milliseconds: u64,
    inserted: *mut bool,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let out = Out::new(inserted, false, "inserted")?;
            let (key, value) = (self::key(key, key_length)?, self::value(value, value_length)?);
            out.set(with_db(db, |db| Ok(db.insert_new_with(key, value, expiry(milliseconds))?))?);
            Ok(())
        })
    }
}

/// sb_insert_new for `count` rows at once: all new rows are written or none. Sets `inserted[i]` to 1 if
/// `keys[i]` did not exist, and else to 0; of equal keys, the first counts. `values` may be NULL if all
/// values are empty.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_insert_new_many(
    db: Option<&Db>,
    keys: *const Slice,
    values: *const Slice,
    count: usize,
    inserted: *mut u8,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let out = array_to_fill(inserted, count, "inserted")?;
            let rows = rows(keys, values, count)?;
            let are_new = with_db(db, |db| Ok(db.insert_new_many(&rows)?))?;
            out.iter_mut().zip(are_new).for_each(|(out, is_new)| *out = u8::from(is_new));
            Ok(())
        })
    }
}

/// A key and a value.
type Row<'a> = (&'a [u8], &'a [u8]);

/// # Safety
/// As for [`slices`].
unsafe fn rows<'a>(keys: *const Slice, values: *const Slice, count: usize) -> Result<Vec<Row<'a>>, Failure> {
    // SAFETY: the caller's promise.
    let keys = unsafe { slices(keys, count, MAX_KEY_BYTES, "keys") }?;
    if values.is_null() {
        return Ok(keys.into_iter().map(|key| (key, [].as_slice())).collect());
    }
    // SAFETY: the caller's promise.
    let values = unsafe { slices(values, count, MAX_VALUE_BYTES, "values") }?;
    Ok(keys.into_iter().zip(values).collect())
}
