//! The version of the interface, and the one of the library.

use crate::error::{Code, Error, Failure};
use std::ffi::{CStr, c_char};

/// The version of this header's functions. It changes when programs must be compiled again, and so does the
/// name of the shared library. Pass it to the functions that ask for it.
pub const SB_INTERFACE: u32 = 1;

const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(version) => version,
    Err(_) => c"",
};

/// The SB_INTERFACE of the library that the program runs with.
#[unsafe(no_mangle)]
pub extern "C" fn sb_interface() -> u32 {
    SB_INTERFACE
}

/// The version of the library: "0.1.0". Do not free it.
#[unsafe(no_mangle)]
pub extern "C" fn sb_version() -> *const c_char {
    VERSION.as_ptr()
}

/// Fails for a program that was compiled with the header of another interface.
///
/// # Errors
/// [`Code::InterfaceMismatch`].
pub fn check(interface: u32) -> Result<(), Failure> {
    if interface == SB_INTERFACE {
        return Ok(());
    }
    let message = format!(
        "the program was compiled with interface {interface} of sidebloom.h, but this library has interface {SB_INTERFACE}; compile it with the library's own header"
    );
    Err(Error::new(Code::InterfaceMismatch, message))
}
