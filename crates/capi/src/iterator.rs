//! Iterators: a position among the rows of one moment.

use crate::boundary::{run, run_or};
use crate::bytes::{Out, Slice, bound, key, object, object_mut};
use crate::db::{Db, with_db};
use crate::error::{Code, Error, Failure};
use crate::snapshot::Snapshot;
use sidebloom::{Cursor, Snapshot as Moment, prefix_end};
use std::ffi::c_void;

/// A position among the rows of one moment, in the order of their keys, at none yet. A function that moves it
/// leaves it at a row, or at none: at the end, and after an error. The next move must then be one that names
/// a place. It keeps memtables in memory and segments on disk, so free it soon, with sb_iterator_free. It may
/// outlive its handle, snapshot and store. One thread at a time may use it.
pub struct Iter {
    cursor: Cursor,
    /// The first possible key.
    lower: Option<Vec<u8>>,
    /// The first key after the last possible one.
    upper: Option<Vec<u8>>,
    /// Whether the cursor's row is within the bounds.
    is_valid: bool,
    /// The error of the last move.
    failure: Option<Failure>,
    /// The key that a seek looks for. The caller's may be the iterator's own, which the seek changes.
    sought: Vec<u8>,
}

/// Whether the cursor is now at a row.
type Moved = Result<bool, Failure>;

impl Iter {
    fn new(moment: &Moment, lower: Option<&[u8]>, upper: Option<Vec<u8>>) -> Self {
        let lower = lower.map(<[u8]>::to_vec);
        let cursor = moment.cursor();
        Iter { cursor, lower, upper, is_valid: false, failure: None, sought: Vec::new() }
    }

    fn is_below(&self, key: &[u8]) -> bool {
        self.lower.as_ref().is_some_and(|lower| key < &**lower)
    }

    fn is_above(&self, key: &[u8]) -> bool {
        self.upper.as_ref().is_some_and(|upper| key >= &**upper)
    }

    fn first(&mut self) -> Moved {
        Ok(match &self.lower {
            Some(lower) => self.cursor.seek(lower),
            None => self.cursor.seek_to_first(),
        }?)
    }

    fn last(&mut self) -> Moved {
        let Some(upper) = &self.upper else { return Ok(self.cursor.seek_to_last()?) };
        let found = self.cursor.seek_for_prev(upper)?;
        Ok(if found && self.cursor.key() == Some(upper) { self.cursor.prev()? } else { found })
    }

    fn seek(&mut self, key: &[u8]) -> Moved {
        key.clone_into(&mut self.sought);
        if self.is_below(&self.sought) { self.first() } else { Ok(self.cursor.seek(&self.sought)?) }
    }

    fn seek_for_prev(&mut self, key: &[u8]) -> Moved {
        key.clone_into(&mut self.sought);
        if self.is_above(&self.sought) { self.last() } else { Ok(self.cursor.seek_for_prev(&self.sought)?) }
    }

    /// Moves, and keeps the error. `go` learns whether the iterator was at a row.
    fn go(&mut self, go: impl FnOnce(&mut Iter, bool) -> Moved) -> Result<(), Failure> {
        self.failure = None;
        // First, so that it is at no row if `go` panics.
        let was_valid = std::mem::take(&mut self.is_valid);
        match go(self, was_valid) {
            Ok(is_at_row) => {
                let key = self.cursor.key().filter(|_| is_at_row);
                self.is_valid = key.is_some_and(|key| !self.is_below(key) && !self.is_above(key));
                Ok(())
            }
            Err(failure) => {
                self.failure = Some(failure.clone());
                Err(failure)
            }
        }
    }
}

/// Runs a move.
///
/// # Safety
/// `error` is null or points to memory for a pointer.
unsafe fn go(
    iterator: Option<&mut Iter>,
    error: *mut *mut Error,
    go: impl FnOnce(&mut Iter, bool) -> Moved,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe { run(error, || object_mut(iterator, "iterator")?.go(go)) }
}

/// Makes an iterator over the rows as they are now, from the key `from` on and before `to`. NULL is no bound.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_iterator_new(
    db: Option<&Db>,
    from: *const Slice,
    to: *const Slice,
    iterator: *mut *mut Iter,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let out = Out::handle(iterator, "iterator")?;
            let (from, to) = (bound(from, "from")?, bound(to, "to")?);
            let moment = with_db(db, |db| Ok(db.snapshot()))?;
            out.give(Iter::new(&moment, from, to.map(<[u8]>::to_vec)));
            Ok(())
        })
    }
}

