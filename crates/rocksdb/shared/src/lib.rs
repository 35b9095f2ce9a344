//! Parity filters for programs that link RocksDB dynamically. Exports: `include/sidebloom_rocksdb.h`.
//!
//! Choose it for programs that you cannot or need not build again: preload the library, and name the policy
//! in RocksDB's options, `filter_policy=sidebloom.parity:8`. Rust programs with the crate `rocksdb` use
//! `sidebloom-rocksdb`.
//!
//! ```sh
//! LD_PRELOAD=libsidebloom_rocksdb.so my_program
//! ```

use sidebloom_rocksdb_plugin as _; // The C++ code calls it.
use std::ffi::{CStr, c_char};
use std::io::Write;

unsafe extern "C" {
    /// In `loaded.cc`.
    safe fn sidebloom_register_if_loaded(found: &mut bool) -> *const c_char;
}

/// Registers the policies in RocksDB. Returns null, or why that is impossible, as text that is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn sidebloom_rocksdb_register() -> *const c_char {
    sidebloom_register_if_loaded(&mut false)
}

/// Registers the policies on loading, and reports a failure. Silent in a program without RocksDB.
extern "C" fn on_load() {
    let mut found = false;
    let error = sidebloom_register_if_loaded(&mut found);
    if found && !error.is_null() {
        // SAFETY: text that is never freed.
        let error = unsafe { CStr::from_ptr(error) }.to_string_lossy();
        // `eprintln!` would panic if standard error is not writable.
        _ = writeln!(std::io::stderr(), "{error}");
    }
}

// SAFETY: the loader calls the functions of this section once, after resolving all references.
#[used]
#[unsafe(link_section = ".init_array")]
static ON_LOAD: extern "C" fn() = on_load;
