//! The refresh protocol against a model: transactions begin, commit to the database and finish in every
//! order, during all phases of refreshes, some of which fail. After each step, no key of the database gets a
//! "no". Threads take turns, so that a seed is reproducible.

use crate::support::{SimFs, sized};
use sidebloom::filter::Verdict;
use sidebloom::guard::{Change, Guard, GuardOptions, Source};
use sidebloom::{Durability, Error, Result};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::Scope;

const KEYS: usize = 8;
/// The number of rows of each key.
type Database = Mutex<[u64; KEYS]>;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Go {
    On,
    /// Fail instead of the next step.
    Fail,
    /// Do the next step, then report a failure.
    Doubt,
}

/// The thread's side: it runs only while the test waits for it.
struct Turn(Receiver<Go>, Sender<bool>);

impl Turn {
    fn pause(&self) -> Go {
        self.1.send(true).unwrap();
        self.0.recv().expect("the test has failed elsewhere")
    }
}

/// The test's side.
struct Actor(Sender<Go>, Receiver<bool>);

impl Actor {
    /// Runs `work` to its first pause.
    fn start<'s>(scope: &'s Scope<'s, '_>, work: impl FnOnce(&Turn) + Send + 's) -> Self {
        let ((go, wait), (tell, paused)) = (channel(), channel());
        scope.spawn(move || {
            let turn = Turn(wait, tell);
            work(&turn);
            turn.1.send(false).unwrap();
        });
        assert!(paused.recv().unwrap());
        Actor(go, paused)
    }

    /// Runs it to its next pause. Returns whether there was one.
    fn step(&self, go: Go) -> bool {
        self.0.send(go).unwrap();
        self.1.recv().unwrap()
    }
}

/// A refresh's view of the database, with a pause before and after its snapshot and after each row.
struct Paused<'a>(&'a Database, Option<&'a Turn>);

impl Paused<'_> {
    fn pause(&self) -> Result<()> {
        match self.1.map_or(Go::On, Turn::pause) {
            Go::On => Ok(()),
            Go::Fail | Go::Doubt => Err(Error::ReadOnly),
        }
    }
}

impl Source for Paused<'_> {
    fn stream(&mut self, visit: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        (0..3).try_for_each(|_| self.pause())?;
        let moment = *self.0.lock().unwrap();
        self.pause()?;
        for (key, count) in moment.into_iter().enumerate() {
            for _ in 0..count {
                visit(&[key as u8])?;
                self.pause()?;
            }
        }
        Ok(())
    }

    fn count(&mut self, key: &[u8]) -> Result<u64> {
        Ok(self.0.lock().unwrap()[usize::from(key[0])])
    }

    fn apply(&mut self, _: &[Change<'_>]) -> Result<()> {
        Ok(())
    }
}

/// Keys, and whether a row of each is inserted or removed.
type Rows = Vec<(usize, bool)>;

struct Model<'m> {
    guard: &'m Guard,
    database: &'m Database,
    /// Whether each key is stored once and its writers run one after the other; otherwise rows are counted,
    /// and writers run in any order.
    is_set: bool,
    random: &'m mut fastrand::Rng,
    /// Transactions, the rows that they change, and whether the database has committed them.
    open: Vec<(Actor, Rows, bool)>,
    refresh: Option<Actor>,
    /// Refreshes that have succeeded.
    refreshed: u64,
}

fn commit(database: &Database, rows: &Rows, is_set: bool) {
    let mut counts = database.lock().unwrap();
    for (key, comes) in rows {
        let count = &mut counts[*key];
        *count = if is_set { u64::from(*comes) } else { *count + u64::from(*comes) - u64::from(!*comes) };
    }
}

impl<'m> Model<'m> {
    /// Chooses changes that no open transaction forbids by having locked the key or deleting the row.
    fn choose(&mut self) -> Rows {
        let mut rows = Rows::new();
        for _ in 0..self.random.usize(1..4) {
            let (key, comes) = (self.random.usize(..KEYS), self.random.bool());
            let counts = self.database.lock().unwrap();
            let others = self.open.iter().filter(|(_, _, committed)| self.is_set || !committed);
            let taken = others.flat_map(|(_, rows, _)| rows).chain(&rows);
            let is_free = if self.is_set {
                taken.filter(|(other, _)| *other == key).count() == 0
            } else {
                comes || (taken.filter(|row| **row == (key, false)).count() as u64) < counts[key]
            };
            rows.extend(is_free.then_some((key, comes)));
        }
        rows
    }

