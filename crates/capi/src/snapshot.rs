//! Snapshots: reads as of one moment.

use crate::boundary::{run, run_or};
use crate::bytes::{Out, key, object};
use crate::db::{Db, with_db};
use crate::error::{Code, Error};
use crate::value::Value;
use std::ffi::c_void;

/// A keyspace as of one moment. Later writes do not change what it reads. It keeps memtables in memory and
/// segments on disk, so free it soon, with sb_snapshot_free. Any number of threads may use it.
pub struct Snapshot(pub(crate) sidebloom::Snapshot);

/// Takes a snapshot.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_snapshot_new(
    db: Option<&Db>,
    snapshot: *mut *mut Snapshot,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let out = Out::handle(snapshot, "snapshot")?;
            out.give(Snapshot(with_db(db, |db| Ok(db.snapshot()))?));
            Ok(())
        })
    }
}

/// The same moment of the keyspace of `db`, which must be of the same store.
///
/// SB_FOREIGN_KEYSPACE.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_snapshot_keyspace(
    snapshot: Option<&Snapshot>,
    db: Option<&Db>,
    same_moment: *mut *mut Snapshot,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let out = Out::handle(same_moment, "same_moment")?;
            let snapshot = object(snapshot, "snapshot")?;
            out.give(Snapshot(with_db(db, |db| Ok(snapshot.0.keyspace(db)?))?));
            Ok(())
        })
    }
}

/// sb_get at the moment of the snapshot.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_snapshot_get(
    snapshot: Option<&Snapshot>,
    key: *const c_void,
    key_length: usize,
    value: *mut *mut Value,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let (out, key) = (Out::handle(value, "value")?, self::key(key, key_length)?);
            out.set(Value::pointer(object(snapshot, "snapshot")?.0.get(key)?));
            Ok(())
        })
    }
}

/// sb_contains at the moment of the snapshot.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_snapshot_contains(
    snapshot: Option<&Snapshot>,
    key: *const c_void,
    key_length: usize,
    found: *mut bool,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let (out, key) = (Out::new(found, false, "found")?, self::key(key, key_length)?);
            out.set(object(snapshot, "snapshot")?.0.contains_key(key)?);
            Ok(())
        })
    }
}

/// Frees a snapshot. NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn sb_snapshot_free(snapshot: Option<Box<Snapshot>>) {
    run_or((), || drop(snapshot));
}
