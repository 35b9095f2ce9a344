//! Long tests of the store, each with a short form for CI and a long form; see `harness/README.md`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a harness that cannot go on should stop where it is"
)]

mod brief;
mod config;
mod contents;
mod damage;
mod faults;
mod follow;
mod generations;
mod harness;
#[cfg(any(test, sidebloom_schedules))]
mod history;
mod home;
mod kill;
mod model;
mod plants;
mod power;
mod record;
mod schedules;
#[cfg(any(test, sidebloom_schedules))]
mod second_opinion;
#[path = "../../tests/support/mod.rs"]
mod support;

use clap::{Parser, Subcommand};
use harness::Args;
use std::process::ExitCode;

/// Looks for mistakes in the store that its tests do not find. Exits 1 if there is one.
#[derive(Debug, Parser)]
struct Cli {
    #[command(subcommand)]
    harness: Harness,
}

#[derive(Debug, Subcommand)]
enum Harness {
    /// Power is lost at each operation of random workloads, and again while the store recovers.
    Power(Args),
    /// Each kind of I/O fails, at each index, once or from then on.
    Faults(Args),
    /// Bytes change, files are cut, blocks are zeroed, swapped or written to the wrong place.
    Damage(Args),
    /// Random operations under random options agree with a model and with each other.
    Model(Args),
    /// The process is killed by SIGKILL at random moments, under random options.
    Kill(Args),
    /// Processes follow a store while another one writes it, and all are killed at random moments.
    Follow(Args),
    /// Patches that plant mistakes still apply; with --long, a harness finds each mistake.
    Plants(plants::Args),
    /// The engine's threads run in an order that a seed decides.
    Schedules(Args),
    /// The process that `kill` kills.
    #[command(hide = true)]
    KillChild(kill::ChildArgs),
    /// The processes that `follow` kills.
    #[command(hide = true)]
    FollowWriter(follow::ChildArgs),
    #[command(hide = true)]
    FollowReader(follow::ChildArgs),
}

fn main() -> ExitCode {
    match Cli::parse().harness {
        Harness::Power(args) => power::harness(&args),
        Harness::Faults(args) => faults::harness(&args),
        Harness::Damage(args) => damage::harness(&args),
        Harness::Model(args) => model::harness(&args),
        Harness::Kill(args) => kill::harness(&args),
        Harness::Follow(args) => follow::harness(&args),
        Harness::FollowWriter(args) => follow::writer(&args),
        Harness::FollowReader(args) => follow::reader(&args),
        Harness::Plants(args) => plants::harness(&args),
        Harness::Schedules(args) => schedules::harness(&args),
        Harness::KillChild(args) => kill::child(&args),
    }
}
