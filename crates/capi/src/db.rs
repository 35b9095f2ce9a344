//! Opening and closing a store, and reading and writing one row.

use crate::boundary::{run, run_or};
use crate::bytes::{Out, Slice, array_to_fill, bound, key, object, path, slices, value};
use crate::error::{Code, Error, Failure};
use crate::handle::{Handle, with};
use crate::options::Options;
use crate::value::Value;
use crate::version;
use sidebloom::filter::Verdict;
use sidebloom::{Expiry, Keyspace, MAX_KEY_BYTES};
use std::ffi::{c_char, c_void};
use std::ops::{Bound, Deref};
use std::time::Duration;

/// A keyspace of an open store: its default one, from sb_open, or another one, from sb_keyspace_open. All
/// functions that take an sb_db work on that keyspace, unless they say that they work on the whole store. The
/// store stays open until the last of its handles is closed. Any number of threads may use a handle.
pub struct Db(pub(crate) Handle<OpenDb>);

/// What a handle has open.
pub struct OpenDb {
    /// The store.
    pub db: sidebloom::Db,
    /// `None` for the default keyspace.
    pub keyspace: Option<Keyspace>,
}

impl Deref for OpenDb {
    type Target = Keyspace;

    fn deref(&self) -> &Keyspace {
        self.keyspace.as_ref().unwrap_or(&self.db)
    }
}

/// Calls `body` with what a pointer from C has open.
///
/// # Errors
/// [`Code::InvalidArgument`] for null; [`Code::Closed`]; the errors of `body`.
pub fn with_db<R>(db: Option<&Db>, body: impl FnOnce(&OpenDb) -> Result<R, Failure>) -> Result<R, Failure> {
    with(db.map(|db| &db.0), "db", body)
}

/// The bounds of a range of keys.
pub type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// The bounds of a range from C: the first key, or null; the first key after it, or null.
///
/// # Errors
/// The errors of [`bound`].
///
/// # Safety
/// As for [`bound`].
pub unsafe fn range(from: *const Slice, to: *const Slice) -> Result<Bounds, Failure> {
    // SAFETY: the caller's promise.
    let (from, to) = unsafe { (bound(from, "from")?, bound(to, "to")?) };
    let own = <[u8]>::to_vec;
    Ok((
        from.map_or(Bound::Unbounded, |key| Bound::Included(own(key))),
        to.map_or(Bound::Unbounded, |key| Bound::Excluded(own(key))),
    ))
}

/// The expiry of a row that lives this long.
pub fn expiry(milliseconds: u64) -> Expiry {
    Expiry::after(Duration::from_millis(milliseconds))
}

/// A verdict in C.
pub fn verdict(verdict: Verdict) -> u8 {
    u8::from(verdict == Verdict::Maybe)
}

/// Opens the store in the directory `path`, and creates it if it is missing. Pass SB_INTERFACE. `options` may
/// be NULL for the defaults. Close `db` with sb_close, and free it with sb_db_free.
///
/// SB_NOT_A_STORE if the path is something else; SB_LOCKED while the store is open elsewhere; SB_CORRUPTION
/// for a damaged log or manifest; SB_INVALID_ARGUMENT for an option out of range.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_open(
    interface: u32,
    path: *const c_char,
    options: Option<&Options>,
    db: *mut *mut Db,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let out = Out::handle(db, "db")?;
            version::check(interface)?;
            let path = self::path(path)?;
            let options = options.map_or_else(sidebloom::Options::new, |options| options.0.clone());
            sidebloom::fs::fill_standard_descriptors()?;
            out.give(Db(Handle::new(OpenDb { db: options.open(path)?, keyspace: None })));
            Ok(())
        })
    }
}

/// Closes a handle, once the calls of other threads that use it have ended. The last handle of a store closes
/// the store: then SB_OK says that everything acknowledged is durable. Afterwards, every use of the handle
/// returns SB_CLOSED; free it with sb_db_free. Iterators and snapshots may outlive it:
/// they read on until the store is opened again and has removed a file that they need, which is SB_IO.
///
/// SB_POISONED if an earlier write has failed; SB_FORKED in a forked process, where it closes only that
/// process's copy. The handle is closed in any case.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_close(db: Option<&Db>, error: *mut *mut Error) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let Some(OpenDb { db, keyspace }) = object(db, "db")?.0.take()? else {
                return Err(sidebloom::Error::Forked.into());
            };
            drop(keyspace);
            Ok(db.close()?)
        })
    }
}

