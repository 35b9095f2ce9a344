//! The store of the filters: opening, and reading.

use super::filter::{Filter, Mark};
use super::names::{FILTER_BYTES, Names, Place, with_key};
use super::record::{ItemKey, Record, Unreadable, decode_count};
use super::refusal::{Refusal, Result};
use sidebloom::fs::Fs;
use sidebloom::{
    Db, Durability, Error, Keyspace, KeyspaceOptions, KeyspaceStats, Options, SystemClock, WallClock,
};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::AcqRel, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::UNIX_EPOCH;

const RECORDS: &str = "filters";
const ITEMS: &str = "items";
/// Permissions of the files: records have the keys of hashes, which are secret.
const MODE: u32 = 0o600;

/// How to open a store of filters.
#[derive(Debug, Clone)]
pub struct FiltersOptions {
    /// When a change is acknowledged.
    pub durability: Durability,
    /// Memory for recent changes, in bytes.
    pub memtable_bytes: u64,
    /// Memory for blocks that were read, in bytes.
    pub block_cache_bytes: u64,
    /// Memory for filters' names and counters, in bytes: about 300 and the name for each filter.
    pub names_bytes: usize,
    /// What tells when filters expire.
    pub clock: Arc<dyn WallClock>,
    /// The file system, if it is not the system's.
    pub filesystem: Option<Arc<dyn Fs>>,
}

impl Default for FiltersOptions {
    fn default() -> Self {
        FiltersOptions {
            durability: Durability::Os,
            memtable_bytes: 64 << 20,
            block_cache_bytes: 64 << 20,
            names_bytes: 64 << 20,
            clock: Arc::new(SystemClock),
            filesystem: None,
        }
    }
}

/// A filter with its name.
pub type NamedFilter = (Vec<u8>, Arc<Filter>);

/// Named filters, in a store of their own.
///
/// All methods may be called from any thread. Questions wait for no change; changes are applied one after
/// another.
pub struct Filters {
    pub(super) db: Db,
    pub(super) path: PathBuf,
    pub(super) records: Keyspace,
    pub(super) items: Keyspace,
    pub(super) names: Names,
    pub(super) names_bytes_max: usize,
    changing: Mutex<Changing>,
    max_expansions: AtomicU64,
    clock: Clock,
}

/// RedisBloom's default for [`Filters::set_max_expansions`].
const MAX_EXPANSIONS: u64 = 32;

/// What the one that changes filters has.
pub(super) struct Changing {
    pub next_id: u64,
}

impl Filters {
    /// Opens the store at `path`, which is created if it is missing. Reads the record of each filter, and no
    /// items.
    ///
    /// # Errors
    /// The errors of [`Options::open`]; [`Error::InvalidArgument`] for a store of something else;
    /// [`Error::Corruption`] for a damaged record.
    pub fn open(path: impl AsRef<Path>, options: FiltersOptions) -> Result<Self> {
        let path = path.as_ref();
        let mut store = Options::new()
            .durability(options.durability)
            .memtable_bytes(options.memtable_bytes)
            .block_cache_bytes(options.block_cache_bytes)
            .clock(Arc::clone(&options.clock))
            .mode(MODE);
        if let Some(filesystem) = options.filesystem {
            store = store.filesystem(filesystem);
        }
        let db = store.open(path)?;
        check_contents(&db, path)?;
        let (records, items) = (keyspace(&db, RECORDS)?, keyspace(&db, ITEMS)?);
        let (names, mut next_id) = read_names(&records, path)?;
        // Should there be rows without a filter, no filter gets them.
        if let Some((key, _)) = items.iter().last()? {
            let id = ItemKey::split(&key).map_or(u64::MAX, |(id, _)| id);
            next_id = next_id.max(id.saturating_add(1));
        }
        Ok(Filters {
            db,
            path: path.to_path_buf(),
            records,
            items,
            names,
            names_bytes_max: options.names_bytes,
            changing: Mutex::new(Changing { next_id }),
            max_expansions: AtomicU64::new(MAX_EXPANSIONS),
            clock: Clock { wall: options.clock, latest: AtomicU64::new(0) },
        })
    }

