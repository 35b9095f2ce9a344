//! Adding and removing items.
//!
//! 1. All rows that the commands ask for are read at once.
//! 2. The commands are applied in order to what was read, so that each sees those before it.
//! 3. Changed rows and the records of changed filters are one batch, so that a filter's totals and its rows
//!    never differ, even after a crash.
//! 4. The totals in memory follow once the batch is written.

use super::filter::Filter;
use super::parameters::Kind;
use super::record::{ITEMS_MAX, ItemKey, Totals, encode_count};
use super::refusal::{Refusal, Result};
use super::store::Filters;
use sidebloom::Batch;
use std::collections::HashMap;
use std::sync::Arc;

/// What a command does with its items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemOp {
    /// Adds an item unless it is there.
    AddNew,
    /// Adds an item once more. For cuckoo filters.
    Add,
    /// Removes an item once. For cuckoo filters.
    Remove,
}

/// What became of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemOutcome {
    /// It was added or removed.
    Changed,
    /// It was there already, or was not there to be removed.
    Unchanged,
    /// The filter is full.
    Full,
}

/// Commands on items, of any number of filters.
#[derive(Debug, Default)]
pub struct ItemCommands {
    commands: Vec<ItemCommand>,
    hashes: Vec<u128>,
}

#[derive(Debug)]
struct ItemCommand {
    filter: Arc<Filter>,
    op: ItemOp,
    /// Whether it continues a command that was accepted.
    is_rest: bool,
    /// Number of its items.
    len: usize,
}

/// The outcome of each command: that of its items, or why it was refused as a whole. A Bloom filter that is
/// full ends a command, so the last outcome of its items is [`ItemOutcome::Full`].
pub type ItemOutcomes = Vec<std::result::Result<Vec<ItemOutcome>, Refusal>>;

impl ItemCommands {
    /// Adds a command, given the hashes of its items ([`Filter::hash`]). `is_rest` if another call had the
    /// first items of a large command and has accepted it, so that this one does not refuse it.
    pub fn push(
        &mut self,
        filter: &Arc<Filter>,
        op: ItemOp,
        is_rest: bool,
        hashes: impl IntoIterator<Item = u128>,
    ) {
        let before = self.hashes.len();
        self.hashes.extend(hashes);
        let len = self.hashes.len() - before;
        self.commands.push(ItemCommand { filter: Arc::clone(filter), op, is_rest, len });
    }

    /// Adds the commands of another.
    pub fn append(&mut self, mut later: ItemCommands) {
        self.commands.append(&mut later.commands);
        self.hashes.append(&mut later.hashes);
    }

    /// Number of commands.
    pub fn len(&self) -> usize {
        self.commands.len()
    }

    /// Number of items of all commands.
    pub fn items(&self) -> usize {
        self.hashes.len()
    }

    /// Whether there is no command.
    pub fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// Each command with the hashes of its items.
    fn each(&self) -> impl Iterator<Item = (&ItemCommand, &[u128])> {
        let mut rest = self.hashes.as_slice();
        self.commands.iter().map(move |command| {
            let (hashes, others) = rest.split_at_checked(command.len).unwrap_or_default();
            rest = others;
            (command, hashes)
        })
    }
}

/// What the commands so far have made of rows and totals.
struct Work<'c> {
    /// Counts of rows, by key; as read at first.
    counts: HashMap<ItemKey, Count>,
    totals: HashMap<u64, (&'c Arc<Filter>, Totals)>,
    max_expansions: u64,
}

#[derive(Clone, Copy)]
struct Count {
    now: u64,
    is_changed: bool,
}

impl Filters {
    /// Adds items to a Bloom filter unless they are there. Whether each was added.
    ///
    /// # Errors
    /// [`Refusal::Full`] once no more fit, after those that did were added; the errors of
    /// [`apply`](Self::apply).
    pub fn add<I: AsRef<[u8]>>(&self, filter: &Arc<Filter>, items: &[I]) -> Result<Vec<bool>> {
        let mut commands = ItemCommands::default();
        commands.push(filter, ItemOp::AddNew, false, items.iter().map(|item| filter.hash(item.as_ref())));
        let outcomes = self.apply(&commands)?.pop().unwrap_or(Err(Refusal::NotFound))?;
        if outcomes.contains(&ItemOutcome::Full) {
            return Err(Refusal::Full);
        }
        Ok(outcomes.into_iter().map(|outcome| outcome == ItemOutcome::Changed).collect())
    }

