//! Metamorphic model: a seed makes a program of operations, which runs under many random configurations. Each
//! answer must match a `BTreeMap`'s, and all configurations must give the same answers.

mod blob;
mod change_neighbours;
mod checks;
mod cursors;
mod expiring;
mod intruders;
mod keys;
mod neighbours;
mod play;
mod play_transactions;
mod player;
mod program;
mod rows;
mod store_location;
mod threads;
mod transactions;
mod upkeep;

use crate::harness::{Args, Counts, Harness};
use play::play;
use program::Program;
use std::process::ExitCode;

/// Configurations per program.
const CONFIGURATIONS: u64 = 16;

const FLOORS: &[(&str, u64)] = &[
    ("programs", 2000),
    ("runs", 32_000),
    ("operations", 20_000_000),
    ("publications", 470_000),
    ("sidecars damaged", 27_000),
];

pub fn harness(args: &Args) -> ExitCode {
    Harness { name: "model", short: 80, long: 2000, floors: FLOORS }.run(args, one)
}

fn one(seed: u64, counts: &Counts) {
    let program = Program::random(seed);
    let mut first = None;
    for configuration in 0..CONFIGURATIONS {
        let transcript = play(&program, seed, configuration, counts);
        let expected = *first.get_or_insert(transcript);
        assert_eq!(
            transcript, expected,
            "seed {seed}: configurations 0 and {configuration} answer differently"
        );
    }
    counts.add("programs", 1);
}
