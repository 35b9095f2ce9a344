//! Power is lost at each writing operation of random workloads, and again while the store recovers.
//!
//! 1. Each workload runs once per life: several writers, other threads, and the store's own. Just before each writing operation takes
//!    effect, an image of the disk is taken, with what was promised by then.
//! 2. Each image is damaged in five ways, opened and checked: every writer has a prefix of its batches that includes what was synced, and
//!    the prefixes of all writers together are a prefix of what was written. Checkpoints are opened too.
//! 3. Some are recovered once more, with a crash at each writing operation of the recovery; some are repaired, with a crash at each of the
//!    repair.
//! 4. The next life continues from one of the images.

mod check;
mod life;
mod plan;
mod recovery;
mod told;

use crate::run::{Args, Counts, Harness};
use crate::support::{Crash, Rng, SimFs};
use check::{Checker, damage_seed};
use life::{Image, Life};
use plan::{Found, Plan, mix};
use std::collections::{HashMap, HashSet};
use std::process::ExitCode;
use std::sync::Arc;
use told::Promises;

const LIVES_MAX: u64 = 3;
const BATCHES_MAX: u64 = 14;
const DRAWS: [Crash; 5] = [Crash::Kill, Crash::PowerOrdered, Crash::Power, Crash::Power, Crash::Power];
/// Of 1000 distinct images, how many are recovered with a crash at each step.
const RECOVERED: u64 = 5;
/// The next ones up to this number are repaired, with a crash at each step.
const REPAIRED: u64 = 12;

pub fn harness(args: &Args) -> ExitCode {
    let floors = &[("workloads", 200), ("distinct images", 100_000), ("crashes inside recovery", 20_000)];
    // The short form takes an image at some of the operations only, so that it sees more workloads.
    let sample = if args.long || args.seed.is_some() { 100 } else { 20 };
    Harness { name: "power", short: 60, long: 230, floors }
        .run(args, |seed, counts: &Counts| run(seed, sample, counts))
}

fn run(seed: u64, sample: u64, counts: &Counts) {
    let plan = Plan::new(seed, LIVES_MAX * BATCHES_MAX);
    let mut rng = Rng::new(mix(&[seed, 0]));
    let mut fs = SimFs::new();
    let mut found = Found::nothing(plan.writers);
    let mut durable = found.clone();
    for number in 0..1 + rng.below(LIVES_MAX) {
        let promises = Arc::new(Promises::new(&found, &durable));
        let batches = 4 + rng.below(BATCHES_MAX - 3);
        let life = Life { plan: &plan, number, promises: Arc::clone(&promises), batches, sample };
        let images = life.live(&fs);
        counts.add("operations", images.len() as u64);
        let mut checker = Checker {
            plan: &plan,
            promises: &promises,
            counts,
            known: HashMap::new(),
            copies: HashMap::new(),
            images: HashSet::new(),
            rng: Rng::new(mix(&[seed, 7, number])),
        };
        let next = rng.below(images.len() as u64 * 2) as usize;
        let next = (next.min(images.len() - 1), rng.below(DRAWS.len() as u64) as usize);
        let mut continued = None;
        for (i, image) in images.iter().enumerate() {
            for (draw, crash) in DRAWS.into_iter().enumerate() {
                let damage = damage_seed(&plan, number, i, draw);
                let outcome = checker.check(image, crash, damage).and_then(|(fs, found, is_new)| {
                    match if is_new { checker.rng.below(1000) } else { 1000 } {
                        0..RECOVERED => checker.crash_in_recovery(image, &fs, crash, &found, 1)?,
                        RECOVERED..REPAIRED => checker.crash_in_repair(&fs, &found)?,
                        _ => {}
                    }
                    Ok((fs, found))
                });
                match outcome {
                    Ok((fs, found)) if (i, draw) == next => {
                        let durable = image.told.durable(&found, crash);
                        continued = Some((fs, found, durable));
                    }
                    Ok(_) => {}
                    Err(error) => fail(&plan, number, &images[..=i], crash, damage, &error),
                }
            }
        }
        (fs, found, durable) = continued.expect("one of the images");
    }
    counts.add("workloads", 1);
}

fn fail(plan: &Plan, life: u64, images: &[Image], crash: Crash, damage: u64, error: &str) -> ! {
    let Some((image, _)) = images.split_last() else { unreachable!("there is an image") };
    let before: Vec<_> = images.iter().rev().take(30).rev().map(|image| image.at.as_str()).collect();
    let mut files = String::new();
    image.fs.crash(crash, damage).visit("", |path, bytes| {
        files += &format!("  {} ({} bytes)\n", path.display(), bytes.len());
    });
    panic!(
        "seed {}, life {life}, {} writers, {crash:?} {damage} before operation {}: {error}\ntold: {:?}\nfiles:\n{files}\
         operations before it:\n  {}",
        plan.seed,
        plan.writers,
        image.at,
        image.told,
        before.join("\n  ")
    );
}
