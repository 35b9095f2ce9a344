//! Guards, in front of a slow database.

use crate::boundary::{run, run_or};
use crate::bytes::{Out, Slice, array_to_fill, bytes, object, path, slices, text};
use crate::db::verdict;
use crate::error::{Code, Error, Failure};
use crate::handle::{Handle, with};
use crate::options::durability;
use crate::stats::{self, field, fraction};
use crate::value::Value;
use crate::version;
use sidebloom::guard::{Canonical, GuardOptions};
use std::ffi::{c_char, c_void};

/// A guard in front of a slow database: it knows the key of every row, and answers lookups of missing keys
/// from memory. Insert a key before the database commits its row, and remove it after the database has
/// committed the deletion. Any number of threads may use it. Close it with sb_guard_close, and free it with
/// sb_guard_free.
pub struct Guard(Handle<sidebloom::guard::Guard>);

fn with_guard<R>(
    guard: Option<&Guard>,
    body: impl FnOnce(&sidebloom::guard::Guard) -> Result<R, Failure>,
) -> Result<R, Failure> {
    with(guard.map(|guard| &guard.0), "guard", body)
}

/// # Safety
/// As for [`text`].
unsafe fn options(equality: *const c_char, durability: u32) -> Result<GuardOptions, Failure> {
    let mut options = GuardOptions::new();
    if !equality.is_null() {
        // SAFETY: the caller's promise.
        options = options.canonical(unsafe { text(equality, "equality") }?.parse::<Canonical>()?);
    }
    if let Some(durability) = self::durability(durability)? {
        options = options.durability(durability);
    }
    Ok(options)
}

/// Builds a guard in the directory `path`, which must be missing or empty, from the key of every row. Pass
/// SB_INTERFACE.
///
/// `equality` says which keys are equal, at least those that the database treats as equal: "exact", or one or
/// more of "fold" (letter case), "pad" (trailing spaces), and "integer" or "uuid" (spellings), separated by
/// commas. NULL is "exact". `durability` is an sb_durability, whose default here is SB_DURABILITY_SYNC.
///
/// SB_NOT_A_GUARD if there is something at `path`; SB_FEATURE_MISSING for "fold" in a build without it.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_guard_build(
    interface: u32,
    path: *const c_char,
    keys: *const Slice,
    count: usize,
    equality: *const c_char,
    durability: u32,
    guard: *mut *mut Guard,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let out = Out::handle(guard, "guard")?;
            version::check(interface)?;
            let (path, keys) = (self::path(path)?, slices(keys, count, usize::MAX, "keys")?);
            sidebloom::fs::fill_standard_descriptors()?;
            out.give(Guard(Handle::new(options(equality, durability)?.build(path, keys)?)));
            Ok(())
        })
    }
}

/// Opens the guard in the directory `path`. Pass SB_INTERFACE. With `read_only`, not a byte is changed, and
/// any number of processes can do so at once. `durability` is as for sb_guard_build.
///
/// SB_NOT_A_GUARD; SB_LOCKED while it is open elsewhere; SB_CORRUPTION for damaged settings or logs.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_guard_open(
    interface: u32,
    path: *const c_char,
    read_only: bool,
    durability: u32,
    guard: *mut *mut Guard,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let out = Out::handle(guard, "guard")?;
            version::check(interface)?;
            let options = options(std::ptr::null(), durability)?.read_only(read_only);
            sidebloom::fs::fill_standard_descriptors()?;
            out.give(Guard(Handle::new(options.open(self::path(path)?)?)));
            Ok(())
        })
    }
}

/// Makes all changes durable, and closes the guard, once the calls of other threads that use it have ended.
/// Afterwards, every use of it returns SB_CLOSED; free it with sb_guard_free. It is closed in any case.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_guard_close(guard: Option<&Guard>, error: *mut *mut Error) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || match object(guard, "guard")?.0.take()?.map(|guard| guard.sync()) {
            Some(Ok(()) | Err(sidebloom::Error::ReadOnly)) => Ok(()),
            Some(Err(error)) => Err(error.into()),
            None => Err(sidebloom::Error::Forked.into()),
        })
    }
}

