//! The files of a store: how they are named, checked, opened and created. All that recovery needs.

pub(crate) mod buckets;
pub(crate) mod flushed;
pub(crate) mod in_force;
pub(crate) mod names;
pub(crate) mod output_segments;
pub(crate) mod segment_builder;

use self::in_force::InForce;
use crate::engine::clock::Clock;
use crate::engine::events::Events;
use crate::engine::filters::demand::Demand;
use crate::engine::filters::plans::Needs;
use crate::engine::keyspaces::registry::Keyspaces;
use crate::engine::latency::{LatencyRecorder, Operation};
use crate::engine::metrics::Metrics;
use crate::engine::read::filters::FilterUse;
use crate::engine::read::prefixes::Prefixes;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::filter::{FilterSpec, Isa, PrefixSet};
use crate::fs::{Fs, Process, StoreFs};
use crate::id::{FileId, FileKind, TEMPORARY};
use crate::key::Space;
use crate::live::LiveSet;
use crate::manifest::SegmentMeta;
use crate::options::Options;
use crate::segment::{OpenFiles, StoreIdentity};
use crate::sidecar::{self, Binding, Expect, LiveSidecar, Maps, Members, Residency, Sidecar};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Condvar, Mutex, lock};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Stores opened by this process.
static OPENED: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

/// What is fixed when a store is opened, with the few options that are not, and the means to work on its
/// files.
pub(crate) struct Storage {
    pub fs: Arc<dyn Fs>,
    /// The process that opened the store; only this one changes it.
    pub process: Process,
    pub dir: PathBuf,
    /// As the store was opened. See [`InForce`] for those that may change.
    pub options: Options,
    pub in_force: InForce,
    pub header: StoreIdentity,
    /// The segment files, with a limit on open ones.
    pub files: Arc<OpenFiles>,
    /// The mapped sidecars, with a limit on their number.
    pub maps: Arc<Maps>,
    pub metrics: Metrics,
    pub events: Events,
    /// Only if they were asked for.
    pub latencies: Option<Box<LatencyRecorder>>,
    /// The prefixes that filters have; `None` without filters.
    pub prefixes: Option<Arc<Prefixes>>,
    /// The keyspaces in memory.
    pub keyspaces: Arc<Keyspaces>,
    /// The clock by which rows expire.
    pub clock: Clock,
    /// Where missing keys are looked up.
    demand: Mutex<Demand>,
    next_id: AtomicU64,
    /// The lowest file number that this open may have written.
    pub first_own_id: FileId,
}

/// The segment files of a store that is being opened. `options.fs` closes some when descriptors run out.
pub(crate) fn open_files(path: &Path, options: &mut Options) -> Arc<OpenFiles> {
    let fs = Arc::clone(&options.fs);
    let (cache_bytes, budget) = (options.block_cache_bytes, options.max_open_files);
    let may_map = options.residency == Residency::Mapped;
    let files = Arc::new(OpenFiles::new(Arc::clone(&fs), path, cache_bytes, budget, may_map));
    options.fs = Arc::new(StoreFs { fs, holder: Arc::clone(&files) as _, process: Process::current() });
    files
}

/// The most segments of a view whose filters threads keep.
const KEPT_SEGMENTS_MAX: usize = 1024;

impl Storage {
    /// The files in `path`. New ones get numbers from `first_own_id` on. Signals `work` when maps run short.
    pub fn new(
        path: &Path,
        options: Options,
        header: StoreIdentity,
        files: Arc<OpenFiles>,
        first_own_id: FileId,
        work: &Arc<Condvar>,
    ) -> Self {
        let (fs, clock) = (Arc::clone(&options.fs), Clock::new(Arc::clone(&options.clock)));
        let maps = Arc::new(Maps::new(Arc::clone(&fs), options.max_mapped_filters, Arc::clone(work)));
        let (metrics, next_id) = (Metrics::default(), AtomicU64::new(first_own_id.0));
        let keyspaces = Arc::new(Keyspaces::new(OPENED.fetch_add(1, Ordering::Relaxed)));
        let events = Events::new(options.on_event.clone());
        let latencies = options.latency_histograms.then(Box::default);
        let prefixes = Prefixes::new(&options, header.hasher, &keyspaces);
        Storage {
            fs,
            process: Process::current(),
            dir: path.to_path_buf(),
            in_force: InForce::new(&options),
            options,
            header,
            files,
            maps,
            metrics,
            events,
            latencies,
            prefixes,
            keyspaces,
            clock,
            demand: Mutex::default(),
            next_id,
            first_own_id,
        }
    }