    /// Applies commands in order, all of them or none. A refused command changes nothing, and the others are
    /// applied.
    ///
    /// # Errors
    /// [`Refusal::Store`]: no command was applied, unless the store cannot tell
    /// ([`sidebloom::Error::Poisoned`]).
    pub fn apply(&self, commands: &ItemCommands) -> Result<ItemOutcomes> {
        let _changing = self.change();
        let mut work = self.read(commands)?;
        let outcomes = commands.each().map(|(command, hashes)| work.apply(command, hashes)).collect();
        let changed = work.changed();
        if !changed.is_empty() {
            self.write(&work, &changed)?;
        }
        Ok(outcomes)
    }

    fn read<'c>(&self, commands: &'c ItemCommands) -> Result<Work<'c>> {
        let keys: Vec<ItemKey> = commands
            .each()
            .flat_map(|(command, hashes)| hashes.iter().map(|hash| command.filter.key(*hash)))
            .collect();
        let counts = self.items_at(&keys)?;
        let counts = counts.into_iter().map(|now| Count { now, is_changed: false });
        Ok(Work {
            counts: keys.into_iter().zip(counts).collect(),
            totals: HashMap::new(),
            max_expansions: self.max_expansions(),
        })
    }

    fn write(&self, work: &Work<'_>, changed: &[(&Arc<Filter>, Totals)]) -> Result<()> {
        let mut batch = Batch::new();
        let mut rows = batch.keyspace(&self.items);
        for (key, count) in work.counts.iter().filter(|(_, count)| count.is_changed) {
            if count.now == 0 {
                rows.delete(key);
            } else {
                let (bytes, len) = encode_count(count.now);
                rows.put(key, bytes.split_at(len).0);
            }
        }
        let mut records = batch.keyspace(&self.records);
        for (filter, totals) in changed {
            if let Some(place) = self.names.place_of(filter.id()) {
                records.put(place.as_key(), filter.record(*totals).encode());
            }
        }
        self.db.write(batch)?;
        changed.iter().for_each(|(filter, totals)| filter.set_totals(*totals));
        Ok(())
    }
}

impl<'c> Work<'c> {
    fn apply(
        &mut self,
        command: &'c ItemCommand,
        hashes: &[u128],
    ) -> std::result::Result<Vec<ItemOutcome>, Refusal> {
        let (filter, op) = (&command.filter, command.op);
        if filter.is_gone() {
            return Err(Refusal::NotFound);
        }
        let (_, totals) = self.totals.entry(filter.id()).or_insert_with(|| (filter, filter.totals()));
        let grows = op != ItemOp::Remove && filter.kind() == Kind::Cuckoo && !command.is_rest;
        if grows && filter.parameters().parts(totals.items) >= self.max_expansions {
            return Err(Refusal::GrownTooOften);
        }
        let mut outcomes = Vec::with_capacity(hashes.len());
        for hash in hashes {
            let Some(count) = self.counts.get_mut(&filter.key(*hash)) else { continue }; // All were read.
            let outcome = match op {
                ItemOp::AddNew if count.now > 0 => ItemOutcome::Unchanged,
                ItemOp::Remove if count.now == 0 => ItemOutcome::Unchanged,
                ItemOp::Remove => {
                    count.now -= 1;
                    totals.items -= 1;
                    totals.deletions += 1;
                    if compacts(filter, *totals) {
                        totals.deletions = 0;
                    }
                    ItemOutcome::Changed
                }
                ItemOp::AddNew | ItemOp::Add
                    if filter.parameters().is_full(totals.items) || totals.items == ITEMS_MAX =>
                {
                    ItemOutcome::Full
                }
                ItemOp::AddNew | ItemOp::Add => {
                    count.now += 1;
                    totals.items += 1;
                    ItemOutcome::Changed
                }
            };
            count.is_changed |= outcome == ItemOutcome::Changed;
            outcomes.push(outcome);
            if outcome == ItemOutcome::Full && filter.kind() == Kind::Bloom {
                break;
            }
        }
        Ok(outcomes)
    }

    /// The filters whose totals are no longer what they were, with the new ones.
    fn changed(&self) -> Vec<(&'c Arc<Filter>, Totals)> {
        let is_changed = |(filter, totals): &(&'c Arc<Filter>, Totals)| filter.totals() != *totals;
        self.totals.values().copied().filter(is_changed).collect()
    }
}

/// Whether RedisBloom compacts a cuckoo filter with these totals: once a tenth of the items was removed, if
/// it has more than one part.
fn compacts(filter: &Filter, totals: Totals) -> bool {
    filter.parameters().parts(totals.items) > 1 && totals.deletions > totals.items / 10
}
