//! Creating, deleting and renaming filters, and when they expire.

use super::filter::Filter;
use super::names::{DATABASES, FILTER_BYTES, Place};
use super::parameters::Parameters;
use super::record::{ItemKey, Record, Totals};
use super::refusal::{Refusal, Result};
use super::store::{Changing, Filters};
use sidebloom::{Batch, KeyHash, KeyHasher, MAX_KEY_BYTES};
use std::sync::Arc;

/// Expired filters that one call removes, at most.
const EXPIRED_AT_ONCE: usize = 256;

/// The outcome of [`Filters::create`].
#[derive(Debug, Clone)]
pub enum Created {
    /// It is new.
    New(Arc<Filter>),
    /// There already was one, of either kind, with its own parameters.
    Existing(Arc<Filter>),
}

impl Created {
    /// The filter in either case.
    pub fn filter(self) -> Arc<Filter> {
        match self {
            Created::New(filter) | Created::Existing(filter) => filter,
        }
    }
}

impl Filters {
    /// The filter with this name; created if there is none.
    ///
    /// # Errors
    /// [`Refusal::NameTooLong`], [`Refusal::TooManyNames`], [`Refusal::Store`].
    pub fn create(&self, database: u8, name: &[u8], parameters: Parameters) -> Result<Created> {
        let (_, hash_key) = KeyHasher::random(KeyHash::SipHash13).map_err(sidebloom::Error::from)?.to_code();
        self.create_with_key(database, name, parameters, hash_key)
    }

    /// [`create`](Self::create) with a given key of the hash.
    pub(super) fn create_with_key(
        &self,
        database: u8,
        name: &[u8],
        parameters: Parameters,
        hash_key: [u64; 2],
    ) -> Result<Created> {
        if 1 + name.len() > MAX_KEY_BYTES {
            return Err(Refusal::NameTooLong);
        }
        let mut changing = self.change();
        if let Some(existing) = self.find(database, name) {
            return Ok(Created::Existing(existing));
        }
        if self.names.bytes() + FILTER_BYTES + name.len() > self.names_bytes_max {
            return Err(Refusal::TooManyNames);
        }
        let place = Place::new(database, name);
        let id = changing.next_id;
        let record = Record { id, hash_key, parameters, totals: Totals::default(), expires_at: 0 };
        let mut batch = Batch::new();
        let expired = self.names.get(place.as_key()); // Otherwise it would have been found.
        if let Some(expired) = &expired {
            self.delete_items(&mut batch, expired);
        }
        batch.keyspace(&self.records).put(place.as_key(), record.encode());
        self.db.write(batch)?;
        changing.next_id += 1;
        expired.iter().for_each(|expired| expired.set_gone());
        let filter = Arc::new(Filter::new(&record));
        self.names.put(place, Arc::clone(&filter));
        Ok(Created::New(filter))
    }

    /// Deletes filters. Returns how many of the names had one.
    ///
    /// # Errors
    /// [`Refusal::Store`].
    pub fn delete<N: AsRef<[u8]>>(&self, database: u8, names: &[N]) -> Result<u64> {
        let changing = self.change();
        let mut places: Vec<Place> = names
            .iter()
            .filter(|name| self.find(database, name.as_ref()).is_some())
            .map(|name| Place::new(database, name.as_ref()))
            .collect();
        places.sort();
        places.dedup();
        self.delete_places(&changing, &places)?;
        Ok(places.len() as u64)
    }

    /// Whether a filter has expired that is not deleted yet.
    pub fn has_any_expired(&self) -> bool {
        !self.names.expired(self.now(), 1).is_empty()
    }

    /// Deletes some filters that have expired.
    ///
    /// # Errors
    /// [`Refusal::Store`].
    pub fn delete_expired(&self) -> Result<()> {
        let changing = self.change();
        let expired = self.names.expired(self.now(), EXPIRED_AT_ONCE);
        self.delete_places(&changing, &expired)
    }

    fn delete_places(&self, _: &Changing, places: &[Place]) -> Result<()> {
        if places.is_empty() {
            return Ok(());
        }
        let mut batch = Batch::new();
        for place in places {
            if let Some(filter) = self.names.get(place.as_key()) {
                self.delete_items(&mut batch, &filter);
            }
            batch.keyspace(&self.records).delete(place.as_key());
        }
        self.db.write(batch)?;
        places.iter().filter_map(|place| self.names.remove(place)).for_each(|filter| filter.set_gone());
        Ok(())
    }

