//! Absurd numbers under valid checksums: lengths, counts, file numbers and sequence numbers at the ends of
//! their ranges. Answers may then be wrong. But nothing panics, every error has a name, and a repair gives a
//! store that opens, takes writes and is sound.

use super::extreme_facts;
use super::store::{Kind, Store, Victim};
use crate::support::{LogRecord, Rng, SimFs, put_varint};
use sidebloom::{Db, Error};
use std::fmt;

/// A changed file and the change.
#[derive(Debug)]
pub struct Extreme<'a> {
    victim: &'a Victim,
    how: String,
    bytes: Vec<u8>,
}

impl fmt::Display for Extreme<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.victim.path.display(), self.how)
    }
}

/// Prints what it was if the harness panics.
impl Drop for Extreme<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{self}");
        }
    }
}

fn number(rng: &mut Rng) -> u64 {
    let power = *rng.pick(&[16, 31, 32, 33, 40, 48, 56, 60, 61, 62, 63]);
    match rng.below(4) {
        0 => u64::MAX - rng.below(3),
        1 => rng.below(2),
        _ => (1u64 << power).wrapping_add(rng.below(3)).wrapping_sub(1),
    }
}

fn put(bytes: &mut [u8], at: usize, with: &[u8]) {
    bytes[at..at + with.len()].copy_from_slice(with);
}

fn put_crc(bytes: &mut [u8], from: usize, at: usize) {
    let crc = crc32fast::hash(&bytes[from..at]);
    put(bytes, at, &crc.to_le_bytes());
}

impl<'a> Extreme<'a> {
    /// `None` if the store has no such file.
    pub fn random(rng: &mut Rng, store: &'a Store) -> Option<Self> {
        let kind = *rng.pick(&[Kind::Manifest, Kind::Manifest, Kind::Log, Kind::Segment]);
        let victims = store.victims(kind);
        let victim = if victims.is_empty() { return None } else { rng.pick(victims) };
        let mut bytes = victim.target.bytes.to_vec();
        let how = match kind {
            Kind::Manifest if rng.percent(30) => added(rng, store, &mut bytes)?,
            Kind::Manifest => edit(rng, &mut bytes),
            Kind::Log => record(rng, victim, &mut bytes),
            _ if rng.percent(30) => {
                let number = number(rng);
                extreme_facts::expiry_in_block(rng, victim, number, &mut bytes)?
            }
            _ => footer(rng, &mut bytes),
        };
        Some(Extreme { victim, how, bytes })
    }

    pub fn check(&self, store: &Store, fs: &SimFs) {
        fs.write(&self.victim.path, self.bytes.clone());
        if let Some(db) = named(store.options(fs).read_only(true).open(&store.dir)) {
            store.universe.iter().for_each(|key| _ = named(db.get(key)));
            db.iter().for_each(|row| _ = named(row));
            _ = named(db.verify());
        }
        let report = store.options(fs).repair(&store.dir);
        let report = report.unwrap_or_else(|error| panic!("repair failed: {error}"));
        for round in ["first", "second"] {
            let opened = store.options(fs).open(&store.dir);
            let db = opened.unwrap_or_else(|error| panic!("{round} opening: {error}, after {report:?}"));
            works(&db);
        }
    }
}

fn works(db: &Db) {
    db.put(b"after the repair", b"new").unwrap();
    db.flush().unwrap();
    assert!(db.get(b"after the repair").unwrap().is_some());
    let problems = db.verify().unwrap().problems;
    assert!(problems.is_empty(), "after the repair: {problems:?}");
}

/// The value; `None` for an error that names a file.
fn named<T>(outcome: sidebloom::Result<T>) -> Option<T> {
    match outcome {
        Err(Error::Corruption { .. } | Error::UnsupportedVersion { .. } | Error::UnknownCode { .. }) => None,
        Err(Error::NotAStore { .. }) => None,
        outcome => Some(outcome.unwrap_or_else(|error| panic!("an error that names no file: {error}"))),
    }
}

/// Appends an edit with one enormous number.
fn edit(rng: &mut Rng, manifest: &mut Vec<u8>) -> String {
    let (field, number) = (*rng.pick(&[1, 3, 4, 4, 4, 6, 7, 7]), number(rng));
    let mut payload = vec![field];
    put_varint(&mut payload, number);
    if field == 6 {
        put_varint(&mut payload, 40);
        put_varint(&mut payload, rng.below(100));
    }
    append(manifest, payload);
    format!("an edit with {number} in field {field}")
}

/// Appends an edit that adds a segment again, with one enormous number in its facts.
fn added(rng: &mut Rng, store: &Store, manifest: &mut Vec<u8>) -> Option<String> {
    if store.segments.is_empty() {
        return None;
    }
    let id = rng.pick(&store.segments).id;
    let mut added = store.manifest.added.get(&id)?.clone();
    let (at, number) = (rng.below(added.numbers.len() as u64) as usize, number(rng));
    added.numbers[at] = number;
    let mut payload = vec![1];
    put_varint(&mut payload, id);
    payload.push(2);
    payload.extend(added.head);
    added.numbers.iter().for_each(|number| put_varint(&mut payload, *number));
    append(manifest, payload);
    Some(format!("{number} as number {at} of the facts of segment {id}"))
}

/// Appends an edit with these fields.
fn append(manifest: &mut Vec<u8>, mut payload: Vec<u8>) {
    payload.push(0xff);
    let tag = crc32fast::hash(&manifest[12..20]) | 0x0303_0303;
    let head = manifest.len();
    manifest.extend(tag.to_le_bytes());
    manifest.extend((payload.len() as u32).to_le_bytes());
    manifest.extend(crc32fast::hash(&payload).to_le_bytes());
    manifest.extend([0; 4]);
    put_crc(manifest, head, head + 12);
    manifest.extend(payload);
}

/// Changes a number of a record's head, or the first sequence number of the log.
fn record(rng: &mut Rng, victim: &Victim, log: &mut Vec<u8>) -> String {
    let number = number(rng);
    let record = rng.pick(&victim.records).bytes.clone();
    if record.start == 0 {
        put(log, 28, &number.to_le_bytes());
        put_crc(log, 0, 36);
        return format!("first sequence number {number}");
    }
    let mut changed = LogRecord::of(&log[record.clone()]);
    let which = rng.below(4) as usize;
    changed.numbers[which] = if which < 2 { number & u64::from(u32::MAX) } else { number };
    log.splice(record.clone(), changed.encode());
    format!("{number} as number {which} of the record at {}", record.start)
}

/// Changes a number of a segment's footer.
fn footer(rng: &mut Rng, segment: &mut [u8]) -> String {
    let (number, footer) = (number(rng), segment.len() - 56);
    let (at, width) = *rng.pick(&[(0, 8), (8, 8), (16, 8), (32, 4), (36, 4)]);
    put(segment, footer + at, &number.to_le_bytes()[..width]);
    put_crc(segment, footer, footer + 52);
    format!("{number} at {at} of the footer")
}