    /// The store.
    pub fn db(&self) -> &Db {
        &self.db
    }

    /// The filter with this name, unless it has expired.
    pub fn find(&self, database: u8, name: &[u8]) -> Option<Arc<Filter>> {
        let found = with_key(database, name, |key| self.names.get(key));
        found.filter(|filter| !self.has_expired(filter))
    }

    /// What is at this name now, to find out later whether that has changed.
    pub fn mark(&self, database: u8, name: &[u8]) -> Option<Mark> {
        self.find(database, name).map(|filter| filter.mark())
    }

    /// Number of filters in a database. Some may have expired.
    pub fn count(&self, database: u8) -> usize {
        self.names.count(database)
    }

    /// Number of filters in a database that expire.
    pub fn expiring(&self, database: u8) -> usize {
        self.names.expiring(database)
    }

    /// What the items have on disk, and their filters.
    pub fn stats(&self) -> KeyspaceStats {
        self.items.stats().unwrap_or_default() // The keyspace is never dropped.
    }

    /// Memory of a filter of this name, in bytes: the name and counters, and its share of the filters of all
    /// items.
    pub fn bytes_of(&self, filter: &Filter, name: &[u8]) -> u64 {
        let stats = self.stats();
        let share = filter.items().saturating_mul(stats.filter_bytes) / stats.keys.max(1);
        (FILTER_BYTES + name.len()) as u64 + share
    }

    /// The names of a database's filters, and the filters. Looks at up to `max` filters of all databases, in
    /// the order in which they were created, from number `first` on, and at no more once their names have
    /// `bytes_max` bytes. Returns the number to continue at, unless that was the last. Whatever is there
    /// during all calls is returned by one of them, and only one.
    pub fn page(
        &self,
        database: u8,
        first: u64,
        max: usize,
        bytes_max: usize,
    ) -> (Vec<NamedFilter>, Option<u64>) {
        let (page, next) = self.names.page(first, max, bytes_max);
        let listed = page
            .into_iter()
            .filter(|(place, filter)| place.database() == database && !self.has_expired(filter))
            .map(|(place, filter)| (place.name().to_vec(), filter));
        (listed.collect(), next)
    }

    /// Estimated memory of the names and counters, in bytes.
    pub fn names_bytes(&self) -> usize {
        self.names.bytes()
    }

    /// Whether each of the items is in the filter.
    ///
    /// # Errors
    /// [`Refusal::Store`] if a block cannot be read.
    pub fn contains<I: AsRef<[u8]>>(&self, filter: &Filter, items: &[I]) -> Result<Vec<bool>> {
        let hashes: Vec<u128> = items.iter().map(|item| filter.hash(item.as_ref())).collect();
        self.contains_hashes(filter, &hashes)
    }

    /// [`contains`](Self::contains), given the items' hashes.
    ///
    /// # Errors
    /// Those of [`contains`](Self::contains).
    pub fn contains_hashes(&self, filter: &Filter, hashes: &[u128]) -> Result<Vec<bool>> {
        if let [hash] = hashes {
            return Ok(vec![self.items.contains_key(filter.key(*hash))?]);
        }
        let keys: Vec<ItemKey> = hashes.iter().map(|hash| filter.key(*hash)).collect();
        Ok(self.items.multi_get(&keys)?.iter().map(Option::is_some).collect())
    }

    /// How often each of the items was added and not removed.
    ///
    /// # Errors
    /// Those of [`contains`](Self::contains).
    pub fn counts(&self, filter: &Filter, hashes: &[u128]) -> Result<Vec<u64>> {
        let keys: Vec<ItemKey> = hashes.iter().map(|hash| filter.key(*hash)).collect();
        self.items_at(&keys)
    }