    /// Records how long an operation took, if that was asked for.
    pub fn note_latency(&self, operation: Operation, time: Duration) {
        if let Some(latencies) = &self.latencies {
            latencies.record(operation, time);
        }
    }

    pub fn path_of(&self, id: FileId, kind: FileKind) -> PathBuf {
        self.dir.join(id.file_name(kind))
    }

    /// Reserves the next file number.
    pub fn take_id(&self) -> FileId {
        FileId(self.next_id.fetch_add(1, Ordering::Relaxed))
    }

    /// The file number that is taken next.
    pub fn next_id(&self) -> FileId {
        FileId(self.next_id.load(Ordering::Relaxed))
    }

    /// The next file number that no other version of the store has had: see `follow/versions.rs`.
    pub fn take_version(&self) -> FileId {
        FileId(self.take_id().0.saturating_add(1))
    }

    /// Whether filters are used and written.
    #[inline]
    pub fn filters_on(&self) -> bool {
        self.options.filter_policy.is_on()
    }

    /// What keyspaces ask of their filters, now.
    pub fn filter_needs(&self, live: &LiveSet) -> Needs {
        if !self.keyspaces.have_heads() {
            return Needs::default();
        }
        let own = self.keyspaces.own_policies();
        let mut demand = lock(&self.demand);
        let weights = demand.weights(&self.metrics, live, |space| own.contains_key(&space)).clone();
        Needs { own, weights }
    }

    /// How lookups use filters. A thread that stops reading keeps at most a fraction of the allowed maps.
    pub fn filter_use(&self) -> FilterUse {
        let kept_max = KEPT_SEGMENTS_MAX.min(self.options.max_mapped_filters / 8);
        FilterUse { on: self.filters_on(), isa: Isa::best(), kept_max }
    }

    /// The extractors whose prefixes new filters get.
    pub fn prefix_set(&self) -> PrefixSet {
        self.prefixes.as_ref().map_or(PrefixSet::EMPTY, |prefixes| prefixes.set)
    }

    /// The extractors for a keyspace's filters; those of the store for a segment of several keyspaces.
    pub fn prefix_set_of(&self, owner: Option<Space>) -> PrefixSet {
        owner.and_then(|space| self.keyspaces.own_prefixes(space)).unwrap_or_else(|| self.prefix_set())
    }

    /// The members of a segment's filter, none yet.
    pub fn members(&self, owner: Option<Space>) -> Members {
        Members::new(self.prefix_set_of(owner), self.header.hasher)
    }

    /// The error for a segment whose file is missing.
    pub fn missing_segment(&self, id: FileId) -> Error {
        let what =
            "the manifest names this segment, but the file is missing: restore it, or run `sidebloom repair`";
        Error::corruption(self.path_of(id, FileKind::Segment), 0, what)
    }

    /// Checks that a segment's file exists and has the right length, without opening it.
    pub fn check_segment_file(&self, meta: &SegmentMeta) -> Result<()> {
        let path = self.path_of(meta.id, FileKind::Segment);
        let renamed = || self.fs.file_len(&self.path_of(meta.id, FileKind::Obsolete));
        let len = match self.fs.file_len(&path)? {
            // The writer has replaced it in a version that this process has not read yet.
            None if self.options.follow => renamed()?,
            len => len,
        };
        match len {
            None => Err(self.missing_segment(meta.id)),
            Some(len) if len != meta.file_bytes => {
                let what = format!("the file has {len} bytes, but the manifest says {}", meta.file_bytes);
                Err(Error::corruption(&path, len.min(meta.file_bytes), what))
            }
            Some(_) => Ok(()),
        }
    }

