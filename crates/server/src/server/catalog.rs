//! What a name stands for: a filter of the store, or a guard that was given to the server.

use super::writer::{Group, Writer};
use crate::filters::{Created, Filter, Filters, ItemCommands, ItemOutcome, Mark, Parameters, Refusal};
use sidebloom::guard::{Changes, Guard};
use std::sync::Arc;
use std::thread::JoinHandle;

/// A guard under a name, in database 0.
pub struct NamedGuard {
    /// The key that clients give.
    pub name: Vec<u8>,
    pub guard: Guard,
    /// `None` if clients cannot change it.
    pub writer: Option<Writer<Guard>>,
}

/// The store of filters with what changes it.
pub struct OwnFilters {
    pub filters: Arc<Filters>,
    pub writer: Writer<Arc<Filters>>,
}

/// All that has a name.
pub struct Catalog {
    guards: Vec<Arc<NamedGuard>>,
    own: Option<OwnFilters>,
}

/// What a name stands for.
#[derive(Clone)]
pub enum Target {
    Guard(Arc<NamedGuard>),
    Filter(Arc<Filter>),
}

/// The threads that write. When one ends without an error, what it wrote is durable.
pub type Writing = Vec<JoinHandle<sidebloom::Result<()>>>;

/// A guard to be served.
pub struct ServedGuard {
    /// The key that clients give.
    pub name: Vec<u8>,
    /// The guard.
    pub guard: Guard,
    /// Whether something else changes it, so that clients cannot.
    pub is_followed: bool,
}

impl Catalog {
    /// Starts a thread for each that clients can change.
    pub fn start(
        guards: Vec<ServedGuard>,
        filters: Option<Arc<Filters>>,
    ) -> std::io::Result<(Self, Writing)> {
        let (mut writing, mut named) = (Vec::new(), Vec::new());
        for ServedGuard { name, guard, is_followed } in guards {
            let writer = if is_followed {
                None
            } else {
                let (writer, thread) = Writer::start(guard.clone())?;
                writing.push(thread);
                Some(writer)
            };
            named.push(Arc::new(NamedGuard { name, guard, writer }));
        }
        let own = match filters {
            None => None,
            Some(filters) => {
                let (writer, thread) = Writer::start(Arc::clone(&filters))?;
                writing.push(thread);
                Some(OwnFilters { filters, writer })
            }
        };
        Ok((Catalog { guards: named, own }, writing))
    }

    /// The store of filters, if the server has one.
    pub fn own(&self) -> Option<&OwnFilters> {
        self.own.as_ref()
    }

    pub fn guards(&self) -> &[Arc<NamedGuard>] {
        &self.guards
    }

    /// The guard with this name.
    pub fn guard(&self, database: u8, name: &[u8]) -> Option<&Arc<NamedGuard>> {
        self.guards.iter().find(|guard| database == 0 && guard.name == name)
    }

    pub fn find(&self, database: u8, name: &[u8]) -> Option<Target> {
        match self.guard(database, name) {
            Some(guard) => Some(Target::Guard(Arc::clone(guard))),
            None => self.own.as_ref()?.filters.find(database, name).map(Target::Filter),
        }
    }

    /// Creates a filter. May wait for other changes, and for the disk.
    pub fn create(&self, database: u8, name: &[u8], parameters: Parameters) -> Result<Created, Refusal> {
        let own = self.own.as_ref().ok_or(Refusal::NotFound)?;
        own.filters.create(database, name, parameters)
    }

    /// What is at this name now, to find out later whether it has changed.
    pub fn mark(&self, database: u8, name: &[u8]) -> Option<Mark> {
        self.own.as_ref()?.filters.mark(database, name)
    }
}

impl Group for Guard {
    type Changes = Changes;
    type Outcome = bool;

    fn len(changes: &Changes) -> usize {
        changes.len()
    }

    fn items(changes: &Changes) -> usize {
        changes.len()
    }

    fn append(changes: &mut Changes, later: Changes) {
        changes.append(&later);
    }

    fn write(&self, changes: &Changes) -> Result<Vec<bool>, String> {
        self.write_each(changes).map_err(|error| error.to_string())
    }

    fn sync(&self) -> sidebloom::Result<()> {
        Guard::sync(self)
    }
}

impl Group for Arc<Filters> {
    type Changes = ItemCommands;
    type Outcome = Result<Vec<ItemOutcome>, Refusal>;

    fn len(commands: &ItemCommands) -> usize {
        commands.len()
    }

    fn items(commands: &ItemCommands) -> usize {
        commands.items()
    }

    fn append(commands: &mut ItemCommands, later: ItemCommands) {
        commands.append(later);
    }

    fn write(&self, commands: &ItemCommands) -> Result<Vec<Self::Outcome>, String> {
        self.apply(commands).map_err(|refusal| match refusal {
            Refusal::Store(error) => error.to_string(),
            other => other.to_string(),
        })
    }

    fn sync(&self) -> sidebloom::Result<()> {
        self.db().sync()
    }
}
