//! Verification of everything on disk: checksums, order, filters, and the manifest against the files.

use crate::engine::shared::Shared;
use crate::engine::storage::Storage;
use crate::error::{Error, Result};
use crate::filter::{DistinctPrefixes, PrefixSet, Verdict};
use crate::id::FileKind;
use crate::key::Space;
use crate::live::LiveSegment;
use crate::manifest::{SegmentMeta, check_levels, read_state};
use crate::progress::{Tell, Tracker};
use crate::segment::{DamagedBlocks, OnDamage, OnEntry};
use crate::sidecar::{Residency, Sidecar};

/// What [`Db::verify`](crate::Db::verify) read and found.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct VerifyReport {
    /// Segments read.
    pub segments: u64,
    /// Readable entries in them.
    pub entries: u64,
    /// Entries in them that damaged blocks make unreadable.
    pub unreadable_entries: u64,
    /// Unreadable blocks, except those in unreadable index partitions, whose number is unknown.
    pub unreadable_blocks: u64,
    /// Entries that are only in memory and in the logs. Log checksums are verified when the store is opened.
    pub log_entries: u64,
    /// Bytes of the segments.
    pub bytes: u64,
    /// Filters that were probed for every key of their segment.
    pub filters: u64,
    /// Damage to the data, each with its file and offset; for unreadable blocks, also the keys they may hold.
    pub problems: Vec<Error>,
    /// Missing or unusable filters, with the reason. Answers are correct without them. Opening the store for
    /// writing rebuilds them.
    pub unusable_filters: Vec<String>,
    /// The callback of [`verify_with`](crate::Db::verify_with) has stopped the check before its end: what was
    /// not read may be damaged.
    pub stopped: bool,
}

impl VerifyReport {
    /// Whether all data was read and is intact.
    pub fn is_ok(&self) -> bool {
        self.problems.is_empty() && !self.stopped
    }
}

/// Verifies everything. Stops before the next segment if `progress` returns `Break`.
pub(crate) fn verify(shared: &Shared, progress: &mut Tell<'_>) -> Result<VerifyReport> {
    let (storage, mut report) = (&shared.storage, VerifyReport::default());
    match read_state(&*storage.fs, &storage.dir) {
        Ok(state) if state.header != storage.header => {
            let what = "the manifest belongs to another store";
            report.problems.push(Error::corruption(storage.dir.join(crate::manifest::MANIFEST), 0, what));
        }
        Ok(state) => report.problems.extend(check_levels(&state, &storage.dir).err()),
        Err(error) => report.problems.push(error),
    }
    let (view, _) = shared.snapshot();
    report.log_entries =
        std::iter::once(&view.active).chain(&view.immutable).map(|table| table.len() as u64).sum();
    let bytes = view.live.segments().map(|segment| segment.meta.file_bytes).sum();
    let mut progress = Tracker::new(progress, Some(bytes));
    let mut segments = view.live.segments();
    for segment in segments.by_ref() {
        verify_segment(storage, segment, &mut report);
        if progress.advance(segment.meta.file_bytes).is_break() {
            break;
        }
    }
    report.stopped = segments.next().is_some();
    if !report.stopped {
        progress.finish();
    }
    Ok(report)
}

/// Opens both files again, to check what is on disk, not what is in memory.
fn verify_segment(storage: &Storage, live: &LiveSegment, report: &mut VerifyReport) {
    let meta = &live.meta;
    let path = storage.path_of(meta.id, FileKind::Filter);
    // Pinned: ordinary reads report a failing disk as an error instead of a SIGBUS.
    let expected = storage.expected_sidecar(meta);
    let open = || {
        let sidecar = Sidecar::open(&storage.maps, &path, &expected, Residency::Pinned)?;
        sidecar.verify().map(|_| sidecar)
    };
    // A new one may have replaced it between open and read.
    let sidecar = open().or_else(|_| open());
    let own_prefixes = sidecar.as_ref().ok().and_then(|s| s.known_facts()).map(|facts| *facts.prefixes());
    let hasher = storage.header.hasher;
    let mut prefixes = DistinctPrefixes::new(&own_prefixes.unwrap_or(PrefixSet::EMPTY), hasher);
    let mut denied: Option<Vec<u8>> = None;
    let mut entries = 0;
    let (mut problems, mut blocks) = (Vec::new(), 0);
    let mut on_damage = |damaged: DamagedBlocks| {
        blocks += damaged.blocks.unwrap_or(0);
        problems.push(damaged.described());
        Ok(())
    };
    let mut on_entry = |key: &[u8], _, _| {
        entries += 1;
        let is_denied = |hash| sidecar.as_ref().is_ok_and(|s| s.probe(hash) == Verdict::Absent);
        let mut any_denied = is_denied(hasher.hash(key));
        prefixes.of_next(Space::head_bytes(key), key, |hash| any_denied |= is_denied(hash));
        if any_denied {
            denied.get_or_insert_with(|| key.to_vec());
        }
        Ok(())
    };
    let checked = check_around(storage, meta, &mut on_entry, &mut on_damage);
    if live.file.is_obsolete() {
        return; // It was compacted away and no longer belongs to the store.
    }
    if let Err(reason) = &sidecar
        && storage.filters_on()
    {
        report.unusable_filters.push(format!("{}: {reason}", path.display()));
    }
    report.problems.extend(problems);
    report.problems.extend(checked.err());
    report.unreadable_blocks += blocks;
    report.unreadable_entries += meta.entries.saturating_sub(entries);
    if entries != meta.entries {
        let all = meta.entries;
        let what = match all.checked_sub(entries) {
            Some(missing) => format!("{missing} of {all} entries are not readable"),
            None => format!("{entries} entries are readable, but the manifest says {all}"),
        };
        report.problems.push(Error::corruption(storage.path_of(meta.id, FileKind::Segment), 0, what));
    }
    if let Some(key) = denied {
        let what = format!(
            "the filter denies key {} of its segment, or a prefix of it (I1); remove this file and it will be rebuilt",
            key.escape_ascii()
        );
        report.problems.push(Error::corruption(&path, 0, what));
    }
    report.segments += 1;
    report.entries += entries;
    report.bytes += meta.file_bytes;
    report.filters += u64::from(sidecar.is_ok());
}

/// Reads a whole segment, bypassing every cache, and passes each entry to `on_entry`. Fails unless everything
/// in it is as its writer and the manifest say.
pub(crate) fn check_whole(storage: &Storage, meta: &SegmentMeta, on_entry: &mut OnEntry<'_>) -> Result<()> {
    check_around(storage, meta, on_entry, &mut |damaged| Err(damaged.error))
}

/// [`check_whole`], but continues after unreadable blocks.
fn check_around(
    storage: &Storage,
    meta: &SegmentMeta,
    on_entry: &mut OnEntry<'_>,
    on_damage: &mut OnDamage<'_>,
) -> Result<()> {
    storage.check_segment_file(meta)?;
    let segment = storage.files.open_apart(meta.id, meta.digest)?;
    segment.verify_around(on_entry, on_damage)?;
    if *segment.summary() != meta.summary {
        let what = "the manifest has other bounds or counts for this segment; run `sidebloom repair`";
        return Err(Error::corruption(storage.path_of(meta.id, FileKind::Segment), 0, what));
    }
    Ok(())
}
