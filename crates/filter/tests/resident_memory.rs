//! Resident memory, alone in its process.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test")]

use sidebloom_filter::RotatingBloom;

/// Bytes of this process in memory.
fn resident() -> u64 {
    let mappings = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap();
    let kib = mappings.lines().find_map(|line| line.strip_prefix("Rss:")?.strip_suffix("kB"));
    kib.unwrap().trim().parse::<u64>().unwrap() << 10
}

/// Traffic with a daily cycle, for three days: sub-filters of many sizes come and go.
#[test]
fn a_rotating_filter_has_no_memory_besides_its_bits() {
    let mut seen = RotatingBloom::new(12_000, 1e-10, 1 << 30).unwrap();
    let (before, mut n) = (resident(), 0u64);
    for bucket in 0..36u32 {
        let cycle = (f64::from(bucket) * std::f64::consts::TAU / 12.0).sin();
        for _ in 0..(60_000.0 * (1.0 + 0.7 * cycle)) as u32 {
            n += 1;
            seen.insert_new(n.to_le_bytes(), 1000 * u64::from(bucket)).unwrap();
        }
        let others = resident().saturating_sub(before).saturating_sub(seen.bytes());
        assert!(others < 768 << 10, "bucket {bucket}: {others} bytes besides the {} of bits", seen.bytes());
    }
}
