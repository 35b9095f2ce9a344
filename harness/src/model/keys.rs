//! The keys and values of a program: few keys, so that they are often overwritten, and hostile ones.

use super::blob::Blob;
use crate::support::Rng;
use sidebloom::MAX_KEY_BYTES;
use std::ops::Range;

/// The keys of a program, sorted and distinct, and where it currently writes.
#[derive(Debug)]
pub struct Keys {
    keys: Vec<Blob>,
    focus: Range<usize>,
    /// The percentage of writes to other places. At 0, memtables leave gaps between their keys.
    stray: u64,
}

impl Keys {
    pub fn random(rng: &mut Rng) -> Self {
        let mut keys: Vec<Vec<u8>> = Vec::new();
        for _ in 0..1 + rng.below(4) {
            family(rng, &mut keys);
        }
        keys.sort_unstable();
        keys.dedup();
        let focus = 0..keys.len();
        Keys { keys: keys.into_iter().map(Blob::from).collect(), focus, stray: *rng.pick(&[0, 0, 30, 30]) }
    }

    /// Moves the part of the key space with most writes, so that other parts have old entries and gaps.
    pub fn refocus(&mut self, rng: &mut Rng) {
        let from = rng.below(self.keys.len() as u64) as usize;
        let to = (from + 1 + rng.below(80) as usize).min(self.keys.len());
        self.focus = from..to;
    }

    pub fn len(&self) -> usize {
        self.keys.len()
    }

    pub fn at(&self, at: usize) -> Blob {
        self.keys[at % self.keys.len()].clone()
    }

    /// The index of a key to write to.
    pub fn index(&self, rng: &mut Rng) -> usize {
        let range = if rng.percent(self.stray) { 0..self.keys.len() } else { self.focus.clone() };
        range.start + rng.below(range.len() as u64) as usize
    }

    /// A key to write to.
    pub fn pick(&self, rng: &mut Rng) -> Blob {
        self.at(self.index(rng))
    }

    /// A key to look up: one of the keys, or one next to it.
    pub fn near(&self, rng: &mut Rng) -> Blob {
        let any = rng.below(self.keys.len() as u64) as usize;
        let key = if rng.percent(30) { self.at(any) } else { self.pick(rng) };
        if rng.percent(70) {
            return key;
        }
        let mut bytes = key.to_vec();
        match rng.below(4) {
            0 if bytes.len() < MAX_KEY_BYTES => bytes.push(0),
            1 => _ = bytes.pop(),
            2 => {
                if let Some(last) = bytes.last_mut() {
                    *last ^= 1;
                }
            }
            _ => bytes.truncate(rng.below(bytes.len() as u64 + 1) as usize),
        }
        bytes.into()
    }
}

/// Adds keys of one kind.
fn family(rng: &mut Rng, keys: &mut Vec<Vec<u8>>) {
    let count = 5 + rng.below(100);
    let step = *rng.pick(&[1, 1, 3, 1000]);
    let random = |rng: &mut Rng, len: u64| (0..len).map(|_| rng.next() as u8).collect::<Vec<u8>>();
    match rng.below(80) {
        0..=19 => keys.extend((0..count).map(|i| format!("key{:05}", i * step).into_bytes())),
        20..=29 => keys.extend((0..count).map(|i| (i * step).to_be_bytes().to_vec())),
        // Long shared prefixes, which exceed a small block.
        30..=39 => {
            let prefix = vec![b'p'; *rng.pick(&[20, 20, 20, 300, 300, 2000])];
            let count = count.min(10_000 / prefix.len() as u64);
            keys.extend((0..count).map(|i| [prefix.as_slice(), &(i * step).to_be_bytes()[6..]].concat()));
        }
        // Each one is a prefix of the next.
        40..=49 => keys.extend((0..count).map(|i| vec![b'a'; i as usize])),
        // Zero bytes, and 0xff, which has no successor.
        50..=59 => {
            keys.extend((0..count.min(40)).map(|i| vec![0; i as usize]));
            keys.extend((0..count.min(40)).map(|i| vec![0xff; i as usize]));
        }
        // Pairs that differ in the last bit.
        60..=69 => {
            for _ in 0..count / 2 {
                let len = 1 + rng.below(20);
                let mut key = random(rng, len);
                keys.push(key.clone());
                if let Some(last) = key.last_mut() {
                    *last ^= 1;
                }
                keys.push(key);
            }
        }
        70..=78 => {
            for _ in 0..count {
                let len = rng.below(40);
                keys.push(random(rng, len));
            }
        }
        // The largest keys, rarely, since they take most of the time.
        _ => {
            let mut key = vec![*rng.pick(&[0, b'm', 0xff]); MAX_KEY_BYTES];
            keys.push(key.clone());
            key[MAX_KEY_BYTES - 1] ^= 1;
            keys.push(key.clone());
            key.pop();
            keys.push(key);
            keys.extend((0..60u8).map(|i| vec![b'k', i]));
        }
    }
}

/// A value: mostly a few bytes, sometimes more than a block or a memtable. Half of it compresses.
pub fn value(rng: &mut Rng) -> Blob {
    let len = match rng.below(200) {
        0..=20 => 0,
        21..=170 => rng.below(60),
        171..=192 => rng.below(600),
        193..=198 => rng.below(5000),
        _ => rng.below(40_000),
    };
    let mut bytes = Vec::with_capacity(len as usize + 8);
    while (bytes.len() as u64) < len {
        match bytes.len() / 8 % 2 {
            0 => bytes.extend(rng.next().to_le_bytes()),
            _ => bytes.extend(b"sameness"),
        }
    }
    bytes.truncate(len as usize);
    bytes.into()
}
