//! Images of a guard: what lookups need, to copy to other machines.

use super::format::{LOCK, SETTINGS, Settings};
use super::handle::Guard;
use super::options::GuardOptions;
use crate::engine::copies::file_set::FileSet;
use crate::error::Result;
use crate::fs::{Fs, ReadFile, ReadOnlyTreeFs, TreeFile};
use crate::id::{FileId, FileKind};
use crate::manifest::MANIFEST;
use crate::sidecar::Residency;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What lookups need of a guard, as of one moment: its filters, but no keys. About a twentieth of its files.
///
/// [`Guard::image`] takes one. It stays valid when the guard changes, but not after a refresh, which removes
/// the image's files: reading them then fails, and a new image is needed. Once all parts have been copied,
/// [`from_parts`](Self::from_parts) and [`GuardOptions::open_image`] turn them into a read-only guard,
/// anywhere. **The settings contain the secret key of the guard's hashes**: anybody who has them can search
/// for keys that collide.
#[derive(Clone)]
pub struct GuardImage {
    settings: Vec<u8>,
    manifest: Vec<u8>,
    /// By segment number. The file may not exist: without a filter, all keys of a segment are "maybe".
    filters: BTreeMap<u64, Option<PathBuf>>,
    fs: Arc<dyn Fs>,
    /// Keeps the files.
    _kept: Option<Arc<FileSet>>,
}

impl std::fmt::Debug for GuardImage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GuardImage").field("filters", &self.filters).finish_non_exhaustive()
    }
}

impl Guard {
    /// Takes an image of everything inserted and removed so far. Flushes.
    ///
    /// # Errors
    /// The errors of [`insert`](Self::insert), among them [`Error::ReadOnly`](crate::Error::ReadOnly).
    pub fn image(&self) -> Result<GuardImage> {
        let shared = self.shared();
        shared.check_writable()?;
        let live = shared.live.load_full();
        let kept = live.db.file_set()?;
        let settings = Settings { generation: live.number, ..shared.settings };
        Ok(GuardImage {
            settings: settings.encode()?,
            manifest: kept.manifest().to_vec(),
            filters: kept
                .segments()
                .map(|segment| (segment.number(), Some(kept.dir().join(segment.sidecar_name()))))
                .collect(),
            fs: Arc::clone(&shared.options.fs),
            _kept: Some(Arc::new(kept)),
        })
    }
}

impl GuardImage {
    /// An image whose parts have been copied: [`settings`](Self::settings), [`manifest`](Self::manifest), and
    /// the files of [`filters`](Self::filters) with their numbers, `None` for missing ones. Nobody may change
    /// the files while a guard has them open.
    pub fn from_parts(settings: Vec<u8>, manifest: Vec<u8>, filters: BTreeMap<u64, Option<PathBuf>>) -> Self {
        let fs = Arc::new(crate::fs::RealFs);
        // The working directory may change before a filter is opened.
        let absolute = |path: PathBuf| fs.absolute(&path).unwrap_or(path);
        let filters = filters.into_iter().map(|(number, path)| (number, path.map(absolute))).collect();
        GuardImage { settings, manifest, filters, fs, _kept: None }
    }

    /// The guard's settings, including a secret key.
    pub fn settings(&self) -> &[u8] {
        &self.settings
    }

    /// Lists the filters and their segments.
    pub fn manifest(&self) -> &[u8] {
        &self.manifest
    }

    /// The numbers of the filters. Within one [generation](Self::generation), filters with the same number
    /// have the same keys in every image.
    pub fn filters(&self) -> impl Iterator<Item = u64> {
        self.filters.keys().copied()
    }

    /// Opens a filter's file; `None` if it is missing.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io).
    pub fn open_filter(&self, number: u64) -> Result<Option<Arc<dyn ReadFile>>> {
        let Some(Some(path)) = self.filters.get(&number) else { return Ok(None) };
        match self.fs.file_len(path)? {
            None => Ok(None),
            Some(_) => self.fs.open(path).map(Some),
        }
    }

    /// A number that identifies a guard, but not the copies and generations of one guard.
    ///
    /// # Errors
    /// [`Error::Corruption`](crate::Error::Corruption) or
    /// [`Error::UnsupportedVersion`](crate::Error::UnsupportedVersion) for settings that are not a guard's.
    pub fn guard_id(&self) -> Result<u64> {
        Ok(self.decode_settings()?.guard_id())
    }

    /// The guard's generation: one more than its refreshes.
    ///
    /// # Errors
    /// The errors of [`guard_id`](Self::guard_id).
    pub fn generation(&self) -> Result<u64> {
        Ok(self.decode_settings()?.generation)
    }

    fn decode_settings(&self) -> Result<Settings> {
        Settings::decode(Path::new(SETTINGS), &self.settings)
    }
}

impl GuardOptions {
    /// Opens an image as a read-only guard, with filters mapped from their files. Lookups answer as the guard
    /// did at the moment of the image, except that remembered false positives are "maybe". There are no keys:
    /// [`Guard::contains`] and [`Guard::count`] fail, and [`GuardStats`](super::GuardStats) has no rows and
    /// keys. A damaged filter, or one of other keys, makes its keys "maybe".
    ///
    /// # Errors
    /// [`Error::Corruption`](crate::Error::Corruption) or
    /// [`Error::UnsupportedVersion`](crate::Error::UnsupportedVersion) for damaged settings or a damaged
    /// manifest; [`Error::InvalidArgument`](crate::Error::InvalidArgument) for an option out of range.
    pub fn open_image(self, image: &GuardImage) -> Result<Guard> {
        let settings = image.decode_settings()?;
        let dir = Path::new("image");
        let store = settings.store(dir);
        let bytes = |bytes: &[u8]| TreeFile::Bytes(bytes.into());
        let mut files = BTreeMap::from([
            (dir.join(SETTINGS), bytes(&image.settings)),
            (dir.join(LOCK), bytes(&[])),
            (store.join(MANIFEST), bytes(&image.manifest)),
        ]);
        for (&number, filter) in &image.filters {
            let name = |kind| store.join(FileId(number).file_name(kind));
            files.insert(name(FileKind::Segment), TreeFile::Missing);
            if let Some(path) = filter {
                files.insert(name(FileKind::Filter), TreeFile::File(path.clone()));
            }
        }
        let fs = Arc::new(ReadOnlyTreeFs { fs: Arc::clone(&image.fs), files });
        let mut options = self.filesystem(fs).read_only(true);
        options.store = options.store.residency(Residency::Mapped);
        options.store.has_segments = false;
        options.open(dir)
    }
}