    /// The count in each of these rows; 0 if there is none.
    pub(super) fn items_at(&self, keys: &[ItemKey]) -> Result<Vec<u64>> {
        let values = self.items.multi_get(keys)?;
        let count = |value: &Option<sidebloom::Value>| match value {
            None => Ok(0),
            Some(value) => decode_count(value).ok_or_else(|| self.damaged("the count of an item")),
        };
        values.iter().map(count).collect()
    }

    pub(super) fn damaged(&self, what: &str) -> Refusal {
        Refusal::Store(Error::corruption(&self.path, 0, format!("{what} is damaged")))
    }

    /// The number of parts from which on a cuckoo filter takes no more commands that add items.
    pub fn max_expansions(&self) -> u64 {
        self.max_expansions.load(Relaxed)
    }

    /// Sets [`max_expansions`](Self::max_expansions), until the store is closed.
    pub fn set_max_expansions(&self, max: u64) {
        self.max_expansions.store(max, Relaxed);
    }

    /// The time by the store's clock, in milliseconds since 1970. It never runs backwards.
    pub fn now(&self) -> u64 {
        self.clock.now()
    }

    /// Whether it is past its expiry.
    pub(super) fn has_expired(&self, filter: &Filter) -> bool {
        filter.expires_at().is_some_and(|millis| millis <= self.now())
    }

    /// The right to change filters, one at a time.
    pub(super) fn change(&self) -> MutexGuard<'_, Changing> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Clock {
    wall: Arc<dyn WallClock>,
    /// The latest time that it has told.
    latest: AtomicU64,
}

impl Clock {
    fn now(&self) -> u64 {
        let wall = self.wall.now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let millis = u64::try_from(wall.as_millis()).unwrap_or(u64::MAX);
        self.latest.fetch_max(millis, AcqRel).max(millis)
    }
}

/// A store with anything else is not touched.
fn check_contents(db: &Db, path: &Path) -> Result<()> {
    let others = db.keyspaces()?.into_iter().find(|name| name != RECORDS && name != ITEMS);
    let stranger = match others {
        Some(name) => Some(format!("the keyspace \"{name}\"")),
        None => db.iter().keys().next_key()?.map(|_| "rows of its own".to_owned()),
    };
    match stranger {
        None => Ok(()),
        Some(what) => Err(Refusal::Store(Error::InvalidArgument(format!(
            "{} has {what}, so it is not a store of filters: choose another directory",
            path.display()
        )))),
    }
}

fn keyspace(db: &Db, name: &str) -> Result<Keyspace> {
    match db.create_keyspace(name, KeyspaceOptions::new()) {
        Err(Error::KeyspaceExists { .. }) => Ok(db.keyspace(name)?),
        other => Ok(other?),
    }
}

/// The filters in the records, and a number that none has.
fn read_names(records: &Keyspace, path: &Path) -> Result<(Names, u64)> {
    let (names, mut next_id) = (Names::default(), 1);
    let mut rows = records.iter();
    while let Some((key, value)) = rows.next_row()? {
        let record = Record::decode(value).map_err(|why| unreadable(why, key, path))?;
        let place = Place::of_key(key).ok_or_else(|| unreadable(Unreadable::Damaged, key, path))?;
        next_id = next_id.max(record.id.saturating_add(1));
        names.put(place, Arc::new(Filter::new(&record)));
    }
    Ok((names, next_id))
}

fn unreadable(why: Unreadable, key: &[u8], path: &Path) -> Refusal {
    let name = key.get(1..).unwrap_or_default().escape_ascii();
    let file: PathBuf = path.to_path_buf();
    Refusal::Store(match why {
        Unreadable::Damaged => {
            Error::corruption(file, 0, format!("the record of filter '{name}' is damaged"))
        }
        Unreadable::Newer(version) => Error::InvalidArgument(format!(
            "{}: the record of filter '{name}' has version {version}, of a newer build: open it with that",
            file.display()
        )),
    })
}
