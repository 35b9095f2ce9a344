//! Messages on standard error.

use std::fmt::Display;
use std::io::Write;

/// Prints a message. Standard error may be closed, or a log on a full disk: unlike `eprintln!`, this never panics.
pub fn notice(message: impl Display) {
    let _ = writeln!(std::io::stderr(), "sidebloom: {message}");
}
