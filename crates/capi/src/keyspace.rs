//! The keyspaces of a store.

use crate::boundary::{run, run_or};
use crate::bytes::{Out, Slice, text};
use crate::db::{Db, OpenDb, with_db};
use crate::error::{Code, Error};
use crate::handle::Handle;
use sidebloom::KeyspaceOptions;
use std::ffi::c_char;
use std::time::Duration;

/// The names of keyspaces, in order. Free it with sb_names_free.
pub struct Names(Vec<String>);

/// Creates a keyspace in the store, and opens it. Its name has 1 to 255 bytes of UTF-8. Its rows expire
/// this long after they are written, unless a put says otherwise; 0 means never. Close and free `keyspace`
/// like the handle of a store.
///
/// SB_KEYSPACE_EXISTS.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_keyspace_create(
    db: Option<&Db>,
    name: *const c_char,
    expire_after_milliseconds: u64,
    keyspace: *mut *mut Db,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let (out, name) = (Out::handle(keyspace, "keyspace")?, text(name, "name")?);
            let options = match expire_after_milliseconds {
                0 => KeyspaceOptions::new(),
                life => KeyspaceOptions::new().expire_after(Duration::from_millis(life)),
            };
            out.give(with_db(db, |db| {
                let keyspace = db.db.create_keyspace(name, options)?;
                Ok(Db(Handle::new(OpenDb { db: db.db.clone(), keyspace: Some(keyspace) })))
            })?);
            Ok(())
        })
    }
}

/// Opens a keyspace of the store. Close and free `keyspace` like the handle of a store.
///
/// SB_UNKNOWN_KEYSPACE.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_keyspace_open(
    db: Option<&Db>,
    name: *const c_char,
    keyspace: *mut *mut Db,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let (out, name) = (Out::handle(keyspace, "keyspace")?, text(name, "name")?);
            out.give(with_db(db, |db| {
                let keyspace = db.db.keyspace(name)?;
                Ok(Db(Handle::new(OpenDb { db: db.db.clone(), keyspace: Some(keyspace) })))
            })?);
            Ok(())
        })
    }
}

/// Drops a keyspace of the store with all its rows, durably. Its handles then return SB_KEYSPACE_DROPPED.
///
/// SB_UNKNOWN_KEYSPACE.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_keyspace_drop(
    db: Option<&Db>,
    name: *const c_char,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let name = text(name, "name")?;
            with_db(db, |db| Ok(db.db.drop_keyspace(name)?))
        })
    }
}

/// Lists the store's keyspaces, without the default one.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_keyspace_names(
    db: Option<&Db>,
    names: *mut *mut Names,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let out = Out::handle(names, "names")?;
            out.give(Names(with_db(db, |db| Ok(db.db.keyspaces()?))?));
            Ok(())
        })
    }
}

/// How many names there are; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn sb_names_count(names: Option<&Names>) -> usize {
    names.map_or(0, |names| names.0.len())
}

/// A name, from 0 on. It lives as long as `names`, and does not end in NUL. Past the last one and for NULL,
/// an empty slice whose `data` is NULL.
#[unsafe(no_mangle)]
pub extern "C" fn sb_names_at(names: Option<&Names>, index: usize) -> Slice {
    names.and_then(|names| names.0.get(index)).map_or(Slice::EMPTY, |name| Slice::of(name.as_bytes()))
}

/// Frees names. NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn sb_names_free(names: Option<Box<Names>>) {
    run_or((), || drop(names));
}
