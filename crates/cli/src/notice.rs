//! Messages on standard error.

use sidebloom::show;
use std::fmt::Display;
use std::io::Write;

/// Prints a message without terminal control characters: it may contain names from outside. Standard error
/// may be closed, or on a full disk: unlike `eprintln!`, this never panics.
pub fn notice(message: impl Display) {
    let _ = writeln!(std::io::stderr(), "sidebloom: {}", show::escaped_lines(&message.to_string()));
}
