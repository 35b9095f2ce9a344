//! The bytes of a sidecar file. Answers match its lines, verified by group or whole, on each instruction set.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sidebloom::internal::fuzz::{Binding, Expect, Isa, Line, Maps, ProbeHash, Prober, Sidecar, Verdict};
use sidebloom::{MappedFilter, Residency, read_filter};
use sidebloom_fuzz::disk::SimFs;
use sidebloom_fuzz::repair;
use std::path::Path;
use std::sync::Arc;

fuzz_target!(|bytes: &[u8]| {
    ask(bytes);
    ask_standing_alone(bytes);
    // A whole file provides fields and lines in their places; shorter input is split into fields and lines.
    let compact = match bytes.len() {
        4096.. => [&bytes[..184], &bytes[4096..]].concat(),
        _ => bytes.to_vec(),
    };
    if let Some(repaired) = repair::sidecar(&compact) {
        ask(&repaired);
        ask_standing_alone(&repaired);
    }
});

/// The file of a filter that belongs to no segment: mapped, it answers as it does in memory, or is refused.
fn ask_standing_alone(file: &[u8]) {
    // Only the operating system can map a file.
    let path = std::env::temp_dir().join(format!("sidebloom-fuzz-{}.filter", std::process::id()));
    std::fs::write(&path, file).expect("a temporary file");
    let (read, mapped) = (read_filter(&path), MappedFilter::open(&path));
    std::fs::remove_file(&path).expect("the temporary file");
    let Ok(mapped) = mapped else { return assert!(read.is_err(), "only the mapped one is refused") };
    let keys: Vec<[u8; 8]> = (0..200u64).map(u64::to_le_bytes).collect();
    let one_by_one: Vec<_> = keys.iter().map(|key| mapped.contains(key).ok()).collect();
    let Ok(read) = read else {
        return assert!(mapped.verify().is_err(), "only the one that is read is refused");
    };
    assert_eq!(one_by_one, keys.iter().map(|key| Some(read.contains(key))).collect::<Vec<_>>());
    let together = mapped.contains_many(&keys).expect("every group is good");
    assert_eq!(together, read.contains_many(&keys));
    mapped.verify().expect("every group is good");
    assert_eq!(mapped.contains_many(&keys).expect("they still are"), together);
}

fn ask(file: &[u8]) {
    let u64_at =
        |at: usize| file.get(at..).and_then(|b| b.first_chunk()).map_or(0, |b| u64::from_le_bytes(*b));
    let binding = Binding { segment: u64_at(40), digest: u64_at(48) };
    let expect = Expect { binding, hasher: u64_at(16).into() };
    let (fs, path) = (SimFs::new(), Path::new("filter"));
    fs.write(path, file);
    let maps = Arc::new(Maps::new(Arc::new(fs), 1, Arc::default()));
    let Ok(sidecar) = Sidecar::open(&maps, path, &expect, Residency::Mapped) else { return };
    let facts = *sidecar.facts().expect("an opened sidecar has read its header");
    let fpr = facts.expected_fpr();
    assert!((0.0..=1.0).contains(&fpr), "a rate of {fpr}");
    let lines = facts.lines() as usize;
    assert_eq!(file.len(), 4096 + 64 * lines + 8 * lines.div_ceil(64));
    let hashes = (0..40u64).map(|i| (i << 58 | i).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let hashes: Vec<u64> = hashes.chain([0, u64::MAX]).collect();
    let by_group: Vec<_> = hashes.iter().map(|&hash| sidecar.ask(hash)).collect();
    let verified = sidecar.verify().is_ok();
    let lines: &[Line] = &file[4096..].as_chunks().0[..lines];
    for (&hash, by_group) in hashes.iter().zip(by_group) {
        sidecar.prefetch(hash);
        let scalar = Prober::with_isa(facts.kind(), Isa::SCALAR).probe(lines, hash);
        for isa in Isa::available() {
            assert_eq!(Prober::with_isa(facts.kind(), isa).probe(lines, hash), scalar, "{}", isa.name());
        }
        assert!(by_group == Some(scalar) || by_group.is_none() && !verified, "before the whole was verified");
        assert_eq!(sidecar.probe(hash), if verified { scalar } else { Verdict::Maybe });
        let first = sidecar.first_probe();
        let denies = first.is_some_and(|(first, lines)| first.denies(lines, &ProbeHash::new(hash)));
        assert!(
            !denies || verified && scalar == Verdict::Absent,
            "the first line denies what the filter does not"
        );
    }
}