/// Makes an iterator over the rows as they are now whose keys start with a prefix.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_iterator_new_prefix(
    db: Option<&Db>,
    prefix: *const c_void,
    prefix_length: usize,
    iterator: *mut *mut Iter,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let out = Out::handle(iterator, "iterator")?;
            let prefix = key(prefix, prefix_length)?;
            let moment = with_db(db, |db| Ok(db.snapshot()))?;
            out.give(Iter::new(&moment, Some(prefix), prefix_end(prefix)));
            Ok(())
        })
    }
}

/// Makes an iterator over the rows of a snapshot, from the key `from` on and before `to`. NULL is no bound.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_snapshot_iterator(
    snapshot: Option<&Snapshot>,
    from: *const Slice,
    to: *const Slice,
    iterator: *mut *mut Iter,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let out = Out::handle(iterator, "iterator")?;
            let (from, to) = (bound(from, "from")?, bound(to, "to")?);
            let moment = &object(snapshot, "snapshot")?.0;
            out.give(Iter::new(moment, from, to.map(<[u8]>::to_vec)));
            Ok(())
        })
    }
}

/// Moves to the first row.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_iterator_first(iterator: Option<&mut Iter>, error: *mut *mut Error) -> Code {
    // SAFETY: the caller's promise.
    unsafe { go(iterator, error, |iterator, _| iterator.first()) }
}

/// Moves to the last row.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_iterator_last(iterator: Option<&mut Iter>, error: *mut *mut Error) -> Code {
    // SAFETY: the caller's promise.
    unsafe { go(iterator, error, |iterator, _| iterator.last()) }
}

/// Moves to the first row whose key is `key` or greater.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_iterator_seek(
    iterator: Option<&mut Iter>,
    key: *const c_void,
    key_length: usize,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let (iterator, key) = (object_mut(iterator, "iterator")?, self::key(key, key_length));
            iterator.go(|iterator, _| iterator.seek(key?))
        })
    }
}

/// Moves to the last row whose key is `key` or less.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_iterator_seek_for_prev(
    iterator: Option<&mut Iter>,
    key: *const c_void,
    key_length: usize,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let (iterator, key) = (object_mut(iterator, "iterator")?, self::key(key, key_length));
            iterator.go(|iterator, _| iterator.seek_for_prev(key?))
        })
    }
}

/// Moves to the next row. An iterator at no row stays there.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_iterator_next(iterator: Option<&mut Iter>, error: *mut *mut Error) -> Code {
    // SAFETY: the caller's promise.
    unsafe { go(iterator, error, |iterator, is_valid| Ok(is_valid && iterator.cursor.next()?)) }
}

/// Moves to the previous row. An iterator at no row stays there.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_iterator_prev(iterator: Option<&mut Iter>, error: *mut *mut Error) -> Code {
    // SAFETY: the caller's promise.
    unsafe { go(iterator, error, |iterator, is_valid| Ok(is_valid && iterator.cursor.prev()?)) }
}

/// Whether it is at a row; false for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn sb_iterator_valid(iterator: Option<&Iter>) -> bool {
    iterator.is_some_and(|iterator| iterator.is_valid)
}

/// The error of the last move, again: for a loop that only asks whether the iterator is at a row.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_iterator_check(iterator: Option<&Iter>, error: *mut *mut Error) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || match &object(iterator, "iterator")?.failure {
            Some(failure) => Err(failure.clone()),
            None => Ok(()),
        })
    }
}

/// The key of the row, until the next move. At no row, and for NULL, an empty slice whose `data` is NULL.
#[unsafe(no_mangle)]
pub extern "C" fn sb_iterator_key(iterator: Option<&Iter>) -> Slice {
    let key = iterator.filter(|iterator| iterator.is_valid).and_then(|iterator| iterator.cursor.key());
    key.map_or(Slice::EMPTY, Slice::of)
}

/// The value of the row, until the next move. At no row, and for NULL, an empty slice whose `data` is NULL.
#[unsafe(no_mangle)]
pub extern "C" fn sb_iterator_value(iterator: Option<&Iter>) -> Slice {
    let read = || iterator.filter(|iterator| iterator.is_valid).and_then(|iterator| iterator.cursor.value());
    run_or(None, read).map_or(Slice::EMPTY, Slice::of)
}

/// Frees an iterator. NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn sb_iterator_free(iterator: Option<Box<Iter>>) {
    run_or((), || drop(iterator));
}
