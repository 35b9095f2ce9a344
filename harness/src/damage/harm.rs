//! Ways to damage a file: by failing disks, misdirected writes and careless copies.

use crate::support::Rng;
use std::ops::Range;
use std::sync::Arc;

const SECTOR: usize = 512;
const PAGE: usize = 4096;

/// The bytes of a file.
pub type Bytes = Arc<Vec<u8>>;

/// A file to damage, and other sources of wrong bytes.
#[derive(Debug)]
pub struct Target {
    pub bytes: Bytes,
    /// Its structure: records, blocks, fields.
    pub pieces: Vec<Range<usize>>,
    /// Earlier versions, and the file of the same name in another store.
    pub others: Vec<Bytes>,
    /// Other files of its kind.
    pub kin: Vec<Bytes>,
}

/// A damaged version of a file.
#[derive(Debug)]
pub struct Harm {
    /// A description, with offsets.
    pub how: String,
    /// `None` if the file is gone.
    pub bytes: Option<Vec<u8>>,
    /// The bytes were changed into something new to the store's files, so the checksum of the structure
    /// around them cannot match.
    pub is_noise: bool,
    /// The whole file is another one.
    pub is_whole: bool,
}

impl Harm {
    /// The first byte that differs, and the end of the last one. A truncated file differs from its end on.
    pub fn changed(&self, old: &[u8]) -> Range<usize> {
        let Some(new) = &self.bytes else { return 0..old.len() };
        let start = old.iter().zip(new).take_while(|(a, b)| a == b).count();
        let same = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
        let end = if old.len() == new.len() { old.len() - same } else { old.len().max(new.len()) };
        start..end
    }
}

/// A random damage that changes the file.
pub fn random(rng: &mut Rng, target: &Target) -> Harm {
    loop {
        let harm = any(rng, target);
        if harm.bytes.as_ref() != Some(&target.bytes) {
            return harm;
        }
    }
}

/// Exchanges a sector, or a page, between two files.
pub fn exchanged(rng: &mut Rng, a: &Target, b: &Target) -> Option<[Harm; 2]> {
    let size = *rng.pick(&[SECTOR, SECTOR, PAGE, 64]);
    let from = block(rng, &a.bytes, size);
    let to = if rng.percent(50) { from.start } else { block(rng, &b.bytes, size).start };
    let to = to.min(b.bytes.len());
    let len = from.len().min(b.bytes.len() - to);
    let (from, to) = (from.start..from.start + len, to..to + len);
    if a.bytes[from.clone()] == b.bytes[to.clone()] {
        return None;
    }
    let how = format!("bytes {from:?} of one file and {to:?} of another exchanged");
    let swap = |mine: &Bytes, at: &Range<usize>, other: &Bytes, there: &Range<usize>| {
        let mut bytes = mine.to_vec();
        bytes[at.clone()].copy_from_slice(&other[there.clone()]);
        Harm { how: how.clone(), bytes: Some(bytes), is_noise: false, is_whole: false }
    };
    Some([swap(&a.bytes, &from, &b.bytes, &to), swap(&b.bytes, &to, &a.bytes, &from)])
}

/// An aligned block of the file.
fn block(rng: &mut Rng, bytes: &[u8], size: usize) -> Range<usize> {
    let start = rng.below(bytes.len().div_ceil(size).max(1) as u64) as usize * size;
    start.min(bytes.len())..(start + size).min(bytes.len())
}

/// A place in the file: anywhere, within one of its structures, or at its start or end.
fn place(rng: &mut Rng, target: &Target) -> usize {
    let len = target.bytes.len();
    let at = match rng.below(10) {
        0..4 => rng.below(len.max(1) as u64) as usize,
        4..8 if !target.pieces.is_empty() => {
            let piece = rng.pick(&target.pieces).clone();
            piece.start + rng.below(piece.len().max(1) as u64) as usize
        }
        _ if !target.pieces.is_empty() => {
            let piece = rng.pick(&target.pieces).clone();
            let edge = if rng.percent(50) { piece.start } else { piece.end };
            (edge + rng.below(48) as usize).saturating_sub(rng.below(10) as usize)
        }
        _ => len.saturating_sub(1 + rng.below(60) as usize),
    };
    at.min(len.saturating_sub(1))
}

/// A sector, a page, a structure, or a few bytes.
fn extent(rng: &mut Rng, target: &Target) -> Range<usize> {
    match rng.below(10) {
        0..4 => block(rng, &target.bytes, SECTOR),
        4..6 => block(rng, &target.bytes, PAGE),
        6..9 if !target.pieces.is_empty() => rng.pick(&target.pieces).clone(),
        _ => {
            let at = place(rng, target);
            at..(at + 1 + rng.below(100) as usize).min(target.bytes.len())
        }
    }
}

