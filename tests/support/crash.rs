//! What survives a crash.
//!
//! A power cut loses part of what was not synced:
//! - Disks write sectors of 512 bytes whole and in any order. Each sector of a file has its state after one
//!   of the appends that touched it, or before all of them; bytes that it did not have by then are zeros. The
//!   file ends after the last sector that survived, or later (the new length survived, the bytes did not).
//! - A change of names survives as a whole or not at all. A directory loses its contents with its name.

use super::disk::{Contents, Disk, File, NameOp, Tree};
use super::rng::Rng;
use sidebloom::fs::SECTOR_BYTES;
use std::collections::HashMap;
use std::sync::Arc;

/// How the machine or the process stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crash {
    /// The process is killed. Everything that it wrote survives, but a later power cut can still lose what
    /// was not synced.
    Kill,
    /// Power is lost on a disk that writes in order: prefixes of files and of name changes survive.
    PowerOrdered,
    /// Power is lost, and any part of what was not synced may survive.
    Power,
}

impl Disk {
    /// The disk after the crash, without locks, faults or limits. The seed decides what survives.
    pub fn after(&self, crash: Crash, seed: u64) -> Disk {
        let mut rng = Rng::new(seed);
        // Bugs are found at the extremes: all or nothing is as likely as anything between.
        let keep = *rng.pick(&[0, 10, 50, 90, 100]);
        let mut copies = Copies { crash, keep, files: HashMap::new() };
        let mut after = Disk::default();
        if crash == Crash::Kill {
            after.durable = copies.tree(&self.durable, &mut rng);
            after.names = copies.tree(&self.names, &mut rng);
            after.pending = self.pending.iter().map(|op| copies.op(op, &mut rng)).collect();
            return after;
        }
        let mut names = self.durable.clone();
        let in_order = rng.below(self.pending.len() as u64 + 1) as usize;
        for (i, op) in self.pending.iter().enumerate() {
            let survives = if crash == Crash::Power { rng.percent(keep) } else { i < in_order };
            if survives {
                op.apply(&mut names);
            }
        }
        names.drop_unreachable();
        after.names = copies.tree(&names, &mut rng);
        after.durable = after.names.clone();
        after
    }
}

/// Copies of files, one per file, whatever its names.
struct Copies {
    crash: Crash,
    keep: u64,
    files: HashMap<*const File, Arc<File>>,
}

impl Copies {
    fn tree(&mut self, tree: &Tree, rng: &mut Rng) -> Tree {
        let files = tree.files.iter().map(|(path, file)| (path.clone(), self.file(file, rng))).collect();
        Tree { files, dirs: tree.dirs.clone() }
    }

    fn op(&mut self, op: &NameOp, rng: &mut Rng) -> NameOp {
        match op {
            NameOp::Link(path, file) => NameOp::Link(path.clone(), self.file(file, rng)),
            NameOp::Unlink(_) | NameOp::MakeDir(_) | NameOp::RemoveDir(_) => op.clone(),
            NameOp::Rename(from, to, file) => NameOp::Rename(from.clone(), to.clone(), self.file(file, rng)),
        }
    }

    fn file(&mut self, file: &Arc<File>, rng: &mut Rng) -> Arc<File> {
        let (crash, keep) = (self.crash, self.keep);
        let copy = || {
            let contents = file.contents();
            Arc::new(File::new(match crash {
                Crash::Kill => contents.clone(),
                _ if contents.synced == contents.bytes.len() => contents.clone(),
                Crash::PowerOrdered => Contents::durable(Arc::new(prefix(&contents, rng))),
                Crash::Power => Contents::durable(Arc::new(surviving_sectors(&contents, keep, rng))),
            }))
        };
        self.files.entry(Arc::as_ptr(file)).or_insert_with(copy).clone()
    }
}

/// The whole file, or its start up to a sector boundary or the end of an append.
fn prefix(contents: &Contents, rng: &mut Rng) -> Vec<u8> {
    let len = contents.bytes.len();
    let any = contents.synced + rng.below((len - contents.synced) as u64 + 1) as usize;
    let end_before = contents.append_ends.iter().rev().find(|&&end| end <= any);
    let end = match rng.below(4) {
        0 => len,
        1 => any - any % SECTOR_BYTES,
        _ => *end_before.unwrap_or(&contents.synced),
    };
    contents.bytes[..end.max(contents.synced)].to_vec()
}

/// The file with each sector in one of the states that it has had.
fn surviving_sectors(contents: &Contents, keep: u64, rng: &mut Rng) -> Vec<u8> {
    let Contents { bytes, synced, append_ends, .. } = contents;
    let mut found = bytes[..*synced].to_vec();
    let mut ends = append_ends.as_slice();
    let mut start = *synced;
    while start < bytes.len() {
        let sector_end = (start + 1).next_multiple_of(SECTOR_BYTES).min(bytes.len());
        let (within, _) = ends.split_at(ends.partition_point(|&end| end < sector_end));
        let survives_to = if rng.percent(keep) {
            sector_end
        } else {
            let state = rng.below(within.len() as u64 + 1) as usize;
            state.checked_sub(1).map_or(start, |state| within[state])
        };
        if survives_to > start {
            found.resize(start, 0);
            found.extend_from_slice(&bytes[start..survives_to]);
        }
        ends = &ends[within.len()..];
        start = sector_end;
    }
    if rng.percent(30) {
        let longer = *rng.pick(append_ends);
        found.resize(found.len().max(longer), 0);
    }
    found
}
