//! Runs one step on one store in its own process: reads a [`SpaceTask`] from standard input, and writes the
//! figures of the step to standard output.

use super::task::{SpaceTask, Step};
use super::{dropping, large, small};
use crate::error::Result;

/// Reads a task, runs it, and writes its figures.
pub fn main() -> Result<()> {
    let task: SpaceTask = serde_json::from_reader(std::io::stdin().lock())?;
    let figures = run(&task)?;
    Ok(serde_json::to_writer(std::io::stdout().lock(), &figures)?)
}

fn run(task: &SpaceTask) -> Result<serde_json::Value> {
    Ok(match task.step {
        Step::Load => serde_json::to_value(large::load(task)?)?,
        Step::Check => serde_json::to_value(large::check(task)?)?,
        Step::Lookups { round } => serde_json::to_value(large::look_up(task, round)?)?,
        Step::Batches { round } => serde_json::to_value(large::write_batches(task, round)?)?,
        Step::FillSmall => serde_json::to_value(small::fill(task)?)?,
        Step::CreateTogether => serde_json::to_value(small::create_together(task)?)?,
        Step::OpenSmall => serde_json::to_value(small::open(task)?)?,
        Step::LoadToDrop => serde_json::to_value(dropping::load(task)?)?,
        Step::Drop => serde_json::to_value(dropping::drop_one(task)?)?,
        Step::CheckDrop => serde_json::to_value(dropping::check(task)?)?,
    })
}
