//! What a store may hold: for each source, the rows of one number.

use crate::support::Rng;
use sidebloom::Range;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The arguments of a child.
#[derive(Debug, Clone, clap::Args)]
pub struct ChildArgs {
    pub dir: PathBuf,
    pub seed: u64,
}

/// Threads that write batches, plus one source whose rows are ingested.
pub const WRITERS: usize = 3;
pub const SOURCES: usize = WRITERS + 1;
pub const INGESTED: usize = WRITERS;
pub const KEYS: usize = 40;

/// For each source, the number of its last batch started, and of the last one acknowledged, in a file that
/// outlives the processes.
pub struct Numbers(File);

impl Numbers {
    pub fn create(dir: &Path) {
        std::fs::write(dir.join("numbers"), [0; 16 * SOURCES]).unwrap();
    }

    pub fn open(dir: &Path) -> Self {
        Numbers(File::options().read(true).write(true).open(dir.join("numbers")).unwrap())
    }

    fn get(&self, at: usize) -> u64 {
        let mut bytes = [0; 8];
        self.0.read_exact_at(&mut bytes, 8 * at as u64).unwrap();
        u64::from_le_bytes(bytes)
    }

    fn set(&self, at: usize, number: u64) {
        self.0.write_all_at(&number.to_le_bytes(), 8 * at as u64).unwrap();
    }

    pub fn started(&self, source: usize) -> u64 {
        self.get(2 * source)
    }

    pub fn acknowledged(&self, source: usize) -> u64 {
        self.get(2 * source + 1)
    }

    pub fn set_started(&self, source: usize, number: u64) {
        self.set(2 * source, number);
    }

    pub fn set_acknowledged(&self, source: usize, number: u64) {
        self.set(2 * source + 1, number);
    }
}

/// The keys of the sources lie between each other.
pub fn key(source: usize, key: usize) -> Vec<u8> {
    match (source, key) {
        (0, 1) => Vec::new(),
        (1, 1) => vec![0xff; 8],
        (2, 2) => vec![b'p'; 3000],
        _ => format!("key{key:03}/{source}").into_bytes(),
    }
}

/// A key's value at a number; `None` if deleted then. Key 0 always exists; values start with the number.
pub fn value(source: usize, key: usize, number: u64) -> Option<Vec<u8>> {
    let mut rng = Rng::new(number << 16 | (source << 8 | key) as u64);
    if number == 0 || key > 0 && source != INGESTED && rng.percent(25) {
        return None;
    }
    let len = if rng.percent(2) { rng.below(5000) } else { rng.below(50) };
    let noise = (0..len).map(|at| if at % 16 < 8 { rng.next() as u8 } else { b'v' });
    Some(number.to_be_bytes().into_iter().chain(noise).collect())
}

/// The number that a value begins with.
pub fn number_of(value: &[u8]) -> u64 {
    value.first_chunk().map_or(0, |number| u64::from_be_bytes(*number))
}

/// The rows of one number of each source.
pub fn rows_of(numbers: [u64; SOURCES]) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let all = numbers.into_iter().enumerate().flat_map(|(source, number)| {
        (0..KEYS).filter_map(move |index| Some((key(source, index), value(source, index, number)?)))
    });
    all.collect()
}

/// Checks that iterating over a whole store shows the rows of one number of each source, none below `least`.
/// Returns the numbers.
pub fn check(rows: Range, least: [u64; SOURCES]) -> Result<[u64; SOURCES], String> {
    let mut found = BTreeMap::new();
    for row in rows {
        let (key, value) = row.map_err(|e| e.to_string())?;
        found.insert(key, value.to_vec());
    }
    let numbers: [u64; SOURCES] =
        std::array::from_fn(|source| found.get(&key(source, 0)).map_or(0, |value| number_of(value)));
    for (source, (number, least)) in numbers.into_iter().zip(least).enumerate() {
        if number < least {
            return Err(format!("source {source} shows number {number}, older than {least}"));
        }
    }
    let expected = rows_of(numbers);
    if found == expected {
        return Ok(numbers);
    }
    let differs = |key: &&Vec<u8>| found.get(*key) != expected.get(*key);
    let key = found.keys().chain(expected.keys()).find(differs).cloned().unwrap_or_default();
    let show =
        |value: Option<&Vec<u8>>| value.map_or("nothing".into(), |v| format!("number {}", number_of(v)));
    Err(format!(
        "at numbers {numbers:?}, key {:.40} must be {}, but is {}",
        key.escape_ascii().to_string(),
        show(expected.get(&key)),
        show(found.get(&key))
    ))
}
