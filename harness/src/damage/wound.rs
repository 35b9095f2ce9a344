//! Damage to a store: which files, how, and which errors are allowed.

use super::harm::{Harm, exchanged, random};
use super::store::{Kind, Store, Victim};
use super::workload::is_kind;
use crate::support::{Rng, SimFs};
use sidebloom::Error;
use sidebloom::fs::Fs;
use std::fmt;
use std::ops::Range;
use std::path::Path;

/// One damaged file.
#[derive(Debug)]
pub struct Wound<'a> {
    pub victim: &'a Victim,
    pub harm: Harm,
    /// The bytes that changed.
    pub changed: Range<usize>,
}

/// The damaged files: one, or two that exchanged bytes.
#[derive(Debug)]
pub struct Wounds<'a> {
    pub dir: &'a Path,
    pub kind: Kind,
    pub all: Vec<Wound<'a>>,
    /// Whether an error may name another file of the store: the damaged one is valid, but misplaced.
    pub others_too: bool,
}

impl fmt::Display for Wounds<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Wound { victim, harm, changed } in &self.all {
            let (path, len) = (victim.path.display(), victim.target.bytes.len());
            writeln!(f, "{path}, {len} bytes: {}; the bytes {changed:?} differ", harm.how)?;
        }
        Ok(())
    }
}

impl<'a> Wounds<'a> {
    pub fn random(rng: &mut Rng, store: &'a Store, kind: Kind) -> Option<Wounds<'a>> {
        let victims = store.victims(kind);
        if victims.is_empty() {
            return None;
        }
        let first = rng.pick(victims);
        let second = rng.pick(victims);
        let pair = if first.path != second.path && rng.percent(4) {
            exchanged(rng, &first.target, &second.target)
        } else {
            None
        };
        let harms = match pair {
            Some([a, b]) => vec![(first, a), (second, b)],
            None => vec![(first, random(rng, &first.target))],
        };
        let wound = |(victim, harm): (&'a Victim, Harm)| {
            let changed = harm.changed(&victim.target.bytes);
            Wound { victim, harm, changed }
        };
        let mut all: Vec<Wound<'a>> = harms.into_iter().map(wound).collect();
        all.sort_by_key(|wound| wound.victim.id);
        let others_too = match kind {
            Kind::Log => true,
            Kind::Manifest => all.iter().any(Wound::may_be_another_manifest),
            _ => false,
        };
        Some(Wounds { dir: &store.dir, kind, all, others_too })
    }

    pub fn inflict(&self, fs: &SimFs) {
        for Wound { victim, harm, .. } in &self.all {
            match &harm.bytes {
                Some(bytes) => fs.write(&victim.path, bytes.clone()),
                None => fs.remove(&victim.path).unwrap(),
            }
        }
    }

    /// Panics unless the error says where the damage is: the file, and an offset not beyond the damage.
    pub fn check(&self, error: &Error) {
        // Logs and manifests are read from the front. A misplaced edit may contradict a later one.
        self.check_up_to(error, |wound| match self.kind {
            Kind::Log | Kind::Manifest if wound.harm.is_noise => wound.changed.start,
            Kind::Manifest => wound.whole_len(),
            _ => wound.changed.end,
        });
    }

    /// The same for an offset anywhere in the file: a repair names the first unreadable bytes.
    pub fn check_file(&self, error: &Error) {
        self.check_up_to(error, |wound| wound.whole_len());
    }

    fn check_up_to(&self, error: &Error, limit: impl Fn(&Wound<'_>) -> usize) {
        let (file, offset) = match error {
            Error::Corruption { file, offset, .. } => (file, *offset),
            Error::UnsupportedVersion { file, .. } | Error::UnknownCode { file, .. } => (file, 0),
            Error::NotAStore { .. } if self.kind == Kind::Manifest && self.all[0].harm.bytes.is_none() => {
                return;
            }
            other => panic!("an error that does not say where the damage is: {other}"),
        };
        match self.all.iter().find(|wound| wound.is_in(file)) {
            Some(wound) => {
                let is_within = offset <= limit(wound) as u64;
                assert!(is_within, "an error that names an offset beyond the damage: {error}");
            }
            None => {
                let may_be = self.kind != Kind::Log || is_kind(file, ".wal");
                let is_ours = file.parent() == Some(self.dir) && may_be;
                assert!(self.others_too && is_ours, "an error that names a sound file: {error}");
            }
        }
    }
}

impl Wound<'_> {
    /// Whether this is the damaged file. A compaction may have replaced it while a walk still reads it.
    fn is_in(&self, file: &Path) -> bool {
        let path = &self.victim.path;
        *path == *file || (is_kind(path, ".segment") && path.with_extension("obsolete") == file)
    }

    /// The length of the file, before or after.
    fn whole_len(&self) -> usize {
        self.victim.target.bytes.len().max(self.changed.end)
    }

    /// Whether a crash could have left these bytes from the damaged piece on: the file ends within the piece,
    /// or one of its sectors is zero from where the piece starts in it.
    pub fn looks_lost(&self, piece: &Range<usize>) -> bool {
        const SECTOR: usize = 512;
        let Some(new) = &self.harm.bytes else { return true };
        if new.len() < piece.end {
            return true;
        }
        let mut from = piece.start;
        while from < piece.end {
            let to = ((from / SECTOR + 1) * SECTOR).min(new.len());
            if new[from..to.min(piece.end)].iter().all(|&byte| byte == 0) {
                return true;
            }
            from = to;
        }
        false
    }

    /// The piece with the first changed byte; `None` if the file only got longer.
    pub fn first_piece(&self) -> Option<usize> {
        let pieces = &self.victim.target.pieces;
        pieces.iter().position(|piece| piece.end > self.changed.start)
    }

    /// Whether the piece is unchanged.
    pub fn is_intact(&self, piece: &Range<usize>) -> bool {
        let new = self.harm.bytes.as_deref().unwrap_or_default();
        new.get(piece.clone()) == self.victim.target.bytes.get(piece.clone())
    }

    /// Whether a manifest may be valid but not the right one: it lost its last edits, is an older one or
    /// another store's, or its edits are in other places.
    fn may_be_another_manifest(&self) -> bool {
        self.harm.is_whole
            || !self.harm.is_noise
            || self.first_piece().is_none_or(|at| self.looks_lost(&self.victim.target.pieces[at]))
    }
}
