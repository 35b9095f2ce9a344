//! A store to damage: its files by kind with their structure, and its right answers.

use super::beside::Beside;
use super::formats::{self, Manifest, Record};
use super::harm::{Bytes, Target};
use super::workload::{self, Built, Files, Op, is_kind};
use crate::contents::{Change, apply};
use crate::support::{Contents, Layout, SimFs};
use sidebloom::Options;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file that the store needs.
#[derive(Debug)]
pub struct Victim {
    pub path: PathBuf,
    /// Its number; 0 for the manifest.
    pub id: u64,
    pub target: Target,
    /// Of a segment.
    pub layout: Option<Layout>,
    /// Of a log.
    pub records: Vec<Record>,
}

/// The kinds of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Log,
    Segment,
    Manifest,
    Sidecar,
}

impl Kind {
    const ALL: [(Kind, &'static str); 4] = [
        (Kind::Log, ".wal"),
        (Kind::Segment, ".segment"),
        (Kind::Manifest, "MANIFEST"),
        (Kind::Sidecar, ".filter"),
    ];
}

/// The store of a seed.
#[derive(Debug)]
pub struct Store {
    pub dir: PathBuf,
    options: Options,
    has_filters: bool,
    disk: SimFs,
    pub manifest: Manifest,
    pub logs: Vec<Victim>,
    pub segments: Vec<Victim>,
    pub manifests: Vec<Victim>,
    pub sidecars: Vec<Victim>,
    /// Whether there are segments that the manifest does not name: a flush or a compaction was in progress.
    pub has_leftovers: bool,
    pub expected: Contents,
    /// Every key that the store ever had, and some that it never had, in order.
    pub universe: Vec<Vec<u8>>,
    /// Every value that a key ever had.
    pub history: BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>>,
    pub ops: Vec<Op>,
    pub beside: Beside,
    /// How many operations the segments have, and the contents after these.
    flushed: (usize, Contents),
}

fn number(path: &Path) -> u64 {
    path.file_stem().and_then(|stem| stem.to_str()?.parse().ok()).unwrap_or(0)
}

impl Store {
    /// Builds the store, and another one with the same file names.
    pub fn new(seed: u64) -> Store {
        let dir = PathBuf::from(format!("disk/store{seed}"));
        let built = workload::build(seed, &dir);
        let foreign = workload::build(!seed, &dir);
        Store::of(dir, built, &foreign)
    }

    fn of(dir: PathBuf, built: Built, foreign: &Built) -> Store {
        let Built { options, has_filters, files, earlier, ingested, ops, beside } = built;
        let manifest = formats::manifest(&files[&dir.join("MANIFEST")]);
        let disk = SimFs::new();
        files.iter().for_each(|(path, bytes)| disk.write(path, bytes.clone()));
        let is_needed = |kind: Kind, path: &Path| match kind {
            Kind::Log => number(path) >= manifest.log_floor,
            Kind::Segment | Kind::Sidecar => manifest.segments.contains_key(&number(path)),
            Kind::Manifest => true,
        };
        let [logs, segments, manifests, sidecars] = Kind::ALL.map(|(kind, ending)| {
            let needed = files.iter().filter(|(path, _)| is_kind(path, ending) && is_needed(kind, path));
            let victims = needed.map(|(path, _)| victim(kind, ending, path, &files, &earlier, foreign));
            victims.collect::<Vec<Victim>>()
        });
        assert_eq!(segments.len(), manifest.segments.len(), "the manifest names other segments");
        let has_leftovers = files.keys().filter(|path| is_kind(path, ".segment")).count() > segments.len();
        let first_in_logs = logs.first().map_or(u64::MAX, |log| log.records[0].first_seq - 1);
        let flushed = (first_in_logs.max(manifest.last_seq) as usize).min(ops.len());
        let mut expected = ingested.clone();
        apply(&mut expected, &ops[..flushed]);
        let in_segments = expected.clone();
        apply(&mut expected, &ops[flushed..]);
        let mut history = BTreeMap::<Vec<u8>, BTreeSet<Vec<u8>>>::new();
        ingested.into_iter().for_each(|(key, value)| _ = history.entry(key).or_default().insert(value));
        for op in &ops {
            match op {
                Change::Put(key, value) => _ = history.entry(key.clone()).or_default().insert(value.clone()),
                Change::Delete(key) => _ = history.entry(key.clone()).or_default(),
                Change::DeleteSpan(_) => {}
            }
        }
        let never = history.keys().step_by(3).map(|key| [key.as_slice(), b"?"].concat());
        let universe: BTreeSet<Vec<u8>> = history.keys().cloned().chain(never).collect();
        let flushed = (flushed, in_segments);
        let universe = universe.into_iter().collect();
        Store {
            dir,
            options,
            has_filters,
            disk,
            manifest,
            logs,
            segments,
            manifests,
            sidecars,
            has_leftovers,
            expected,
            universe,
            history,
            ops,
            beside,
            flushed,
        }
    }