/// Frees a guard, and closes it first if it is open. No other thread may use it any more. NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn sb_guard_free(guard: Option<Box<Guard>>) {
    run_or((), || drop(guard));
}

/// Asks for `count` keys, from memory alone. Sets `verdicts[i]` to 0 if certainly no row has `keys[i]`, and
/// to 1 if one may: then ask the database. On an error, all are 1 or unchanged.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_guard_may_contain(
    guard: Option<&Guard>,
    keys: *const Slice,
    count: usize,
    verdicts: *mut u8,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let out = array_to_fill(verdicts, count, "verdicts")?;
            out.fill(1);
            let keys = slices(keys, count, usize::MAX, "keys")?;
            let found = with_guard(guard, |guard| Ok(guard.may_contain_many(&keys)))?;
            out.iter_mut().zip(found).for_each(|(out, found)| *out = verdict(found));
            Ok(())
        })
    }
}

/// Whether a row has a key, as far as the guard knows. May read a block from disk.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_guard_contains(
    guard: Option<&Guard>,
    key: *const c_void,
    key_length: usize,
    found: *mut bool,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let (out, key) = (Out::new(found, false, "found")?, bytes(key, key_length, "key")?);
            out.set(with_guard(guard, |guard| Ok(guard.contains(key)?))?);
            Ok(())
        })
    }
}

/// Inserts the key of a row. Commit the row to the database after that, and only on SB_OK.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_guard_insert(
    guard: Option<&Guard>,
    key: *const c_void,
    key_length: usize,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let key = bytes(key, key_length, "key")?;
            with_guard(guard, |guard| Ok(guard.insert(key)?))
        })
    }
}

/// Inserts a key unless it exists, and sets `inserted` to whether it did not. Of any number of calls at the
/// same time with the same key, one inserts it. For a guard that is itself a set of keys.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_guard_insert_new(
    guard: Option<&Guard>,
    key: *const c_void,
    key_length: usize,
    inserted: *mut bool,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let (out, key) = (Out::new(inserted, false, "inserted")?, bytes(key, key_length, "key")?);
            out.set(with_guard(guard, |guard| Ok(guard.insert_new(key)?))?);
            Ok(())
        })
    }
}

/// Removes the key of a row, after the database has committed its deletion. The key stays until the last row
/// with it is removed.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_guard_remove(
    guard: Option<&Guard>,
    key: *const c_void,
    key_length: usize,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let key = bytes(key, key_length, "key")?;
            with_guard(guard, |guard| Ok(guard.remove(key)?))
        })
    }
}

/// Makes all changes so far durable, for a guard with SB_DURABILITY_OS.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_guard_sync(guard: Option<&Guard>, error: *mut *mut Error) -> Code {
    // SAFETY: the caller's promise.
    unsafe { run(error, || with_guard(guard, |guard| Ok(guard.sync()?))) }
}

/// The counters of a guard since it was opened, and its state, as one line of JSON. Free it with
/// sb_value_free.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_guard_stats(
    guard: Option<&Guard>,
    json: *mut *mut Value,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let out = Out::handle(json, "json")?;
            let stats = with_guard(guard, |guard| Ok(guard.stats()))?;
            let json = stats::object([
                field("asked", stats.asked),
                field("absent", stats.absent),
                field("rows", stats.rows),
                field("keys", stats.keys),
                field("unknown_removals", stats.unknown_removals),
                field("filters", stats.filters),
                field("filters_unavailable", stats.filters_unavailable),
                field("filter_bytes", stats.filter_bytes),
                field("memtable_bytes", stats.memtable_bytes),
                field("disk_bytes", stats.disk_bytes),
                fraction("expected_fpr", stats.expected_fpr),
                field("suspended", stats.suspended),
            ]);
            out.give(Value::own(json.into_bytes()));
            Ok(())
        })
    }
}
