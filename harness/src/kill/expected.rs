//! What a store should hold, in a file that survives the death of the process: a write is complete once the
//! kernel has it.
//!
//! For each writer, the number of its last batch. For each key, two numbers: of the last batch that may have
//! written it, and of the last one acknowledged. A number determines the keys of a batch and their values. A
//! writer writes one batch at a time, so at most one is in doubt.
//!
//! For checkpoints, also the state when the store was opened, and each writer's last batch acknowledged
//! before the last checkpoint began: a checkpoint holds that batch, and perhaps later ones.

use crate::support::Rng;
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Writers, and keys of each.
pub const WRITERS: usize = 3;
pub const KEYS: usize = 60;
/// Rows that the first child may ingest.
pub const INGESTED: usize = 200;

const NUMBERS_AT: u64 = 8;
const RECORDS_AT: u64 = NUMBERS_AT + 8 * WRITERS as u64;
const OPENED_AT: u64 = RECORDS_AT + 16 * (WRITERS * KEYS) as u64;
const COPIED_AT: u64 = OPENED_AT + 8 * (WRITERS * (1 + KEYS)) as u64;
const LEN: u64 = COPIED_AT + 8 * WRITERS as u64;

/// Whether the rows were ingested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ingest {
    No,
    Pending,
    Done,
}

/// Of one key: 0 stands for the state before the first batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    pub pending: u64,
    pub acknowledged: u64,
}

pub struct Expected(File);

impl Expected {
    pub fn create(path: &Path) -> io::Result<()> {
        std::fs::write(path, vec![0; LEN as usize])
    }

    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Expected(File::options().read(true).write(true).open(path)?))
    }

    fn get<const N: usize>(&self, at: u64) -> [u64; N] {
        let mut bytes = vec![0; 8 * N];
        self.0.read_exact_at(&mut bytes, at).unwrap();
        let mut numbers = bytes.chunks_exact(8).map(|number| u64::from_le_bytes(number.try_into().unwrap()));
        std::array::from_fn(|_| numbers.next().unwrap())
    }

    fn u64_at(&self, at: u64) -> u64 {
        let [number] = self.get(at);
        number
    }

    fn set(&self, at: u64, numbers: &[u64]) {
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        self.0.write_all_at(&bytes, at).unwrap();
    }

    pub fn ingest(&self) -> Ingest {
        match self.u64_at(0) {
            0 => Ingest::No,
            1 => Ingest::Pending,
            _ => Ingest::Done,
        }
    }

    pub fn set_ingest(&self, ingest: Ingest) {
        self.set(0, &[ingest as u64]);
    }

    pub fn last_number(&self, writer: usize) -> u64 {
        self.u64_at(NUMBERS_AT + 8 * writer as u64)
    }

    pub fn set_last_number(&self, writer: usize, number: u64) {
        self.set(NUMBERS_AT + 8 * writer as u64, &[number]);
    }

    fn at(writer: usize, key: usize) -> u64 {
        RECORDS_AT + 16 * (writer * KEYS + key) as u64
    }

    pub fn record(&self, writer: usize, key: usize) -> Record {
        let [pending, acknowledged] = self.get(Self::at(writer, key));
        Record { pending, acknowledged }
    }

    pub fn set_record(&self, writer: usize, key: usize, record: Record) {
        self.set(Self::at(writer, key), &[record.pending, record.acknowledged]);
    }

    /// For each key, the number of the last acknowledged batch that wrote it.
    fn acknowledged(&self, writer: usize) -> [u64; KEYS] {
        let records: [u64; 2 * KEYS] = self.get(Self::at(writer, 0));
        std::array::from_fn(|key| records[2 * key + 1])
    }

    /// Notes the state of the open store, before anything is written. No batch is in doubt.
    pub fn note_opened(&self) {
        for writer in 0..WRITERS {
            let numbers = [&[self.last_number(writer)][..], &self.acknowledged(writer)].concat();
            self.set(OPENED_AT + 8 * (writer * (1 + KEYS)) as u64, &numbers);
        }
    }

    /// The number of the last batch before the store was opened, and of the batch that wrote each key.
    pub fn opened(&self, writer: usize) -> (u64, [u64; KEYS]) {
        let at = OPENED_AT + 8 * (writer * (1 + KEYS)) as u64;
        (self.u64_at(at), self.get(at + 8))
    }

    /// By writer, its last acknowledged batch.
    pub fn last_acknowledged(&self) -> Vec<u64> {
        (0..WRITERS).map(|writer| self.acknowledged(writer).into_iter().max().unwrap_or(0)).collect()
    }

    /// Notes that a checkpoint begins.
    pub fn note_copied(&self) {
        self.set(COPIED_AT, &self.last_acknowledged());
    }

    /// The last batch that was acknowledged before the last checkpoint began.
    pub fn copied(&self, writer: usize) -> u64 {
        self.u64_at(COPIED_AT + 8 * writer as u64)
    }
}

/// The keys that batch `number` writes.
pub fn keys_of(writer: usize, number: u64) -> BTreeSet<usize> {
    let mut rng = Rng::new(number << 16 | (writer as u64) << 8 | 0xff);
    let len = *rng.pick(&[1, 1, 1, 3, 12]);
    (0..len).map(|_| rng.below(KEYS as u64) as usize).collect()
}

/// The keys of the writers interleave. Some are hostile.
pub fn key(writer: usize, key: usize) -> Vec<u8> {
    match (writer, key) {
        (0, 0) => Vec::new(),
        (1, 0) => vec![0xff; 8],
        (_, 1) => [vec![b'p'; 3000], vec![writer as u8]].concat(),
        _ => format!("key{key:03}/{writer}").into_bytes(),
    }
}

/// What batch `number` writes to a key; `None` for a deletion. Begins with the number.
pub fn value(writer: usize, key: usize, number: u64) -> Option<Vec<u8>> {
    let mut rng = Rng::new(number << 16 | (writer << 8 | key) as u64);
    if number == 0 || rng.percent(20) {
        return None;
    }
    let len = match rng.below(100) {
        0 => rng.below(20_000),
        1..=4 => rng.below(3000),
        _ => rng.below(60),
    };
    let noise = (0..len).map(|at| if at % 16 < 8 { rng.next() as u8 } else { b'v' });
    Some(number.to_be_bytes().into_iter().chain(noise).collect())
}

pub fn ingested(row: usize) -> (Vec<u8>, Vec<u8>) {
    (format!("ingested{row:04}").into_bytes(), vec![row as u8; row % 80])
}
