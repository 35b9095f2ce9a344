//! Friends share a block list without showing it. Each copy sent is a Bloom filter of the whole list with a
//! random seed and many false positives, so a "maybe" from one copy does not prove that an address is listed.
//! Copies err independently: whoever has r copies of rate q probes them all, and q^r of the unlisted
//! addresses pass. So the number of copies decides how much a friend learns.

use sidebloom::filter::{AnyFilter, Bloom, HashFunction, NoisyBloom, Plan, Verdict};

const LISTED: u32 = 100_000;
/// The rate of a copy, as in `sidebloom filter build --noisy`.
const RATE: f64 = 0.25;
const COPIES: usize = 8;
const STRANGERS: u32 = 4_000_000;
/// Guesses of somebody who wants to know the list.
const GUESSES: u32 = 1_000_000;
const GOOD_GUESSES: u32 = 100;

fn listed(i: u32) -> String {
    format!("spammer{i}@offers.example")
}

/// A copy as its message: no two are alike.
fn send_copy() -> sidebloom::Result<Vec<u8>> {
    let plan = Plan { hash: HashFunction::random()?, ..Plan::new(LISTED.into(), RATE)? };
    let mut copy = Bloom::with_plan(plan)?;
    (0..LISTED).try_for_each(|i| copy.insert(listed(i)).map(drop))?;
    let mut message = Vec::new();
    sidebloom::send_filter(&AnyFilter::Bloom(copy), &mut message)?;
    Ok(message)
}

fn receive_copy(mut message: &[u8]) -> sidebloom::Result<Bloom> {
    match sidebloom::receive_filter(&mut message, 1 << 20)? {
        AnyFilter::Bloom(copy) => Ok(copy),
        other => {
            Err(sidebloom::Error::InvalidArgument(format!("expected a copy, got a {} filter", other.name())))
        }
    }
}

fn main() -> sidebloom::Result<()> {
    let messages = (0..COPIES).map(|_| send_copy()).collect::<sidebloom::Result<Vec<_>>>()?;
    let copies: Vec<Bloom> = messages.iter().map(|m| receive_copy(m)).collect::<sidebloom::Result<_>>()?;

    // For each r, how many strangers the first r copies pass.
    let mut passed = [0u32; COPIES];
    for i in 0..STRANGERS {
        let address = format!("stranger{i}@example.org");
        let passes =
            copies.iter().zip(&mut passed).take_while(|(copy, _)| copy.contains(&address) == Verdict::Maybe);
        passes.for_each(|(_, count)| *count += 1);
    }

    println!("{LISTED} addresses, {STRANGERS} strangers");
    println!("copies  received  strangers that pass    measured     q^r  by the set bits");
    let mut bytes = 0;
    for (r, (&passed, message)) in (1..).zip(passed.iter().zip(&messages)) {
        bytes += message.len();
        let received = NoisyBloom::from_parts(copies.iter().take(r).cloned().collect())?;
        let (measured, fpr) = (f64::from(passed) / f64::from(STRANGERS), received.fpr());
        println!(
            "{r:>6}  {:>4} KiB  {passed:>19}  {:>8.5} %  {:>8.5} %  {:>8.5} %",
            bytes / 1024,
            100.0 * measured,
            100.0 * RATE.powi(r as i32),
            100.0 * fpr
        );
        // Five standard deviations, plus the deviation of one filter's rate.
        let deviation = (fpr / f64::from(STRANGERS)).sqrt();
        assert!((measured - fpr).abs() < 5.0 * deviation + 0.02 * fpr, "{r} copies: {measured}, not {fpr}");
    }

    let all = NoisyBloom::from_parts(copies)?;
    assert!((0..LISTED).all(|i| all.contains(listed(i)) == Verdict::Maybe), "no copy denies what is listed");
    let one = NoisyBloom::from_parts(all.parts().iter().take(1).cloned().collect())?;
    println!("somebody tries {GUESSES} addresses, {GOOD_GUESSES} of which are listed:");
    for (name, filter) in [("one copy", &one), ("all copies", &all)] {
        let bad = (GOOD_GUESSES..GUESSES).map(|i| format!("guess{i}@example.net"));
        let guesses = (0..GOOD_GUESSES).map(listed).chain(bad);
        let confirmed = guesses.filter(|guess| filter.contains(guess) == Verdict::Maybe).count();
        let share = 100.0 * f64::from(GOOD_GUESSES) / confirmed as f64;
        println!("  passed by {name}: {confirmed}, {share:.2} % of which are listed");
    }
    Ok(())
}
