//! `sidebloom backup` and `sidebloom restore`: backups in a directory or an object store.

mod keep;
mod list;
mod report;
mod repository;
pub mod restore;
mod verify;

pub use report::add;
pub use repository::open;

use crate::context::{Context, Failure, Outcome};
use std::path::PathBuf;

/// Back up the store beside the process that writes it, or list, verify and remove backups
///
/// TARGET is a directory or a URL, and holds any number of backups of one store; the first backup creates it.
/// What it has already is neither read nor copied again. A backup has everything that was written before the
/// command, and perhaps more: whole batches, in their order. Nothing is asked of a process that has the store
/// open. A damaged segment that has to be copied fails the backup, which names it.
///
/// A TARGET with the name of a command needs a path: `./list`.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Directory or URL of the backups: s3://BUCKET/PATH, gs://BUCKET/PATH, az://CONTAINER/PATH or
    /// file:///DIRECTORY. A URL needs a build with the feature remote
    #[arg(required = true)]
    target: Option<PathBuf>,
    /// Then remove all but the newest N backups, and the files that only those used
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    keep: Option<u64>,
}

#[derive(clap::Subcommand)]
enum Command {
    List(list::Args),
    Verify(verify::Args),
    Keep(keep::Args),
}

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        match (self.command, self.target) {
            (None, Some(target)) => {
                let repository = open(&target)?;
                let dir = cx.local_db()?;
                let db = cx.opening(|| cx.options().follow(true).open(dir))?;
                add(cx, &repository, self.keep, |progress| db.backup_with(&repository, progress))
            }
            (Some(Command::List(args)), _) => args.run(cx),
            (Some(Command::Verify(args)), _) => args.run(cx),
            (Some(Command::Keep(args)), _) => args.run(cx),
            (None, None) => Err(Failure::message("where to? Give a directory or a URL")),
        }
    }
}
