//! Work in a process of its own.

use crate::error::Result;
use serde::Serialize;
use std::process::{Command, Output, Stdio};

/// Runs a hidden command of this program, which reads a task from standard input. Returns what it has
/// written to standard output, and how it ended.
pub fn run(command: &str, task: &impl Serialize) -> Result<Output> {
    let mut child = Command::new(std::env::current_exe()?);
    let mut child = child.arg(command).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    serde_json::to_writer(child.stdin.take().ok_or("no pipe to the worker")?, task)?;
    Ok(child.wait_with_output()?)
}
