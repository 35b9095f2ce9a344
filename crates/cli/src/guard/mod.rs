//! `sidebloom guard`: a guard before a slow database.

mod build;
mod check;
mod follow;
mod insert;
mod keys;
mod reconcile;
mod refresh;
mod remove;
mod serve;
mod source;
mod stats;

use super::context::{Context, Failure, Outcome};
use clap::Subcommand;

/// Build and ask a guard: it knows every key of a slow database, and says from memory which are not there
///
/// A guard is a directory. One process at a time has it open for changes, and then nobody else has; any number may ask it (`check`,
/// `stats`) at once. Lines are the bytes up to LF, at most 65,536 of them. `-` is standard input.
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
            Command::Serve(args) => args.run(cx),
            Command::Stats(args) => args.run(cx),
        }
    }
}
