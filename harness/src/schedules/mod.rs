//! Deterministic schedules of the engine's own threads: group commit, rotation, flush, publishing,
//! compaction, unlinking, closing.
//!
//! The engine is built with a scheduler (`src/sync/mod.rs`). At each use of a lock, a signal, an atomic or
//! the disk, a seed decides which thread continues. So a deadlock, a lost wake-up, a wrong answer or an
//! unrecoverable image of the disk is repeatable from its seed.

#[cfg(sidebloom_schedules)]
mod expiring;
#[cfg(sidebloom_schedules)]
mod keyspaces;
#[cfg(sidebloom_schedules)]
mod model;
#[cfg(sidebloom_schedules)]
mod scheduled_build;
#[cfg(sidebloom_schedules)]
mod snapshots;
#[cfg(sidebloom_schedules)]
mod threads;
#[cfg(sidebloom_schedules)]
mod transactions;

use crate::harness::Args;
use std::path::Path;
use std::process::{Command, ExitCode};

#[cfg(sidebloom_schedules)]
pub fn harness(args: &Args) -> ExitCode {
    scheduled_build::harness(args)
}

/// Builds the working tree at `root` with the scheduler and runs it with this program's arguments.
pub fn command(root: &Path) -> Command {
    let mut command = Command::new(env!("CARGO"));
    let build = ["run", "--locked", "--quiet", "--profile", "harness", "-p", "sidebloom-harness"];
    command.current_dir(root).args(build).args(["--target-dir", "target/schedules", "--"]);
    command.env("RUSTFLAGS", "--cfg sidebloom_schedules");
    command
}

#[cfg(not(sidebloom_schedules))]
pub fn harness(_: &Args) -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    match command(root).args(std::env::args_os().skip(1)).status() {
        Ok(status) => ExitCode::from(status.code().map_or(2, |code| code as u8)),
        Err(error) => {
            eprintln!("schedules: cannot run cargo: {error}");
            ExitCode::from(2)
        }
    }
}