    pub fn victims(&self, kind: Kind) -> &[Victim] {
        match kind {
            Kind::Log => &self.logs,
            Kind::Segment => &self.segments,
            Kind::Manifest => &self.manifests,
            Kind::Sidecar => &self.sidecars,
        }
    }

    /// A copy of the disk.
    pub fn copy(&self) -> SimFs {
        self.disk.crash(crate::support::Crash::Kill, 0)
    }

    pub fn options(&self, fs: &SimFs) -> Options {
        self.options.clone().filesystem(Arc::new(fs.clone()))
    }

    /// Whether the options ask for filters.
    pub fn has_filters(&self) -> bool {
        self.has_filters
    }

    /// This many operations, or those of the segments if these are more.
    pub fn at_least_flushed(&self, n: usize) -> usize {
        n.max(self.flushed.0)
    }

    /// The contents after the first `n` operations, or after the segments' operations if these are more.
    pub fn after(&self, n: usize) -> Contents {
        let (flushed, mut contents) = self.flushed.clone();
        apply(&mut contents, &self.ops[flushed..self.at_least_flushed(n)]);
        contents
    }

    /// The contents without these operations, which are only in logs.
    pub fn without(&self, lost: &BTreeSet<usize>) -> Contents {
        let (flushed, mut contents) = self.flushed.clone();
        let kept = (flushed..self.ops.len()).filter(|i| !lost.contains(i));
        apply(&mut contents, kept.map(|i| &self.ops[i]));
        contents
    }
}

fn victim(
    kind: Kind,
    ending: &str,
    path: &Path,
    files: &Files,
    earlier: &[Files],
    foreign: &Built,
) -> Victim {
    let bytes = &files[path];
    let before = earlier.iter().rev().filter_map(|files| files.get(path));
    let mut others: Vec<Bytes> = Vec::new();
    for other in before.chain(foreign.files.get(path)).filter(|other| *other != bytes) {
        if !others.iter().any(|known| **known == *other) {
            others.push(Arc::new(other.clone()));
        }
    }
    let of_kind = |files: &Files| -> Vec<Bytes> {
        let kin = files.iter().filter(|(other, _)| is_kind(other, ending) && *other != path);
        kin.take(20).map(|(_, bytes)| Arc::new(bytes.clone())).collect()
    };
    let kin = [of_kind(files), of_kind(&foreign.files)].concat();
    let layout = (kind == Kind::Segment).then(|| Layout::of(bytes));
    let records = if kind == Kind::Log { formats::log(bytes) } else { Vec::new() };
    let pieces = match (kind, &layout) {
        (_, Some(layout)) => formats::segment_pieces(bytes, layout),
        (Kind::Log, _) => records.iter().map(|record| record.bytes.clone()).collect(),
        (Kind::Manifest, _) => formats::manifest(bytes).pieces,
        _ => formats::sidecar_pieces(bytes),
    };
    let target = Target { bytes: Arc::new(bytes.clone()), pieces, others, kin };
    Victim { path: path.to_path_buf(), id: number(path), target, layout, records }
}
