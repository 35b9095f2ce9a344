//! What is promised of keyspaces that come and go next to the writers' rows.

use crate::brief;
use sidebloom::Db;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// The rows of each keyspace, written as one synced batch.
pub const ROWS: u64 = 40;

/// What has become of a keyspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is being created and filled.
    Begun,
    /// Its rows are durable.
    Filled,
    Dropping,
    Dropped,
}

/// The keyspaces that a store has, with the number of their rows.
pub type Keyspaces = BTreeMap<String, u64>;

/// The fates at one moment.
#[derive(Debug, Default, Clone)]
pub struct FatesNow {
    /// Whether the store was opened in this life. Before, a loss of power may undo the end of the last life.
    is_open: bool,
    pub of: BTreeMap<String, Fate>,
}

/// The fates so far, kept up to date by the threads that use the store.
#[derive(Debug, Default)]
pub struct Fates(Mutex<FatesNow>);

impl Fates {
    /// Of a store with these keyspaces, which may not be durable yet.
    pub fn new(found: &Keyspaces) -> Self {
        let of = found.keys().map(|name| (name.clone(), Fate::Begun)).collect();
        Fates(Mutex::new(FatesNow { is_open: false, of }))
    }

    pub fn now(&self) -> FatesNow {
        self.0.lock().unwrap().clone()
    }

    pub fn set(&self, name: &str, fate: Fate) {
        self.0.lock().unwrap().of.insert(name.to_owned(), fate);
    }

    /// The store was opened: what a reader can see is durable.
    pub fn open(&self, found: &Keyspaces) {
        for (name, rows) in found {
            self.set(name, if *rows == ROWS { Fate::Filled } else { Fate::Begun });
        }
        self.0.lock().unwrap().is_open = true;
    }
}

/// The keyspaces of a store besides the ones of the writers' rows and of brief rows.
pub fn find(db: &Db, home: Option<&str>) -> Result<Keyspaces, String> {
    let mut found = Keyspaces::new();
    for name in db
        .keyspaces()
        .map_err(|e| format!("keyspaces: {e}"))?
        .into_iter()
        .filter(|n| Some(n.as_str()) != home && n != brief::NAME)
    {
        let rows = db.keyspace(&name).and_then(|keyspace| keyspace.iter().count());
        found.insert(name, rows.map_err(|e| format!("count the rows of a keyspace: {e}"))?);
    }
    Ok(found)
}

/// Checks what a crash left.
pub fn check(told: &FatesNow, found: &Keyspaces) -> Result<(), String> {
    for (name, fate) in &told.of {
        let rows = found.get(name).copied();
        let is_right = match fate {
            Fate::Begun => matches!(rows, None | Some(0 | ROWS)),
            Fate::Filled => rows == Some(ROWS),
            Fate::Dropping => matches!(rows, None | Some(ROWS)),
            Fate::Dropped => rows.is_none(),
        };
        if !is_right {
            return Err(format!("keyspace {name} was {fate:?}, and has {rows:?} rows"));
        }
    }
    let unknown = found.keys().find(|name| told.is_open && !told.of.contains_key(*name));
    unknown.map_or(Ok(()), |name| Err(format!("keyspace {name} was never created, or is back")))
}