    fn begin<'s>(&mut self, scope: &'s Scope<'s, 'm>) {
        let (guard, database, is_set, rows) = (self.guard, self.database, self.is_set, self.choose());
        let changed = rows.clone();
        let transaction = move |turn: &Turn| {
            let mut tx = guard.transaction();
            for &(key, comes) in &changed {
                match (comes, is_set) {
                    (true, true) => drop(tx.insert_new([key as u8]).unwrap()),
                    (true, false) => drop(tx.insert([key as u8]).unwrap()),
                    (false, true) if !guard.contains([key as u8]).unwrap() => {}
                    (false, _) => drop(tx.remove([key as u8]).unwrap()),
                }
            }
            let _ = tx.commit(|| {
                let go = turn.pause();
                if go != Go::Fail {
                    commit(database, &changed, is_set);
                }
                if go != Go::On {
                    return Err(Error::ReadOnly);
                }
                turn.pause();
                Ok(())
            });
        };
        self.open.push((Actor::start(scope, transaction), rows, false));
    }

    fn step_transaction(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let chosen = self.random.usize(..self.open.len());
        let go = [Go::On, Go::On, Go::On, Go::On, Go::Fail, Go::Doubt][self.random.usize(..6)];
        let (actor, _, committed) = &mut self.open[chosen];
        *committed = true;
        if !actor.step(go) {
            self.open.swap_remove(chosen);
        }
    }

    fn step_refresh<'s>(&mut self, scope: &'s Scope<'s, 'm>) {
        let (guard, database) = (self.guard, self.database);
        let Some(actor) = &self.refresh else {
            let refresh = move |turn: &Turn| drop(guard.refresh(&mut Paused(database, Some(turn))));
            self.refresh = Some(Actor::start(scope, refresh));
            return;
        };
        let go = if self.random.u32(..40) == 0 { Go::Fail } else { Go::On };
        if !actor.step(go) {
            self.refresh = None;
            self.refreshed += u64::from(go == Go::On);
        }
    }

    /// Changes by separate calls, all at once.
    fn plain(&mut self) {
        let rows = self.choose();
        for &(key, comes) in &rows {
            let key = [key as u8];
            match (comes, self.is_set) {
                (true, true) => drop(self.guard.insert_new(key).unwrap()),
                (true, false) => self.guard.insert(key).unwrap(),
                (false, _) => {}
            }
        }
        commit(self.database, &rows, self.is_set);
        rows.iter().filter(|(_, comes)| !comes).for_each(|(key, _)| self.guard.remove([*key as u8]).unwrap());
    }

    fn check(&self, at: &str) {
        for (key, rows) in self.database.lock().unwrap().into_iter().enumerate() {
            let count = self.guard.count([key as u8]).unwrap();
            assert!(count >= rows && !(self.is_set && count > 1), "{at}: {count} of key {key}, {rows} rows");
            let verdict = self.guard.may_contain([key as u8]);
            assert!(rows == 0 || verdict == Verdict::Maybe, "{at}: key {key} was denied");
        }
    }

    fn run<'s>(&mut self, scope: &'s Scope<'s, 'm>, at: &str) {
        // The speed of transactions: slow ones stay open during whole refreshes.
        let hurry = self.random.u32(1..10);
        for step in 0..600 {
            match self.random.u32(..20) {
                0..3 if self.open.len() < 4 => self.begin(scope),
                0..9 if self.random.u32(..10) < hurry => self.step_transaction(),
                0..18 => self.step_refresh(scope),
                18 => self.plain(),
                _ => {
                    let key = self.random.usize(..KEYS);
                    if self.database.lock().unwrap()[key] == 0 {
                        self.guard.confirm_absent([key as u8]).unwrap();
                    }
                }
            }
            self.check(&format!("{at}, step {step}"));
        }
        while !self.open.is_empty() || self.refresh.is_some() {
            self.step_transaction();
            self.refresh.is_some().then(|| self.step_refresh(scope));
            self.check(at);
        }
    }
}

fn against_the_model(is_set: bool) {
    let mut refreshed = 0;
    for seed in 0..sized(4, 20) {
        let mut random = fastrand::Rng::with_seed(seed);
        let fs = SimFs::new();
        let options = || {
            let options = GuardOptions::new().filesystem(Arc::new(fs.clone())).durability(Durability::Os);
            options.known_absent(4)
        };
        let database = Database::default();
        drop(options().build("guard", [[0u8; 1]; 0]).unwrap());
        for life in 0..3 {
            let guard = options().open("guard").unwrap();
            let at = format!("set: {is_set}, seed {seed}, life {life}");
            refreshed += std::thread::scope(|scope| {
                let (guard, database, random) = (&guard, &database, &mut random);
                // Created here, so that the threads end when an assertion fails.
                let mut model =
                    Model { guard, database, is_set, random, open: Vec::new(), refresh: None, refreshed: 0 };
                model.run(scope, &at);
                model.refreshed
            });
            if life == 1 {
                guard.refresh(&mut Paused(&database, None)).unwrap();
                let counts = *database.lock().unwrap();
                assert_eq!(std::array::from_fn(|key| guard.count([key as u8]).unwrap()), counts, "{at}");
                assert_eq!(guard.stats().rows, counts.iter().sum::<u64>(), "{at}");
            }
        }
    }
    assert!(refreshed > sized(60, 300), "{refreshed}");
}

/// No key of a table is denied, whatever the order of transactions and refreshes.
#[test]
fn no_key_of_a_table_is_denied_in_any_order_of_transactions_and_refreshes() {
    against_the_model(false);
}

/// No key of a set is denied, whatever the order of transactions and refreshes.
#[test]
fn no_key_of_a_set_is_denied_in_any_order_of_transactions_and_refreshes() {
    against_the_model(true);
}
