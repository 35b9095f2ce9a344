//! Durability, compaction and copies of a store.

use crate::boundary::run;
use crate::bytes::path;
use crate::db::{Db, with_db};
use crate::error::{Code, Error};
use std::ffi::c_char;

/// Handles SIGBUS in mapped files of stores, for the rest of the process's life: if such a file is truncated
/// or its disk fails, reads return errors and filters answer "maybe". Any other SIGBUS goes to the handler
/// that the process had before. Call it once, after installing a handler of your own. Truncation within a
/// page of memory raises no signal; only sb_options_set_pinned protects against that.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_catch_sigbus(error: *mut *mut Error) -> Code {
    // SAFETY: the caller's promise.
    unsafe { run(error, || Ok(sidebloom::fs::catch_sigbus()?)) }
}

/// Makes all acknowledged writes of the store durable.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_sync(db: Option<&Db>, error: *mut *mut Error) -> Code {
    // SAFETY: the caller's promise.
    unsafe { run(error, || with_db(db, |db| Ok(db.sync()?))) }
}

/// Writes the memtables of the store to segments, and waits until that is done.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_flush(db: Option<&Db>, error: *mut *mut Error) -> Code {
    // SAFETY: the caller's promise.
    unsafe { run(error, || with_db(db, |db| Ok(db.flush()?))) }
}

/// Flushes, and merges everything written before this call into one sorted run without tombstones: of the
/// whole store for the handle of its default keyspace, otherwise of the segments with keys of the keyspace.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_compact(db: Option<&Db>, error: *mut *mut Error) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            with_db(db, |db| {
                let compacted = match &db.keyspace {
                    None => db.db.compact(),
                    Some(keyspace) => keyspace.compact(),
                };
                Ok(compacted?)
            })
        })
    }
}

/// Copies the store to a new directory. Both share the segment files through hard links; on another file
/// system, they are copied.
///
/// SB_ALREADY_EXISTS if there is something at `path`.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_checkpoint(db: Option<&Db>, path: *const c_char, error: *mut *mut Error) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let path = self::path(path)?;
            with_db(db, |db| Ok(db.db.checkpoint(path)?))
        })
    }
}

/// In a store that follows another process: makes everything visible that was written before this call.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_catch_up(db: Option<&Db>, error: *mut *mut Error) -> Code {
    // SAFETY: the caller's promise.
    unsafe { run(error, || with_db(db, |db| Ok(db.db.catch_up()?))) }
}
