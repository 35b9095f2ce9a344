//! The process that runs a task: reads it from standard input, and writes the figures to standard output.

use super::measure;
use super::task::WindowTask;
use crate::error::Result;

/// Reads a task, runs it, and writes its figures.
pub fn main() -> Result<()> {
    let task: WindowTask = serde_json::from_reader(std::io::stdin().lock())?;
    let figures = measure::run(&task)?;
    Ok(serde_json::to_writer(std::io::stdout().lock(), &figures)?)
}
