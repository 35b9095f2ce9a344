//! Two proxies exchange summaries of their caches (Fan et al., "Summary Cache", 2000; Squid's cache digests).
//! Each keeps a counting filter of its cache, since objects leave it, and occasionally sends its plain form
//! to the other. On a miss, a proxy queries the other only if the digest says "maybe". The filters share a
//! plan, including the secret key of the hash, so that they can be compared.

use sidebloom::filter::{AnyFilter, Bloom, CountingBloom, HashFunction, Plan, Verdict};
use std::collections::HashSet;

struct Proxy {
    cached: HashSet<u32>,
    digest: CountingBloom,
}

impl Proxy {
    /// A cache that stored the objects of `range` and then evicted every fourth.
    fn with(plan: Plan, range: std::ops::Range<u32>) -> sidebloom::Result<Proxy> {
        let mut proxy = Proxy { cached: HashSet::new(), digest: CountingBloom::with_plan(plan)? };
        for object in range.clone() {
            proxy.digest.insert(object.to_le_bytes())?;
            proxy.cached.insert(object);
        }
        for object in range.step_by(4) {
            proxy.digest.remove(object.to_le_bytes());
            proxy.cached.remove(&object);
        }
        Ok(proxy)
    }

    /// The message sent over the network.
    fn send_digest(&self) -> sidebloom::Result<Vec<u8>> {
        let mut message = Vec::new();
        sidebloom::send_filter(&AnyFilter::Bloom(self.digest.to_bloom()?), &mut message)?;
        Ok(message)
    }
}

fn receive_digest(mut message: &[u8]) -> sidebloom::Result<Bloom> {
    match sidebloom::receive_filter(&mut message, 1 << 20)? {
        AnyFilter::Bloom(digest) => Ok(digest),
        other => Err(sidebloom::Error::InvalidArgument(format!(
            "expected a Bloom filter as digest, got a {} filter",
            other.name()
        ))),
    }
}

fn main() -> sidebloom::Result<()> {
    let plan = Plan { hash: HashFunction::secret()?, ..Plan::new(40_000, 0.02)? };
    let (left, right) = (Proxy::with(plan, 0..30_000)?, Proxy::with(plan, 20_000..50_000)?);
    let message = right.send_digest()?;
    let digest = receive_digest(&message)?;

    let (mut asked, mut had, mut missed) = (0, 0, 0);
    for object in (0..100_000).filter(|object| !left.cached.contains(object)) {
        if digest.contains(object.to_le_bytes()) == Verdict::Maybe {
            asked += 1;
            had += u32::from(right.cached.contains(&object));
        } else {
            missed += u32::from(right.cached.contains(&object));
        }
    }
    let overlap = left.digest.to_bloom()?.overlap(&digest)?;
    let both = left.cached.intersection(&right.cached).count();

    println!("the digest of {} objects takes {} bytes on the wire", right.cached.len(), message.len());
    println!("the left proxy queried the right one for {asked} objects, which had {had}; it missed {missed}");
    println!("estimated objects in both caches: {:.0} (exact: {both})", overlap.intersection);
    assert_eq!(missed, 0);
    Ok(())
}
