//! `filters.tar.gz`: a filter of each kind in a file of its own, as it is sent, and the answers that it gave.

use crate::all_kinds::all_kinds;
use crate::archive::unpack;
use crate::support::{fast_dir, files_with};
use sidebloom::filter::{AnyFilter, Verdict};
use sidebloom::{MappedFilter, read_filter, receive_filter, send_filter, write_filter};
use std::collections::BTreeSet;
use std::path::Path;

pub const NAME: &str = "filters";
/// The filters' own keys are the first 500.
const ASKED: u64 = 5000;
const MEMBERS: usize = 500;
const KINDS: [&str; 6] = ["blocked-bloom", "bloom", "counting", "parity", "scalable", "small"];

/// One character for each key: `-` if it is absent.
fn answers(may_contain: impl Fn([u8; 8]) -> Verdict) -> String {
    let answer = |i: u64| if may_contain(i.to_le_bytes()) == Verdict::Absent { '-' } else { 'x' };
    (0..ASKED).map(answer).collect()
}

pub fn make(dir: &Path) {
    for (number, filter) in all_kinds().iter().enumerate() {
        let file = |ending: &str| dir.join(format!("{number:02}-{}.{ending}", filter.name()));
        write_filter(file("filter"), filter).unwrap();
        let mut sent = Vec::new();
        send_filter(filter, &mut sent).unwrap();
        std::fs::write(file("sent"), sent).unwrap();
        std::fs::write(file("answers"), answers(|key| filter.contains(key))).unwrap();
    }
}

pub fn check(release: &Path) {
    let dir = fast_dir();
    unpack(&release.join("filters.tar.gz"), dir.path());
    let mut kinds = BTreeSet::new();
    for path in files_with(dir.path(), ".filter") {
        let expected = std::fs::read_to_string(path.with_extension("answers")).unwrap();
        assert!(expected.starts_with(&"x".repeat(MEMBERS)) && expected.contains('-'), "{}", path.display());
        let sent = std::fs::read(path.with_extension("sent")).unwrap();
        let filters: [AnyFilter; 2] =
            [read_filter(&path).unwrap(), receive_filter(&mut &sent[..], 1 << 20).unwrap()];
        for filter in &filters {
            assert!(answers(|key| filter.contains(key)) == expected, "{}", path.display());
        }
        let mapped = MappedFilter::open(&path).unwrap();
        assert!(answers(|key| mapped.contains(key).unwrap()) == expected, "{}", path.display());
        kinds.insert(filters[0].name());
    }
    assert_eq!(kinds, BTreeSet::from(KINDS));
}
