mod groups;
mod holes;
mod prefixes;
mod refused;

use super::verify::Verification;
use super::*;
use crate::codec::crc32;
use crate::error::Error;
use crate::filter::format::groups::GROUP_BYTES;
use crate::filter::format::header::WRITES;
use crate::filter::format::{HEADER_BYTES, Header, StoredKind, StoredPrefixes};
use crate::filter::{BuiltFilter, FilterKind, FilterSpec, LINE_BYTES, PrefixSet, Verdict, Width};
use crate::fs::{Fs, RealFs};
use crate::hash::KeyHasher;
use crate::support::sized;
use proptest::prelude::*;
use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

const HASHER: KeyHasher = KeyHasher::siphash13([77, 78]);
const BINDING: Binding = Binding { segment: 12, digest: 0xd16e57 };
pub(super) const EXPECT: Expect = Expect { binding: BINDING, hasher: HASHER };
pub(super) const BLOOM: FilterSpec = FilterSpec::BlockedBloom { bits_per_key: 12.0 };
const PARITY: FilterSpec = FilterSpec::Parity { width: Width::Nine };
const KINDS: [FilterSpec; 2] = [BLOOM, PARITY];
const KEYS: u64 = 300;
pub(super) const NO_PREFIXES: StoredPrefixes = StoredPrefixes { set: PrefixSet::EMPTY, count: 0 };

/// A budget of 100 maps.
pub(super) fn maps() -> Arc<Maps> {
    Arc::new(Maps::new(Arc::new(RealFs), 100, Arc::default()))
}

pub(super) fn members() -> Vec<u64> {
    (0..KEYS).map(|i| HASHER.hash(&i.to_le_bytes())).collect()
}

pub(super) fn others() -> Vec<u64> {
    (KEYS..10 * KEYS).map(|i| HASHER.hash(&i.to_le_bytes())).collect()
}

/// A directory with one good sidecar in it.
pub(super) struct Case {
    dir: tempfile::TempDir,
    pub path: PathBuf,
}

impl Case {
    pub fn new(spec: FilterSpec) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("000012.filter");
        let bytes = create(&RealFs, &path, &members(), spec, HASHER, Some(BINDING), NO_PREFIXES).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().len(), bytes);
        Case { dir, path }
    }

    pub fn bytes(&self) -> Vec<u8> {
        fs::read(&self.path).unwrap()
    }

    /// Replaces the file's bytes. It must not be mapped.
    pub fn with(&self, bytes: &[u8]) -> &Self {
        fs::write(&self.path, bytes).unwrap();
        self
    }

    fn open(&self) -> Result<Sidecar, Unusable> {
        self.open_as(Residency::Mapped)
    }

    fn open_as(&self, residency: Residency) -> Result<Sidecar, Unusable> {
        Sidecar::open(&maps(), &self.path, &EXPECT, residency)
    }

    /// Opens and verifies like a store. No member may be denied at all, whatever happened to the file.
    fn used(&self) -> Result<Sidecar, Unusable> {
        for order in [Residency::Pinned, Residency::Mapped] {
            let sidecar = self.open_as(order)?;
            let verified = sidecar.verify();
            assert_eq!(denied(&sidecar, &members()), 0, "verified first");
            assert!(verified.is_ok() || denied(&sidecar, &others()) == 0, "denied by a bad sidecar");
        }
        let sidecar = self.open()?;
        assert_eq!(denied(&sidecar, &members()), 0, "before verification");
        let verified = sidecar.verify();
        assert_eq!(denied(&sidecar, &members()), 0, "after verification");
        if verified.is_err() {
            assert!(!sidecar.is_verified());
            assert_eq!(denied(&sidecar, &others()), 0, "nothing is denied after a failed verification");
            assert!(sidecar.verify().is_err(), "a bad sidecar stays bad");
        }
        verified.map(|_| sidecar)
    }
}

pub(super) fn denied(sidecar: &Sidecar, hashes: &[u64]) -> usize {
    hashes
        .iter()
        .filter(|&&hash| {
            sidecar.prefetch(hash);
            sidecar.probe(hash) == Verdict::Absent
        })
        .count()
}

