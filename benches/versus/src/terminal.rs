//! What commands print in addition to their tables.

use crate::error::Result;
use crate::machine::Machine;
use std::io::{IsTerminal, Write};

/// Shows the current step, if standard error is a terminal.
pub fn progress(text: &str) {
    let mut err = std::io::stderr().lock();
    if err.is_terminal() {
        write!(err, "\r\x1b[K{text}").and_then(|()| err.flush()).ok();
    }
}

/// Prints when and where the measurement began.
pub fn print_head(date: &str, machine: &Machine) -> Result<()> {
    Ok(writeln!(std::io::stdout().lock(), "{date}: {}", machine.describe())?)
}

/// Prints notes for the reader.
pub fn print_notes(notes: &[String]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    Ok(notes.iter().try_for_each(|note| writeln!(out, "note: {note}"))?)
}
