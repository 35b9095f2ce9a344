//! Sidecars with several groups of lines, some of them damaged.

use super::*;

/// A case with many groups, its hashes and its bytes.
fn large(spec: FilterSpec) -> (Case, Vec<u64>, Vec<u8>, Vec<Group>) {
    let hashes: Vec<u64> = (0..60_000u64).map(|i| HASHER.hash(&i.to_le_bytes())).collect();
    let case = Case::new(spec);
    create(&RealFs, &case.path, &hashes, spec, HASHER, Some(BINDING), NO_PREFIXES).unwrap();
    let bytes = case.bytes();
    let header = Header::decode(&bytes).unwrap();
    let checksums = header.checksums_at() as usize;
    let range = |group: usize| {
        let from = HEADER_BYTES + group * GROUP_BYTES;
        [from..(from + GROUP_BYTES).min(checksums), checksums + 8 * group..checksums + 8 * group + 8]
    };
    let groups: Vec<_> = (0..header.groups()).map(range).collect();
    assert!(groups.len() > 10, "{} groups", groups.len());
    (case, hashes, bytes, groups)
}

/// A probe of a damaged group finds the damage; until then the other groups answer.
#[test]
fn i1_a_damaged_group_is_found_by_its_probe_until_then_others_answer() {
    for spec in KINDS {
        let (case, hashes, whole, groups) = large(spec);
        let absent: Vec<u64> = (60_000..70_000u64).map(|i| HASHER.hash(&i.to_le_bytes())).collect();
        let sound = case.open().unwrap();
        for damaged in [0, 3, groups.len() - 1] {
            let mut bytes = whole.clone();
            bytes[groups[damaged][0].start + 17] ^= 1;
            let copy = case.dir.path().join("copy");
            fs::write(&copy, bytes).unwrap();
            let sidecar = Sidecar::open(&maps(), &copy, &EXPECT, Residency::Mapped).unwrap();
            let (mut answers, mut met) = (0, false);
            for &hash in &absent {
                match sidecar.ask(hash) {
                    None => met = true,
                    Some(verdict) => {
                        assert!(!met, "an answer after the damage was met");
                        assert_eq!(Some(verdict), sound.ask(hash));
                        answers += 1;
                    }
                }
            }
            assert!(met && (damaged == 0 || answers > 0), "group {damaged}: {answers} answers");
            assert_eq!(denied(&sidecar, &hashes), 0);
            assert!(matches!(sidecar.verify(), Err(Unusable::Invalid { offset, .. })
                if offset as usize == groups[damaged][0].start));
        }
    }
}

/// Verification reads piece by piece, and leaves out no group of any piece.
#[test]
fn i1_verification_finds_damage_in_every_group_without_a_probe() {
    for spec in KINDS {
        let (case, _, whole, groups) = large(spec);
        for [lines, _] in &groups {
            let mut bytes = whole.clone();
            bytes[lines.end - 1] ^= 1;
            let copy = case.dir.path().join("copy");
            fs::write(&copy, bytes).unwrap();
            let sidecar = Sidecar::open(&maps(), &copy, &EXPECT, Residency::Mapped).unwrap();
            let found = sidecar.verify();
            assert!(matches!(found, Err(Unusable::Invalid { offset, .. }) if offset as usize == lines.start));
            fs::remove_file(copy).unwrap();
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn i1_lines_that_are_gone_deny_nobody_though_their_group_was_believed() {
    crate::fs::catch_sigbus().unwrap();
    for spec in KINDS {
        let (case, hashes, ..) = large(spec);
        let sidecar = case.open().unwrap();
        assert_eq!(denied(&sidecar, &hashes), 0);
        fs::OpenOptions::new().write(true).open(&case.path).unwrap().set_len(0).unwrap();
        assert_eq!(denied(&sidecar, &hashes), 0, "{spec:?}");
    }
}

/// Intact groups from another place, or from an older filter of the segment, are not trusted.
#[test]
fn i1_sound_groups_of_another_place_or_filter_are_not_believed() {
    for spec in KINDS {
        let (case, hashes, whole, groups) = large(spec);
        let mut swapped = whole.clone();
        for [a, b] in
            [[groups[2][0].clone(), groups[5][0].clone()], [groups[2][1].clone(), groups[5][1].clone()]]
        {
            swapped[a.clone()].copy_from_slice(&whole[b.clone()]);
            swapped[b].copy_from_slice(&whole[a]);
        }
        create(&RealFs, &case.path, &hashes[1..], spec, HASHER, Some(BINDING), NO_PREFIXES).unwrap();
        let older = case.bytes();
        let mut mixed = whole.clone();
        for range in groups[4].clone() {
            mixed[range.clone()].copy_from_slice(&older[range]);
        }
        for bytes in [swapped, mixed] {
            let sidecar = case.with(&bytes).open().unwrap();
            assert_eq!(denied(&sidecar, &hashes), 0);
            assert!(sidecar.verify().is_err());
        }
    }
}