    /// What a sidecar must be bound to in order to answer for a segment.
    pub fn expected_sidecar(&self, meta: &SegmentMeta) -> Expect {
        Expect { binding: binding(meta), hasher: self.header.hasher }
    }

    /// Writes a segment's filter durably (except its directory entry), then opens and verifies it. Warns and
    /// returns `None` if the new file is unusable.
    pub fn create_sidecar(
        &self,
        meta: &SegmentMeta,
        members: &Members,
        spec: FilterSpec,
    ) -> Result<Option<LiveSidecar>> {
        let path = self.path_of(meta.id, FileKind::Filter);
        let (hashes, prefixes) = (members.hashes(), members.prefixes());
        let (hasher, binding) = (self.header.hasher, Some(binding(meta)));
        let bytes = sidecar::create(&*self.fs, &path, hashes, spec, hasher, binding, prefixes)?;
        self.metrics.filter_bytes.fetch_add(bytes, Ordering::Relaxed);
        let opened = self.open_verified(meta).inspect_err(|reason| self.report_unusable(meta.id, reason));
        Ok(opened.ok())
    }

    /// [`create_sidecar`](Self::create_sidecar) for a write, which derived data never stops (I2): an error is
    /// only counted and logged.
    pub fn try_sidecar(
        &self,
        meta: &SegmentMeta,
        members: &Members,
        spec: FilterSpec,
    ) -> Option<LiveSidecar> {
        self.create_sidecar(meta, members, spec).unwrap_or_else(|error| {
            self.report_unusable(meta.id, &sidecar::Unusable::Io(error));
            None
        })
    }

    /// Opens a segment's sidecar and verifies its lines.
    pub fn open_verified(&self, meta: &SegmentMeta) -> Result<LiveSidecar, sidecar::Unusable> {
        let path = self.path_of(meta.id, FileKind::Filter);
        let sidecar = Sidecar::open(&self.maps, &path, &self.expected_sidecar(meta), self.options.residency)?;
        sidecar.verify().map(|_| LiveSidecar::new(sidecar))
    }

    /// A segment's sidecar, whose file is opened when first needed.
    pub fn unopened_sidecar(&self, meta: &SegmentMeta) -> LiveSidecar {
        let path = self.path_of(meta.id, FileKind::Filter);
        let expect = self.expected_sidecar(meta);
        LiveSidecar::new(Sidecar::expected(&self.maps, &path, &expect, self.options.residency))
    }

    /// Logs an unusable sidecar, then counts it: whoever sees the count can find the warning.
    pub fn report_unusable(&self, id: FileId, reason: &sidecar::Unusable) {
        let file = self.path_of(id, FileKind::Filter).display().to_string();
        self.events.emit(Event::FilterUnusable { file, reason: reason.to_string() });
        self.metrics.filters_unavailable.fetch_add(1, Ordering::Relaxed);
    }

    /// Removes a file that this store created. If that fails, the next open removes it.
    pub fn remove_if_there(&self, path: &Path) {
        if self.process.is_current()
            && let Ok(Some(_)) = self.fs.file_len(path)
            && let Err(error) = self.fs.remove(path)
        {
            tracing::warn!(%error, "cannot remove an unneeded file; the next open will retry");
        }
    }

    /// Removes the files of a segment that this store created and never published. `kind` is the kind of the
    /// segment's file: whoever created it has the number, and so the sidecar.
    pub fn discard(&self, id: FileId, kind: FileKind) {
        let sidecar = id.file_name(FileKind::Filter);
        let unfinished_sidecar = self.dir.join(sidecar + TEMPORARY);
        for path in [self.path_of(id, kind), self.path_of(id, FileKind::Filter), unfinished_sidecar] {
            self.remove_if_there(&path);
        }
    }
}

fn binding(meta: &SegmentMeta) -> Binding {
    Binding { segment: meta.id.0, digest: meta.digest }
}
