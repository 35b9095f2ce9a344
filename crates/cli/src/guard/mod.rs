//! `sidebloom guard`: a guard in front of a slow database.

mod backup;
mod build;
mod check;
mod follow;
pub mod following;
mod insert;
pub mod keys;
mod publish;
#[cfg(feature = "postgres")]
mod publishing;
mod reconcile;
mod refresh;
mod remove;
mod serve;
mod source;
mod stats;

use super::context::{Context, Failure, Outcome};
use clap::Subcommand;

/// Build and query a guard, which tells from memory which keys are absent from a slow database
///
/// A guard is a directory. Either one process has it open for changes, or any number of processes read it
/// (`check`, `stats`). A line is all bytes up to LF, at most 65,536. `-` is standard input.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Build(build::Args),
    Check(check::Args),
    Insert(insert::Args),
    Remove(remove::Args),
    Refresh(refresh::Args),
    Reconcile(reconcile::Args),
    Follow(follow::Args),
    Publish(publish::Args),
    Backup(backup::Args),
    Serve(serve::Args),
    Stats(stats::Args),
}

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        match self.command {
            Command::Build(args) => args.run(cx),
            Command::Check(args) => args.run(cx),
            Command::Insert(args) => args.run(cx),
            Command::Remove(args) => args.run(cx),
            Command::Refresh(args) => args.run(cx),
            Command::Reconcile(args) => args.run(cx),
            Command::Follow(args) => args.run(cx),
            Command::Publish(args) => args.run(cx),
            Command::Backup(args) => args.run(cx),
            Command::Serve(args) => args.run(cx),
            Command::Stats(args) => args.run(cx),
        }
    }
}