/// Gives a changed header a valid checksum, to reach the checks after it.
fn with_header_byte(mut bytes: Vec<u8>, at: usize, value: u8) -> Vec<u8> {
    bytes[at] = value;
    let crc = crc32(&[&bytes[..HEADER_BYTES - 4]]);
    bytes[HEADER_BYTES - 4..HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
    bytes
}

#[test]
fn i1_a_good_sidecar_denies_others_once_verified_and_never_a_member() {
    for spec in KINDS {
        for residency in [Residency::Mapped, Residency::Pinned] {
            let case = Case::new(spec);
            let sidecar = case.open_as(residency).unwrap();
            assert_eq!(sidecar.verify().unwrap(), Verification::Verified);
            assert_eq!(sidecar.verify().unwrap(), Verification::Verified);
            assert_eq!(denied(&sidecar, &members()), 0);
            assert!(denied(&sidecar, &others()) as f64 > 0.98 * others().len() as f64);
        }
    }
}

#[test]
fn what_was_written_is_what_the_accessors_say() {
    let case = Case::new(BLOOM);
    let sidecar = case.open().unwrap();
    assert_eq!(
        (sidecar.facts().unwrap().keys(), sidecar.facts().unwrap().kind().name()),
        (KEYS, "blocked-bloom-k8".to_owned())
    );
    assert_eq!(sidecar.facts().unwrap().filter_bytes(), sidecar.facts().unwrap().lines() * LINE_BYTES as u64);
    let bits_per_key =
        8.0 * sidecar.facts().unwrap().filter_bytes() as f64 / sidecar.facts().unwrap().keys() as f64;
    assert!((12.0..14.0).contains(&bits_per_key), "{bits_per_key}");
}

/// The stored rate is the filter's, and anything that is not a rate is refused.
#[test]
fn the_stored_rate_is_that_of_the_filter_and_must_be_a_rate() {
    for spec in KINDS {
        let case = Case::new(spec);
        let whole = case.bytes();
        let rate = case.open().unwrap().facts().unwrap().expected_fpr();
        assert_eq!(rate, BuiltFilter::build(spec, &members()).unwrap().expected_fpr());
        assert!((0.0001..0.006).contains(&rate), "{rate}");
        let header = Header::decode(&whole).unwrap();
        for expected_fpr in [-0.001, 1.001, f64::INFINITY, f64::NAN] {
            // The encoder asks the decoder.
            let refused = Header { expected_fpr, ..header }.encode().unwrap_err();
            assert!(format!("{refused}").contains("offset 104: invalid false-positive rate"), "{refused}");
        }
    }
}

#[test]
fn i1_a_missing_or_empty_or_foreign_file_is_unusable() {
    let case = Case::new(BLOOM);
    fs::remove_file(&case.path).unwrap();
    assert!(matches!(case.used(), Err(Unusable::Missing)));
    for bytes in [vec![], vec![0; 10], vec![0; HEADER_BYTES], vec![0; 10_000], b"segment!".repeat(1000)] {
        let used = Case::new(BLOOM).with(&bytes).used();
        assert!(matches!(used, Err(Unusable::Invalid { .. })), "{} bytes", bytes.len());
    }
    let case = Case::new(BLOOM);
    let directory = Sidecar::open(&maps(), case.dir.path(), &EXPECT, Residency::Mapped);
    assert!(matches!(directory, Err(Unusable::Io(_))));
}

#[test]
fn i1_a_file_cut_or_grown_by_anything_is_unusable() {
    let case = Case::new(BLOOM);
    let whole = case.bytes();
    let boundaries = [1, 8, 12, 64, HEADER_BYTES - 4, HEADER_BYTES, HEADER_BYTES + LINE_BYTES];
    let near_boundaries = boundaries.iter().flat_map(|&b| [b - 1, b, b + 1]);
    let near_the_end = (1..=LINE_BYTES + 9).map(|n| whole.len() - n);
    for len in near_boundaries.chain(near_the_end) {
        assert!(
            matches!(case.with(&whole[..len]).open(), Err(Unusable::Invalid { .. })),
            "cut to {len} bytes"
        );
    }
    for more in [1, 8, LINE_BYTES, HEADER_BYTES] {
        let grown = [&whole[..], &vec![0; more]].concat();
        assert!(matches!(case.with(&grown).open(), Err(Unusable::Invalid { .. })), "{more} more");
    }
}

#[test]
fn i1_every_flipped_bit_of_the_header_page_makes_it_unusable() {
    for spec in KINDS {
        let page = &mut Case::new(spec).bytes()[..HEADER_BYTES];
        assert!(Header::decode(page).is_ok());
        for bit in 0..8 * HEADER_BYTES {
            page[bit / 8] ^= 1 << (bit % 8);
            assert!(Header::decode(page).is_err(), "bit {bit}");
            page[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

#[test]
fn i1_every_header_byte_is_checked_even_under_a_right_checksum() {
    for spec in KINDS {
        let case = Case::new(spec);
        let whole = case.bytes();
        // Nothing else depends on `keys` and the expected rate. The number of lines is checked against the
        // length of the file.
        let checked = (0..HEADER_BYTES - 4).filter(|at| !(24..32).contains(at) && !(104..112).contains(at));
        for at in checked {
            let changed = with_header_byte(whole.clone(), at, whole[at] ^ 0x40);
            let refused = Header::decode(&changed).is_err() || case.with(&changed).used().is_err();
            assert!(refused, "byte {at}");
        }
        for kind in [0, 1, 2] {
            let invalid = Header::decode(&with_header_byte(whole.clone(), 12, kind)).unwrap_err();
            assert!(format!("{invalid:?}").contains(&format!("invalid filter kind {kind}")), "{invalid:?}");
        }
        for k_or_lanes in [0, 17, 255] {
            assert!(Header::decode(&with_header_byte(whole.clone(), 64, k_or_lanes)).is_err());
        }
    }
}

#[test]
fn i1_a_flipped_bit_of_lines_or_checksums_means_maybe_for_ever() {
    for spec in KINDS {
        let case = Case::new(spec);
        let whole = case.bytes();
        for at in (HEADER_BYTES..whole.len()).step_by(sized(5, 1)) {
            let mut flipped = whole.clone();
            flipped[at] ^= 1 << (at % 8);
            assert!(matches!(case.with(&flipped).used(), Err(Unusable::Invalid { .. })), "byte {at}");
        }
    }
}

/// A mapped sidecar denies from the first probe; a pinned one only after its copy is verified.
#[test]
fn a_mapped_sidecar_denies_at_once_a_pinned_one_once_it_is_verified() {
    for spec in KINDS {
        let case = Case::new(spec);
        let [mapped, pinned] =
            [Residency::Mapped, Residency::Pinned].map(|residency| case.open_as(residency).unwrap());
        assert!(!mapped.is_verified() && !pinned.is_verified());
        assert!(denied(&mapped, &others()) as f64 > 0.98 * others().len() as f64);
        assert_eq!((denied(&mapped, &members()), denied(&pinned, &others())), (0, 0));
        assert_eq!(pinned.ask(others()[0]), None, "it knows nothing");
    }
}

#[test]
fn a_pinned_sidecar_that_is_cut_after_opening_is_an_error_and_no_signal() {
    for left in [0, 100, HEADER_BYTES, HEADER_BYTES + 100] {
        let case = Case::new(BLOOM);
        let sidecar = case.open_as(Residency::Pinned).unwrap();
        case.with(&case.bytes()[..left]);
        assert!(matches!(sidecar.verify(), Err(Unusable::Invalid { .. })), "{left} bytes left");
        assert_eq!(denied(&sidecar, &others()), 0);
    }
}

/// The offsets of a group's lines and of its checksum.
type Group = [Range<usize>; 2];

#[test]
fn i1_the_sidecar_of_another_segment_or_hash_or_store_is_not_believed() {
    let case = Case::new(BLOOM);
    let open = |expect| Sidecar::open(&maps(), &case.path, &expect, Residency::Mapped);
    let other_id = Binding { segment: 13, ..BINDING };
    let other_digest = Binding { digest: 1, ..BINDING };
    for binding in [other_id, other_digest] {
        let refused = open(Expect { binding, hasher: HASHER });
        assert!(matches!(refused, Err(Unusable::NotOfThisSegment { .. })), "{binding:?}");
    }
    for hasher in [KeyHasher::siphash13([77, 79]), KeyHasher::siphash13([76, 78]), KeyHasher::from(77)] {
        let refused = open(Expect { binding: BINDING, hasher });
        assert!(matches!(refused, Err(Unusable::OtherHash)));
    }
}

#[test]
fn i1_levels_that_do_not_add_up_are_refused_even_under_a_right_checksum() {
    let whole = Case::new(PARITY).bytes();
    let header = Header::decode(&whole).unwrap();
    let StoredKind::Lines(FilterKind::Parity { width, levels }, hasher) = header.kind else { unreachable!() };
    let total: u32 = levels.iter().sum();
    for levels in [[0; 7], [0, total, 0, 0, 0, 0, 0], [total - 1, 0, 1, 0, 0, 0, 0], [u32::MAX; 7]] {
        let kind = StoredKind::Lines(FilterKind::Parity { width, levels }, hasher);
        // The encoder asks the decoder.
        let refused = Header { kind, ..header }.encode();
        assert!(matches!(refused, Err(crate::filter::Error::Unencodable { .. })), "{levels:?}");
    }
}

#[test]
fn a_stand_alone_filter_serves_no_segment() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("songs.filter");
    create(&RealFs, &path, &members(), BLOOM, HASHER, None, NO_PREFIXES).unwrap();
    let refused = Sidecar::open(&maps(), &path, &EXPECT, Residency::Mapped);
    assert!(matches!(refused, Err(Unusable::NotOfThisSegment { .. })));
}

/// Another version is refused as such; a damaged version field is damage.
#[test]
fn another_version_is_refused_by_name_a_damaged_one_as_damage() {
    let case = Case::new(BLOOM);
    let whole = case.bytes();
    for other in [1, 2, 3, WRITES as u8 + 1] {
        let used = case.with(&with_header_byte(whole.clone(), 8, other)).used();
        assert!(matches!(used, Err(Unusable::OtherVersion { found, .. }) if found == u32::from(other)));
    }
    let mut damaged = whole;
    damaged[8] += 1;
    assert!(matches!(case.with(&damaged).used(), Err(Unusable::Invalid { .. })));
}

#[test]
fn writing_replaces_by_rename_and_clears_a_stale_temporary() {
    let case = Case::new(BLOOM);
    let old = case.used().unwrap();
    fs::write(case.path.with_extension("filter.tmp"), b"left by a crash").unwrap();
    create(&RealFs, &case.path, &others(), BLOOM, HASHER, Some(BINDING), NO_PREFIXES).unwrap();
    assert_eq!(denied(&old, &members()), 0, "the old map still serves");
    let new = case.open().unwrap();
    new.verify().unwrap();
    assert_eq!((denied(&new, &others()), new.facts().unwrap().keys()), (0, others().len() as u64));
    assert_eq!(RealFs.list(case.dir.path()).unwrap(), ["000012.filter"]);
}

#[test]
fn absurd_sizes_are_refused_and_leave_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    let spec = FilterSpec::BlockedBloom { bits_per_key: 1e12 };
    let refused = create(&RealFs, &path, &members(), spec, HASHER, None, NO_PREFIXES);
    assert!(matches!(refused, Err(Error::InvalidArgument(_))));
    assert!(RealFs.list(dir.path()).unwrap().is_empty());
}

#[test]
fn i1_threads_that_verify_at_once_agree_and_none_is_denied_a_member() {
    let case = Case::new(BLOOM);
    let sidecar = case.open().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                sidecar.verify().unwrap();
                assert_eq!(denied(&sidecar, &members()), 0);
            });
        }
    });
    assert!(sidecar.is_verified());
}

proptest! {
    #[test]
    fn i1_no_random_damage_ever_denies_a_member(
        spec in prop::sample::select(&KINDS[..]),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), 1usize..200, any::<u8>()), 1..4),
        cut in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        let case = Case::new(spec);
        let whole = case.bytes();
        let mut bytes = whole.clone();
        for (at, len, value) in damage {
            let at = at.index(bytes.len());
            let end = (at + len).min(bytes.len());
            bytes[at..end].fill(value);
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let unchanged = bytes == whole;
        prop_assert_eq!(case.with(&bytes).used().is_ok(), unchanged);
    }
}
