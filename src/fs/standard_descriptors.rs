//! The descriptors 0, 1 and 2, which belong to standard input, output and errors.

use crate::error::{Error, IoOp, Result};
use rustix::fs::{Mode, OFlags, open};
use std::os::fd::{AsRawFd, IntoRawFd};

/// Opens `/dev/null` for standard input, output and errors, as far as they are closed.
///
/// A file of a store that is opened while they are closed would get one of their numbers, and whatever
/// prints something would write into it. The Rust runtime does this when a program starts; call it before
/// opening a store from a library that others load, in a process that may have closed them.
///
/// # Errors
/// [`Error::Io`] if `/dev/null` cannot be opened.
pub fn fill_standard_descriptors() -> Result<()> {
    const FIRST_FREE: i32 = 3;
    loop {
        let opened = open("/dev/null", OFlags::RDWR, Mode::empty());
        let descriptor = opened.map_err(|errno| Error::io(IoOp::Open, "/dev/null", errno.into()))?;
        if descriptor.as_raw_fd() >= FIRST_FREE {
            return Ok(());
        }
        let _ = descriptor.into_raw_fd(); // Stays open.
    }
}
