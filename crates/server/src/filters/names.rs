//! The filters by name, in memory.

use super::filter::Filter;
use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

/// Memory of a filter apart from its name, in bytes: the filter with its counters (144), its places in both
/// maps (about 100), and the allocator's rounding.
pub const FILTER_BYTES: usize = 288;

/// Where a filter is: the number of a database, and a name in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place(Arc<[u8]>);

impl Place {
    pub fn new(database: u8, name: &[u8]) -> Self {
        Place(std::iter::once(database).chain(name.iter().copied()).collect())
    }

    /// The key of the record.
    pub fn of_key(key: &[u8]) -> Option<Self> {
        (!key.is_empty()).then(|| Place(key.into()))
    }

    /// The key of the record.
    pub fn as_key(&self) -> &[u8] {
        &self.0
    }

    pub fn database(&self) -> u8 {
        self.0.first().copied().unwrap_or(0)
    }

    pub fn name(&self) -> &[u8] {
        self.0.get(1..).unwrap_or_default()
    }
}

/// Calls `look` with the key of the record with this name, which takes no memory if the name is short.
pub fn with_key<T>(database: u8, name: &[u8], look: impl FnOnce(&[u8]) -> T) -> T {
    let mut short = [database; 64];
    if let Some(key) = short.get_mut(..=name.len()) {
        key.iter_mut().skip(1).zip(name).for_each(|(to, from)| *to = *from);
        return look(key);
    }
    look(Place::new(database, name).as_key())
}

/// The number of databases.
pub const DATABASES: u8 = 16;

impl Borrow<[u8]> for Place {
    fn borrow(&self) -> &[u8] {
        self.as_key()
    }
}

/// Which filter is where.
#[derive(Debug, Default)]
pub struct Names {
    maps: RwLock<Maps>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    filters: usize,
    expiring: usize,
}

#[derive(Debug, Default)]
struct Maps {
    by_place: HashMap<Place, Arc<Filter>>,
    by_id: BTreeMap<u64, Place>,
    /// Those that expire: the time, in milliseconds since 1970, and the number.
    expiring: BTreeSet<(u64, u64)>,
    /// Filters in each database, and those of them that expire.
    counts: [Counts; DATABASES as usize],
    /// Memory of both maps and the filters.
    bytes: usize,
}

impl Names {
    /// The filter with this key of its record.
    pub fn get(&self, key: &[u8]) -> Option<Arc<Filter>> {
        self.read(|maps| maps.by_place.get(key).cloned())
    }

    /// Where a filter is now.
    pub fn place_of(&self, id: u64) -> Option<Place> {
        self.read(|maps| maps.by_id.get(&id).cloned())
    }

    /// Number of filters in a database.
    pub fn count(&self, database: u8) -> usize {
        self.counts(database).filters
    }

    /// Number of filters in a database that expire.
    pub fn expiring(&self, database: u8) -> usize {
        self.counts(database).expiring
    }

    /// Estimated memory, in bytes.
    pub fn bytes(&self) -> usize {
        self.read(|maps| maps.bytes)
    }

    /// Up to `max` filters with numbers from `first` on, in their order, and the number to continue at. No
    /// more once their names have `bytes_max` bytes.
    pub fn page(&self, first: u64, max: usize, bytes_max: usize) -> (Vec<(Place, Arc<Filter>)>, Option<u64>) {
        self.read(|maps| {
            let (mut page, mut bytes) = (Vec::new(), 0);
            for (id, place) in maps.by_id.range(first..) {
                if page.len() == max || bytes >= bytes_max {
                    return (page, Some(*id));
                }
                bytes += place.as_key().len();
                page.extend(maps.by_place.get(place).map(|filter| (place.clone(), Arc::clone(filter))));
            }
            (page, None)
        })
    }

    /// Where all filters are.
    pub fn places(&self) -> Vec<Place> {
        self.read(|maps| maps.by_id.values().cloned().collect())
    }

    /// Puts a filter somewhere, in place of what is there.
    pub fn put(&self, place: Place, filter: Arc<Filter>) {
        self.write(|maps| maps.put(place, filter));
    }

    /// Puts the filter that is at `from` elsewhere, in place of what is there. Nobody finds it at both
    /// places, or at none.
    pub fn rename(&self, from: &Place, to: Place) {
        self.write(|maps| {
            if let Some(filter) = maps.remove(from) {
                maps.put(to, filter);
            }
        });
    }

    pub fn remove(&self, place: &Place) -> Option<Arc<Filter>> {
        self.write(|maps| maps.remove(place))
    }

    /// Up to `max` filters that expire at `now` or before, the first ones first.
    pub fn expired(&self, now: u64, max: usize) -> Vec<Place> {
        self.read(|maps| {
            let expired = maps.expiring.range(..=(now, u64::MAX)).take(max);
            expired.filter_map(|(_, id)| maps.by_id.get(id).cloned()).collect()
        })
    }

    /// Sets when a filter expires, in milliseconds since 1970; 0 if it does not.
    pub fn set_expiry(&self, filter: &Filter, millis: u64) {
        self.write(|maps| {
            let Some(place) = maps.by_id.get(&filter.id()).cloned() else { return };
            maps.forget_expiry(filter, &place);
            filter.set_expiry(millis);
            maps.note_expiry(filter, &place);
        });
    }

    fn counts(&self, database: u8) -> Counts {
        self.read(|maps| maps.counts.get(usize::from(database)).copied().unwrap_or_default())
    }

    fn read<T>(&self, look: impl FnOnce(&Maps) -> T) -> T {
        look(&self.maps.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn write<T>(&self, change: impl FnOnce(&mut Maps) -> T) -> T {
        change(&mut self.maps.write().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Maps {
    fn put(&mut self, place: Place, filter: Arc<Filter>) {
        self.remove(&place);
        self.bytes += bytes_of(&place);
        if let Some(counts) = self.counts_mut(&place) {
            counts.filters += 1;
        }
        self.note_expiry(&filter, &place);
        self.by_id.insert(filter.id(), place.clone());
        self.by_place.insert(place, filter);
    }

    fn remove(&mut self, place: &Place) -> Option<Arc<Filter>> {
        let filter = self.by_place.remove(place)?;
        self.by_id.remove(&filter.id());
        self.forget_expiry(&filter, place);
        self.bytes -= bytes_of(place);
        if let Some(counts) = self.counts_mut(place) {
            counts.filters -= 1;
        }
        Some(filter)
    }

    fn note_expiry(&mut self, filter: &Filter, place: &Place) {
        if let Some(millis) = filter.expires_at() {
            self.expiring.insert((millis, filter.id()));
            if let Some(counts) = self.counts_mut(place) {
                counts.expiring += 1;
            }
        }
    }

    fn forget_expiry(&mut self, filter: &Filter, place: &Place) {
        if let Some(millis) = filter.expires_at() {
            self.expiring.remove(&(millis, filter.id()));
            if let Some(counts) = self.counts_mut(place) {
                counts.expiring -= 1;
            }
        }
    }

    fn counts_mut(&mut self, place: &Place) -> Option<&mut Counts> {
        self.counts.get_mut(usize::from(place.database()))
    }
}

fn bytes_of(place: &Place) -> usize {
    place.as_key().len() + FILTER_BYTES
}