fn any(rng: &mut Rng, target: &Target) -> Harm {
    let old = &target.bytes;
    let made =
        |how: String, bytes: Vec<u8>| Harm { how, bytes: Some(bytes), is_noise: false, is_whole: false };
    let noise = |how: String, bytes: Vec<u8>| Harm { is_noise: true, ..made(how, bytes) };
    let mut new = old.to_vec();
    if old.is_empty() {
        return made("one byte in an empty file".into(), vec![rng.next() as u8]);
    }
    match rng.below(100) {
        0..25 => {
            let (at, bit) = (place(rng, target), rng.below(8));
            new[at] ^= 1 << bit;
            noise(format!("bit {bit} of byte {at} flipped"), new)
        }
        25..32 => {
            let any = 1 + rng.below(255) as u8;
            let (at, mask) = (place(rng, target), *rng.pick(&[0xff, 0x80, any]));
            new[at] ^= mask;
            noise(format!("byte {at} changed by {mask:#x}"), new)
        }
        32..38 => {
            let places: Vec<usize> = (0..2 + rng.below(7)).map(|_| place(rng, target)).collect();
            places.iter().for_each(|&at| new[at] ^= 1 << rng.below(8));
            noise(format!("bits of the bytes {places:?} flipped"), new)
        }
        38..44 => {
            let range = extent(rng, target);
            new[range.clone()].iter_mut().for_each(|byte| *byte = rng.next() as u8);
            noise(format!("noise in {range:?}"), new)
        }
        44..54 => {
            let len = if rng.percent(30) { rng.pick(&target.pieces).start } else { place(rng, target) };
            new.truncate(len);
            made(format!("cut from {} to {len} bytes", old.len()), new)
        }
        54..58 => {
            let most = *rng.pick(&[8, 600, 5000]);
            let more = 1 + rng.below(most) as usize;
            let from = old.len().saturating_sub(more);
            match rng.below(3) {
                0 => new.resize(old.len() + more, 0),
                1 => new.extend_from_slice(&old[from..]),
                _ => new.extend((0..more).map(|_| rng.next() as u8)),
            }
            made(format!("extended from {} to {} bytes", old.len(), new.len()), new)
        }
        58..70 => {
            let range = extent(rng, target);
            new[range.clone()].fill(0);
            made(format!("zeros in {range:?}"), new)
        }
        70..78 => {
            let (a, b) = (extent(rng, target), extent(rng, target));
            let len = a.len().min(b.len());
            new[a.start..a.start + len].copy_from_slice(&old[b.start..b.start + len]);
            if a.end <= b.start || b.end <= a.start {
                new[b.start..b.start + len].copy_from_slice(&old[a.start..a.start + len]);
            }
            made(format!("{len} bytes at {} and at {} exchanged", a.start, b.start), new)
        }
        78..84 => {
            let (from, to) = (extent(rng, target), extent(rng, target));
            let len = from.len().min(old.len() - to.start);
            new[to.start..to.start + len].copy_from_slice(&old[from.start..from.start + len]);
            made(format!("{len} bytes from {} written at {} too", from.start, to.start), new)
        }
        84..98 => foreign(rng, target),
        98 => Harm { how: "removed".into(), bytes: None, is_noise: false, is_whole: true },
        _ => whole(rng, target),
    }
}

/// Bytes of another file, or of another version of this one.
fn foreign(rng: &mut Rng, target: &Target) -> Harm {
    let is_version = rng.percent(50);
    let from = if is_version { &target.others } else { &target.kin };
    let mut new = target.bytes.to_vec();
    let to = extent(rng, target);
    let (how, source) = if from.is_empty() {
        ("noise", (0..2 * new.len()).map(|_| rng.next() as u8).collect())
    } else {
        (if is_version { "another version" } else { "another file" }, rng.pick(from).to_vec())
    };
    let at = if is_version || rng.percent(50) { to.start } else { block(rng, &source, SECTOR).start };
    let old_bytes: Vec<u8> = (at..at + to.len()).map(|at| source.get(at).copied().unwrap_or(0)).collect();
    new[to.clone()].copy_from_slice(&old_bytes);
    Harm {
        how: format!("{to:?} as {how} has it at {at}"),
        bytes: Some(new),
        // After the end of the source there are zeros, as in a lost sector.
        is_noise: from.is_empty() && at + to.len() <= source.len(),
        is_whole: false,
    }
}

/// Another file in place of this one.
fn whole(rng: &mut Rng, target: &Target) -> Harm {
    let from: Vec<&Bytes> = target.others.iter().chain(&target.kin).collect();
    let (how, bytes) = match rng.below(8) {
        0 => ("empty", Vec::new()),
        1 => ("zeros", vec![0; target.bytes.len()]),
        _ if from.is_empty() => ("twice", target.bytes.repeat(2)),
        _ => ("another file in its place", rng.pick(&from).to_vec()),
    };
    Harm { how: how.into(), bytes: Some(bytes), is_noise: false, is_whole: true }
}