    /// Deletes the filters of a database, or of all.
    ///
    /// # Errors
    /// [`Refusal::Store`].
    pub fn flush(&self, database: Option<u8>) -> Result<()> {
        let changing = self.change();
        let all = self.places(database);
        if database.is_some() || all.is_empty() {
            return self.delete_places(&changing, &all);
        }
        // Two ranges instead of one for each filter.
        let mut batch = Batch::new();
        batch.keyspace(&self.items).delete_range(..);
        batch.keyspace(&self.records).delete_range(..);
        self.db.write(batch)?;
        all.iter().filter_map(|place| self.names.remove(place)).for_each(|filter| filter.set_gone());
        Ok(())
    }

    fn places(&self, database: Option<u8>) -> Vec<Place> {
        debug_assert!(database.is_none_or(|database| database < DATABASES));
        self.names
            .places()
            .into_iter()
            .filter(|place| database.is_none_or(|database| place.database() == database))
            .collect()
    }

    /// Renames a filter. What was at the new name is deleted, unless `only_if_free`, which then returns
    /// `false` and renames nothing.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], [`Refusal::NameTooLong`], [`Refusal::TooManyNames`] for a longer name,
    /// [`Refusal::Store`].
    pub fn rename(&self, database: u8, from: &[u8], to: &[u8], only_if_free: bool) -> Result<bool> {
        if 1 + to.len() > MAX_KEY_BYTES {
            return Err(Refusal::NameTooLong);
        }
        let _changing = self.change();
        let filter = self.find(database, from).ok_or(Refusal::NotFound)?;
        if only_if_free && self.find(database, to).is_some() {
            return Ok(false);
        }
        if from == to {
            return Ok(true);
        }
        let longer = to.len().saturating_sub(from.len());
        if longer > 0 && self.names.bytes() + longer > self.names_bytes_max {
            return Err(Refusal::TooManyNames);
        }
        let (from, to) = (Place::new(database, from), Place::new(database, to));
        let replaced = self.names.get(to.as_key());
        let mut batch = Batch::new();
        if let Some(replaced) = &replaced {
            self.delete_items(&mut batch, replaced);
        }
        let mut records = batch.keyspace(&self.records);
        records.delete(from.as_key());
        records.put(to.as_key(), filter.record(filter.totals()).encode());
        self.db.write(batch)?;
        replaced.iter().for_each(|replaced| replaced.set_gone());
        self.names.rename(&from, to);
        Ok(true)
    }

    /// Makes a filter expire at a time, in milliseconds since 1970, or never. Returns `false` if there is
    /// none, or if `may_set` refuses, given when it expires now. One that is to expire in the past is
    /// deleted.
    ///
    /// # Errors
    /// [`Refusal::Store`].
    pub fn set_expiry(
        &self,
        database: u8,
        name: &[u8],
        millis: Option<u64>,
        may_set: impl FnOnce(Option<u64>) -> bool,
    ) -> Result<bool> {
        let changing = self.change();
        let Some(filter) = self.find(database, name).filter(|filter| may_set(filter.expires_at())) else {
            return Ok(false);
        };
        let place = Place::new(database, name);
        if millis.is_some_and(|millis| millis <= self.now()) {
            self.delete_places(&changing, &[place])?;
            return Ok(true);
        }
        let millis = millis.unwrap_or(0);
        let record = Record { expires_at: millis, ..filter.record(filter.totals()) };
        let mut batch = Batch::new();
        batch.keyspace(&self.records).put(place.as_key(), record.encode());
        self.db.write(batch)?;
        self.names.set_expiry(&filter, millis);
        Ok(true)
    }

    /// Forgets how many items a cuckoo filter has removed.
    ///
    /// # Errors
    /// [`Refusal::Store`].
    pub fn compact(&self, filter: &Filter) -> Result<()> {
        let _changing = self.change();
        let Some(place) = self.names.place_of(filter.id()) else { return Err(Refusal::NotFound) };
        let totals = Totals { deletions: 0, ..filter.totals() };
        let mut batch = Batch::new();
        batch.keyspace(&self.records).put(place.as_key(), filter.record(totals).encode());
        self.db.write(batch)?;
        filter.set_totals(totals);
        Ok(())
    }

    /// Deletes all rows of a filter.
    fn delete_items(&self, batch: &mut Batch, filter: &Filter) {
        if filter.items() > 0 {
            batch.keyspace(&self.items).delete_prefix(ItemKey::prefix(filter.id()));
        }
    }
}
