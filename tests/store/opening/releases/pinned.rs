//! Committed files of formats change by intent only.

use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::Path;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures");
/// The folders of fixtures that hold what a build has written.
const WRITTEN: [&str; 2] = ["golden", "releases"];

/// The SHA-256 of each file below a folder of the fixtures.
fn sums_below(folder: &str, sums: &mut BTreeMap<String, String>) {
    for entry in Path::new(FIXTURES).join(folder).read_dir().unwrap() {
        let entry = entry.unwrap();
        let name = format!("{folder}/{}", entry.file_name().into_string().unwrap());
        if entry.path().is_dir() {
            sums_below(&name, sums);
        } else {
            let sum = Sha256::digest(std::fs::read(entry.path()).unwrap());
            sums.insert(name, sum.iter().map(|byte| format!("{byte:02x}")).collect());
        }
    }
}

/// `cd fixtures && find golden releases -type f | LC_ALL=C sort | xargs sha256sum > SHA256SUMS` writes the
/// sums anew. Files of a release that is out never change.
#[test]
fn i14_fixtures_are_those_whose_sums_are_committed() {
    let mut found = BTreeMap::new();
    WRITTEN.iter().for_each(|folder| sums_below(folder, &mut found));
    let sums = std::fs::read_to_string(Path::new(FIXTURES).join("SHA256SUMS")).unwrap();
    let pinned: BTreeMap<_, _> =
        sums.lines().filter_map(|line| line.split_once("  ")).map(|(sum, name)| (name, sum)).collect();
    for (name, sum) in &found {
        let expected = pinned.get(&**name);
        assert_eq!(expected, Some(&&**sum), "{name} differs from fixtures/SHA256SUMS: docs/releasing.md");
    }
    for name in pinned.into_keys() {
        assert!(found.contains_key(name), "{name} is missing");
    }
}
