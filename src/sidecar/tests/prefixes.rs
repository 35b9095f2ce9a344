use super::*;
use crate::filter::{PrefixExtractor, PrefixQuery};
use std::ops::Bound;

fn key(i: u64) -> Vec<u8> {
    format!("{i:03}/{i}").into_bytes()
}

fn set(extractors: &[PrefixExtractor]) -> PrefixSet {
    PrefixSet::new(extractors.iter().copied()).unwrap()
}

fn query(set: PrefixSet, prefix: &[u8]) -> PrefixQuery {
    let end = [prefix, b"\xff"].concat();
    PrefixQuery::new(&set, &HASHER, 0, Bound::Included(prefix), Bound::Excluded(&end)).unwrap()
}

/// A sidecar of every second key, with their first three bytes.
fn with_prefixes(spec: FilterSpec) -> Case {
    let mut members = Members::new(set(&[PrefixExtractor::fixed(3)]), HASHER);
    (0..1000).step_by(2).for_each(|i| members.add(&key(i), HASHER.hash(&key(i))));
    assert_eq!((members.hashes().len(), members.prefixes().count), (1000, 500));
    let case = Case::new(spec);
    create(&RealFs, &case.path, members.hashes(), spec, HASHER, Some(BINDING), members.prefixes()).unwrap();
    case
}

#[test]
fn i1_a_sidecar_has_every_prefix_of_its_keys_and_denies_most_others() {
    let fixed = set(&[PrefixExtractor::fixed(3)]);
    for (spec, residency) in KINDS.into_iter().zip([Residency::Mapped, Residency::Pinned]) {
        let case = with_prefixes(spec);
        let sidecar = case.open_as(residency).unwrap();
        for verified in [false, true] {
            if verified {
                sidecar.verify().unwrap();
            }
            let ask = |i: u64| sidecar.ask_prefix(&query(fixed, &key(i)[..3]));
            assert!((0..1000).step_by(2).all(|i| ask(i) != Some(Verdict::Absent)));
            let denied = (1..1000).step_by(2).filter(|i| ask(*i) == Some(Verdict::Absent)).count();
            assert!(if verified || residency == Residency::Mapped { denied > 480 } else { denied == 0 });
        }
        let bare = |i: u64| sidecar.ask(HASHER.hash(&key(i)[..3]));
        assert!((0..1000).filter(|i| bare(*i) == Some(Verdict::Absent)).count() > 960, "they are no keys");
    }
}

#[test]
fn i1_a_sidecar_knows_nothing_of_prefixes_by_other_extractors() {
    let case = with_prefixes(PARITY);
    let sidecar = case.open().unwrap();
    let others = [PrefixExtractor::fixed(4), PrefixExtractor::delimited(b'/', 1)];
    for (i, other) in (0..200).flat_map(|i| others.map(|other| (i, other))) {
        assert_eq!(sidecar.ask_prefix(&query(set(&[other]), &key(i)[..4])), None);
        let both = query(set(&[other, PrefixExtractor::fixed(3)]), &key(i)[..4]);
        assert_eq!(
            sidecar.ask_prefix(&both),
            sidecar.ask_prefix(&query(set(&[PrefixExtractor::fixed(3)]), &key(i)[..3]))
        );
    }
}

#[test]
fn impossible_prefixes_in_a_header_are_refused() {
    let case = with_prefixes(BLOOM);
    let whole = case.bytes();
    let with = |changes: &[(usize, u64)]| {
        let mut bytes = whole.clone();
        changes.iter().for_each(|(at, word)| bytes[*at..at + 8].copy_from_slice(&word.to_le_bytes()));
        let crc = crc32(&[&bytes[..HEADER_BYTES - 4]]);
        bytes[HEADER_BYTES - 4..HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
        Header::decode(&bytes)
    };
    let [two, three] = [2, 3].map(|n| PrefixExtractor::fixed(n).code());
    assert!(with(&[]).is_ok() && with(&[(120, two), (128, three)]).is_ok());
    for changes in [
        &[(112, 1001)][..],          // more than keys
        &[(120, 0)],                 // prefixes without an extractor
        &[(120, 1 << 8)],            // no rule
        &[(120, three & 0xff)],      // no bytes
        &[(128, three)],             // twice
        &[(120, three), (128, two)], // not in order
        &[(128, two)],               // not in order
        &[(120, 0), (128, three)],   // a gap
        &[(184, 1)],                 // beyond the last
    ] {
        assert!(matches!(with(changes), Err(crate::filter::Error::Damaged { .. })), "{changes:?}");
    }
}

#[test]
fn a_filter_that_stands_alone_has_no_prefixes() {
    let case = with_prefixes(BLOOM);
    let header = Header::decode(&case.bytes()).unwrap();
    // The encoder asks the decoder.
    let refused = Header { binding: None, ..header }.encode().unwrap_err();
    let crate::filter::Error::Unencodable { why } = refused else { panic!("{refused}") };
    assert!(why.contains("offset 112"), "{why}");
}
