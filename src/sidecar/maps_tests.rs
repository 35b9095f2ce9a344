use super::tests::{BLOOM, Case, EXPECT, NO_PREFIXES, denied, members, others};
use super::*;
use crate::fs::RealFs;
use std::fs;
use std::sync::{Arc, Condvar};

const MAX: usize = 8;

fn few() -> Arc<Maps> {
    Arc::new(Maps::new(Arc::new(RealFs), MAX, Arc::new(Condvar::new())))
}

fn open(case: &Case, maps: &Arc<Maps>) -> Sidecar {
    Sidecar::open(maps, &case.path, &EXPECT, Residency::Mapped).unwrap()
}

#[test]
fn i12_without_room_a_sidecar_knows_nothing_and_one_that_goes_makes_room() {
    let (case, maps) = (Case::new(BLOOM), few());
    let mut sidecars: Vec<Sidecar> = (0..MAX).map(|_| open(&case, &maps)).collect();
    assert_eq!(maps.mapped(), 0, "opening maps nothing");
    for sidecar in &sidecars {
        assert_eq!(sidecar.ask(others()[0]), Some(crate::filter::Verdict::Absent));
    }
    assert!(maps.mapped() == MAX && maps.take_shortage() && !maps.take_shortage());
    let late = open(&case, &maps);
    assert_eq!((late.ask(others()[0]), late.ask(members()[0]), maps.mapped()), (None, None, MAX));
    assert!(maps.take_shortage() && !late.is_bad(), "nothing is wrong with it");
    assert_eq!(maps.excess(), MAX / 4);
    sidecars.pop();
    assert_eq!(late.ask(others()[0]), Some(crate::filter::Verdict::Absent));
    drop((sidecars, late));
    assert_eq!(maps.mapped(), 0);
}

#[test]
fn i12_without_room_a_sidecar_is_verified_in_its_file() {
    let (case, maps) = (Case::new(BLOOM), few());
    let held: Vec<Sidecar> = (0..MAX - 1).map(|_| open(&case, &maps)).collect();
    held.iter().for_each(|sidecar| assert!(sidecar.ask(others()[0]).is_some()));
    let sound = open(&case, &maps);
    sound.verify().unwrap();
    assert!(sound.is_verified() && !sound.is_mapped());
    assert_eq!((denied(&sound, &members()), maps.mapped()), (0, MAX));
    assert!(sound.is_mapped(), "a question maps it");

    let mut bytes = case.bytes();
    bytes[4100] ^= 1;
    let other = Case::new(BLOOM);
    let bad = open(other.with(&bytes), &maps);
    assert!(matches!(bad.verify(), Err(Unusable::Invalid { offset: 4096, .. })));
    assert!(bad.is_bad() && !bad.is_verified());
}

#[test]
fn an_unmapped_sidecar_answers_as_the_one_whose_place_it_takes() {
    let (case, maps) = (Case::new(BLOOM), few());
    let old = open(&case, &maps);
    assert!(!old.unmapped().is_verified());
    old.verify().unwrap();
    let new = old.unmapped();
    assert!(new.is_verified() && !new.is_mapped() && old.is_mapped());
    for hash in members().into_iter().chain(others()) {
        assert_eq!(new.ask(hash), old.ask(hash));
    }
    assert_eq!(maps.mapped(), 2, "the old map is its readers'");
}

#[test]
fn a_sidecar_says_once_that_it_was_asked() {
    let (case, maps) = (Case::new(BLOOM), few());
    let sidecar = open(&case, &maps);
    assert!(!sidecar.take_asked());
    for verified in [false, true, true] {
        if verified {
            sidecar.verify().unwrap();
            sidecar.take_asked();
        }
        assert!(!sidecar.take_asked());
        sidecar.prefetch(1);
        assert!(!sidecar.take_asked());
        assert!(sidecar.ask(others()[0]).is_some());
        assert!(sidecar.take_asked() && !sidecar.take_asked());
        assert_eq!((sidecar.is_verified(), denied(&sidecar, &members())), (verified, 0));
        assert!(sidecar.take_asked());
    }
}

#[test]
fn a_sidecar_gives_its_memory_back_with_its_last_owner_whoever_keeps_it() {
    let (case, maps) = (Case::new(BLOOM), few());
    for (residency, asked_before) in
        [(Residency::Mapped, true), (Residency::Mapped, false), (Residency::Pinned, true)]
    {
        let first = LiveSidecar::new(Sidecar::open(&maps, &case.path, &EXPECT, residency).unwrap());
        if asked_before {
            first.verify().unwrap();
        }
        let (kept, second) = (first.shared(), first.clone());
        drop(first);
        assert_eq!(denied(&kept, &members()[..usize::from(asked_before) * members().len()]), 0);
        drop(second);
        kept.ask(members()[0]); // Maps the file, unless it was probed before.
        let bytes = &kept.bytes.get().unwrap().map;
        assert!(!bytes.is_empty() && bytes.iter().all(|byte| *byte == 0), "{residency:?}, {asked_before}");
    }
}

#[test]
fn i1_a_file_that_changed_before_it_was_mapped_is_not_believed() {
    let (case, maps) = (Case::new(BLOOM), few());
    let sidecar = open(&case, &maps);
    let replaced = create(
        &RealFs,
        &case.path,
        &others()[1..members().len()],
        BLOOM,
        EXPECT.hasher,
        Some(EXPECT.binding),
        NO_PREFIXES,
    );
    assert!(replaced.is_ok());
    assert_eq!(denied(&sidecar, &members()), 0, "the new file denies them");
    assert!(sidecar.is_bad() && maps.take_condemned() && !maps.take_condemned());
    assert!(matches!(sidecar.verify(), Err(Unusable::Invalid { offset: 0, .. })));

    let sidecar = open(&case, &maps);
    fs::remove_file(&case.path).unwrap();
    assert_eq!(denied(&sidecar, &others()), 0);
    assert!(matches!(sidecar.verify(), Err(Unusable::Missing)));
    assert!(maps.take_condemned());
    assert_eq!(maps.mapped(), 0);
}
