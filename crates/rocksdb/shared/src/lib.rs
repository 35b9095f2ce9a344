//! Parity filters for programs that link RocksDB dynamically. `include/sidebloom_rocksdb.h` declares what it
//! exports.

use sidebloom_rocksdb_plugin as _; // The filters, which the C++ code calls.
use std::ffi::{CStr, c_char};
use std::io::Write;

unsafe extern "C" {
    /// In `loaded.cc`.
    safe fn sidebloom_register_if_loaded(found: &mut bool) -> *const c_char;
}

/// Makes RocksDB know the policies. Returns null, or why that is impossible: text that is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn sidebloom_rocksdb_register() -> *const c_char {
    sidebloom_register_if_loaded(&mut false)
}

/// Registers the policies when the library is loaded, and says so if that fails. It is silent in a program
/// without RocksDB.
extern "C" fn on_load() {
    let mut found = false;
    let error = sidebloom_register_if_loaded(&mut found);
    if found && !error.is_null() {
        // SAFETY: text that is never freed.
        let error = unsafe { CStr::from_ptr(error) }.to_string_lossy();
        // `eprintln!` would panic where nobody can write to standard error.
        _ = writeln!(std::io::stderr(), "{error}");
    }
}

// SAFETY: the loader calls the functions of this section once, after it has resolved all references.
#[used]
#[unsafe(link_section = ".init_array")]
static ON_LOAD: extern "C" fn() = on_load;
