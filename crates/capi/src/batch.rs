//! Batches: writes that are applied together.

use crate::boundary::{run, run_or};
use crate::bytes::{Out, Slice, bytes, key, object, object_mut, value};
use crate::db::{Db, expiry, range, with_db};
use crate::error::{Code, Error, Failure};
use crate::options::durability;
use sidebloom::KeyspaceBatch;
use std::ffi::c_void;

/// Writes that are applied atomically, even after a crash. Later ones win. Each names the keyspace that it is
/// for, by a handle, which must be open at that moment. One thread at a time may use a batch. Free it with
/// sb_batch_free.
pub struct Batch(sidebloom::Batch);

/// Adds to a batch.
///
/// # Errors
/// [`Code::InvalidArgument`] for null; [`Code::Closed`].
fn add(
    batch: Option<&mut Batch>,
    db: Option<&Db>,
    add: impl FnOnce(&mut KeyspaceBatch<'_>),
) -> Result<(), Failure> {
    let batch = object_mut(batch, "batch")?;
    with_db(db, |db| {
        add(&mut batch.0.keyspace(db));
        Ok(())
    })
}

/// Makes an empty batch.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_batch_new(batch: *mut *mut Batch, error: *mut *mut Error) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            Out::handle(batch, "batch")?.give(Batch(sidebloom::Batch::new()));
            Ok(())
        })
    }
}

/// Frees a batch. NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn sb_batch_free(batch: Option<Box<Batch>>) {
    run_or((), || drop(batch));
}

/// Adds sb_put.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_batch_put(
    batch: Option<&mut Batch>,
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
            add(batch, db, |batch| batch.put(key, value))
        })
    }
}

/// Adds sb_put_expiring. The time counts from when the batch is written.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_batch_put_expiring(
    batch: Option<&mut Batch>,
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
            add(batch, db, |batch| batch.put_with(key, value, expiry(milliseconds)))
        })
    }
}

/// Adds sb_delete.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_batch_delete(
    batch: Option<&mut Batch>,
    db: Option<&Db>,
    key: *const c_void,
    key_length: usize,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let key = self::key(key, key_length)?;
            add(batch, db, |batch| batch.delete(key))
        })
    }
}

/// Adds sb_delete_range. A range that runs backwards is an error when the batch is written.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_batch_delete_range(
    batch: Option<&mut Batch>,
    db: Option<&Db>,
    from: *const Slice,
    to: *const Slice,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let range = self::range(from, to)?;
            add(batch, db, |batch| batch.delete_range(range))
        })
    }
}

/// Makes the whole batch depend on a key having this value when it is written. Otherwise nothing is written,
/// and sb_write returns SB_CONFLICT.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_batch_expect(
    batch: Option<&mut Batch>,
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
            let (key, value) = (self::key(key, key_length)?, bytes(value, value_length, "value")?);
            add(batch, db, |batch| batch.expect(key, value))
        })
    }
}

/// sb_batch_expect of a key that does not exist.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_batch_expect_absent(
    batch: Option<&mut Batch>,
    db: Option<&Db>,
    key: *const c_void,
    key_length: usize,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let key = self::key(key, key_length)?;
            add(batch, db, |batch| batch.expect_absent(key))
        })
    }
}

/// The number of writes in a batch; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn sb_batch_count(batch: Option<&Batch>) -> usize {
    batch.map_or(0, |batch| batch.0.len())
}

/// Removes all writes and expectations, and keeps the memory.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_batch_clear(batch: Option<&mut Batch>, error: *mut *mut Error) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            object_mut(batch, "batch")?.0.clear();
            Ok(())
        })
    }
}

/// Writes a batch to the store of `db`, with an sb_durability. The batch stays as it is.
///
/// SB_TOO_LARGE for more than 1 GiB; SB_CONFLICT if a key differs from what the batch expects;
/// SB_FOREIGN_KEYSPACE and SB_KEYSPACE_DROPPED; the errors of sb_put. On an error, nothing is written.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_write(
    db: Option<&Db>,
    batch: Option<&Batch>,
    durability: u32,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let (batch, durability) = (object(batch, "batch")?, self::durability(durability)?);
            with_db(db, |db| {
                let batch = batch.0.clone();
                let written = match durability {
                    None => db.write(batch),
                    Some(durability) => db.write_with(batch, durability),
                };
                Ok(written?)
            })
        })
    }
}
