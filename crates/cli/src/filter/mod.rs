//! `sidebloom filter`: stand-alone filters, built from lines of text.

mod add;
mod build;
mod check;
mod combine;
mod common;
mod dedup;
mod files;
mod fold;
mod info;
pub(super) mod input;
mod overlap;
mod receive;
mod remove;
mod send;
pub mod sift;
mod sorter;
mod table;

use crate::context::{Context, Failure, Outcome};
use clap::Subcommand;

/// Build, query and combine filters of lines, without a store
///
/// As in `load --format lines`, a line is all bytes up to LF (NUL with -0), including any CR or byte-order
/// mark, and an empty line counts. Lines have at most 65,536 bytes. Filter files have the format of the
/// store's sidecars, except for kind small, which has a compact one. `-` is standard input.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Build(build::Args),
    Check(check::Args),
    Add(add::Args),
    Remove(remove::Args),
    Info(info::Args),
    Union(combine::Union),
    Intersect(combine::Intersect),
    Overlap(overlap::Args),
    Fold(fold::Args),
    Send(send::Args),
    Receive(receive::Args),
    Table(table::Args),
    Common(common::Args),
    Dedup(dedup::Args),
}

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        match self.command {
            Command::Build(args) => args.run(cx),
            Command::Check(args) => args.run(cx),
            Command::Add(args) => args.run(cx),
            Command::Remove(args) => args.run(cx),
            Command::Info(args) => args.run(cx),
            Command::Union(args) => args.run(cx),
            Command::Intersect(args) => args.run(cx),
            Command::Overlap(args) => args.run(cx),
            Command::Fold(args) => args.run(cx),
            Command::Send(args) => args.run(cx),
            Command::Receive(args) => args.run(cx),
            Command::Table(args) => args.run(cx),
            Command::Common(args) => args.run(cx),
            Command::Dedup(args) => args.run(cx),
        }
    }
}