/// Frees a handle, and closes it first if it is open. No other thread may use it any more. NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn sb_db_free(db: Option<Box<Db>>) {
    run_or((), || drop(db));
}

/// Sets `value` to the value of a key, or to NULL if the key does not exist. Free it with sb_value_free.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_get(
    db: Option<&Db>,
    key: *const c_void,
    key_length: usize,
    value: *mut *mut Value,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let (out, key) = (Out::handle(value, "value")?, self::key(key, key_length)?);
            out.set(Value::pointer(with_db(db, |db| Ok(db.get(key)?))?));
            Ok(())
        })
    }
}

/// Gets `count` keys, all as of one moment, and faster than one by one. Sets `values[i]` to the value of
/// `keys[i]`, or to NULL if it does not exist. Free each with sb_value_free. On an error, all are NULL.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_multi_get(
    db: Option<&Db>,
    keys: *const Slice,
    count: usize,
    values: *mut *mut Value,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let out = array_to_fill(values, count, "values")?;
            let keys = slices(keys, count, MAX_KEY_BYTES, "keys")?;
            let found = with_db(db, |db| Ok(db.multi_get(&keys)?))?;
            out.iter_mut().zip(found).for_each(|(out, found)| *out = Value::pointer(found));
            Ok(())
        })
    }
}

/// Whether a key exists.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_contains(
    db: Option<&Db>,
    key: *const c_void,
    key_length: usize,
    found: *mut bool,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let (out, key) = (Out::new(found, false, "found")?, self::key(key, key_length)?);
            out.set(with_db(db, |db| Ok(db.contains_key(key)?))?);
            Ok(())
        })
    }
}

/// Asks the memtables and filters alone, which never reads a block: 0 if a key certainly does not exist, 1 if
/// it may. `verdicts` is set for each of the `count` keys. On an error, all are 1 or unchanged.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_may_contain(
    db: Option<&Db>,
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
            let keys = slices(keys, count, MAX_KEY_BYTES, "keys")?;
            let found = with_db(db, |db| Ok(db.may_contain_many(&keys)))?;
            out.iter_mut().zip(found).for_each(|(out, found)| *out = verdict(found));
            Ok(())
        })
    }
}

/// Sets a key to a value.
///
/// SB_TOO_LARGE, SB_READ_ONLY; SB_IO if the log cannot be written: on a full disk, writes fail until there is
/// space; after any other failure, they fail with SB_POISONED.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_put(
    db: Option<&Db>,
    key: *const c_void,
    key_length: usize,
    value: *const c_void,
    value_length: usize,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let (key, value) = (self::key(key, key_length)?, self::value(value, value_length)?);
            with_db(db, |db| Ok(db.put(key, value)?))
        })
    }
}

/// sb_put of a row that expires `milliseconds` after it is written: at least 1. From then on, it is as if
/// deleted.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_put_expiring(
    db: Option<&Db>,
    key: *const c_void,
    key_length: usize,
    value: *const c_void,
    value_length: usize,
    milliseconds: u64,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let (key, value) = (self::key(key, key_length)?, self::value(value, value_length)?);
            with_db(db, |db| Ok(db.put_with(key, value, expiry(milliseconds))?))
        })
    }
}

/// Deletes a key. It need not exist.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_delete(
    db: Option<&Db>,
    key: *const c_void,
    key_length: usize,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let key = self::key(key, key_length)?;
            with_db(db, |db| Ok(db.delete(key)?))
        })
    }
}

/// Deletes every key from `from` on and before `to`, with one operation. NULL is no bound.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_delete_range(
    db: Option<&Db>,
    from: *const Slice,
    to: *const Slice,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let range = self::range(from, to)?;
            with_db(db, |db| Ok(db.delete_range(range)?))
        })
    }
}
