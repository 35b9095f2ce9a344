//! Power is lost at each writing operation of random workloads, and again while the store recovers.
//!
//! 1. Each workload runs once per life: several writers, other threads, and the store's own. Just before each
//!    writing operation takes effect, an image of the disk is taken, with what was promised by then.
//! 2. Each image is damaged in five ways, opened and checked: every writer has a prefix of its batches that
//!    includes what was synced, and the prefixes of all writers together are a prefix of what was written.
//!    Checkpoints are opened too.
//! 3. Some are recovered once more, with a crash at each writing operation of the recovery; some are
//!    repaired, with a crash at each one of the repair.
//! 4. The next life continues from one of the images.

mod check;
mod fates;
mod keyspaces;
mod life;
mod plan;
mod promises;
mod recovery;

use crate::harness::{Args, Counts, Harness};
use crate::support::{Crash, Rng, SimFs};
use check::{Checker, Digest, Outcome, damage_seed};
use life::{Image, Life};
use plan::{Found, Plan, mix};
use promises::Promises;
use std::collections::{HashMap, HashSet};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

const LIVES_MAX: u64 = 3;
const BATCHES_MAX: u64 = 14;
const DRAWS: [Crash; 5] = [Crash::Kill, Crash::PowerOrdered, Crash::Power, Crash::Power, Crash::Power];
/// How many of 1000 distinct images are recovered with a crash at each step.
const RECOVERED: u64 = 5;
/// The next ones, up to this number, are repaired with a crash at each step.
const REPAIRED: u64 = 12;

pub fn harness(args: &Args) -> ExitCode {
    let floors = &[("workloads", 200), ("distinct images", 100_000), ("crashes inside recovery", 20_000)];
    // The short form takes an image only at some operations, so that it covers more workloads.
    let sample = if args.long || args.seed.is_some() { 100 } else { 20 };
    let images = Mutex::new(HashSet::new());
    Harness { name: "power", short: 60, long: 230, floors }.run(args, |seed, counts: &Counts| {
        Workload { plan: Plan::new(seed, LIVES_MAX * BATCHES_MAX), sample, images: &images, counts }.run();
    })
}

/// All lives of one store.
struct Workload<'a> {
    plan: Plan,
    /// Percentage of writing operations at which images are taken.
    sample: u64,
    /// The images of all seeds.
    images: &'a Mutex<HashSet<Digest>>,
    counts: &'a Counts,
}

/// Where a life begins: the disk, the store's contents, and which of them are durable.
type Start = (SimFs, Found, Found);

impl Workload<'_> {
    fn run(&self) {
        let mut rng = Rng::new(mix(&[self.plan.seed, 0]));
        let nothing = Found::nothing(self.plan.writers);
        let mut start = (SimFs::new(), nothing.clone(), nothing);
        for number in 0..1 + rng.below(LIVES_MAX) {
            start = self.live(number, &start, &mut rng);
        }
        self.counts.add("workloads", 1);
    }

    /// Lives one life and checks its images. Returns where the next one begins: at one of them.
    fn live(&self, number: u64, (fs, found, durable): &Start, rng: &mut Rng) -> Start {
        let promises = Arc::new(Promises::new(found, durable));
        let batches = 4 + rng.below(BATCHES_MAX - 3);
        let (plan, sample) = (&self.plan, self.sample);
        let life = Life { plan, number, promises: Arc::clone(&promises), batches, sample };
        let images = life.live(fs);
        self.counts.add("operations", images.len() as u64);
        let mut checker = Checker {
            plan,
            promises: &promises,
            counts: self.counts,
            known: HashMap::new(),
            copies: HashMap::new(),
            images: HashSet::new(),
            all_images: self.images,
            rng: Rng::new(mix(&[plan.seed, 7, number])),
        };
        let next = rng.below(images.len() as u64 * 2) as usize;
        let next = (next.min(images.len() - 1), rng.below(DRAWS.len() as u64) as usize);
        let mut start = None;
        for (i, image) in images.iter().enumerate() {
            for (draw, crash) in DRAWS.into_iter().enumerate() {
                let damage = damage_seed(plan, number, i, draw);
                match check(&mut checker, image, crash, damage) {
                    Ok((fs, found)) if (i, draw) == next => {
                        let durable = image.told.durable(&found, crash);
                        start = Some((fs, found, durable));
                    }
                    Ok(_) => {}
                    Err(error) => fail(plan, number, &images[..=i], crash, damage, &error),
                }
            }
        }
        start.expect("one of the images")
    }
}

/// Checks an image after this crash, and crashes some again during recovery or repair.
fn check(checker: &mut Checker<'_>, image: &Image, crash: Crash, damage: u64) -> Outcome<(SimFs, Found)> {
    let (fs, found, is_new) = checker.check(image, crash, damage)?;
    match if is_new { checker.rng.below(1000) } else { 1000 } {
        0..RECOVERED => checker.crash_in_recovery(image, &fs, crash, &found, 1)?,
        RECOVERED..REPAIRED => checker.crash_in_repair(&fs, &found)?,
        _ => {}
    }
    Ok((fs, found))
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
