//! Keeps a guard up to date with a table that others write.

use super::installed;
use super::note::Note;
use super::outbox::{self, Op};
use super::table::{Table, quoted};
use super::{PostgresSource, unfit_for};
use crate::error::{Error, Result};
use crate::guard::handle::Guard;
use crate::guard::refresh::RefreshReport;
use crate::guard::write::Changes;
use ::postgres::fallible_iterator::FallibleIterator;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// How to follow.
#[derive(Debug, Clone, Copy)]
pub struct FollowOptions {
    refresh: bool,
    poll: Duration,
    check: Duration,
    retry_max: Duration,
}

impl Default for FollowOptions {
    fn default() -> Self {
        FollowOptions {
            refresh: false,
            poll: Duration::from_secs(1),
            check: Duration::from_secs(1),
            retry_max: Duration::from_secs(10),
        }
    }
}

impl FollowOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins with a refresh also when the guard could go on from where it is. Default false.
    pub fn refresh(mut self, refresh: bool) -> Self {
        self.refresh = refresh;
        self
    }

    /// How long to wait for a notification before looking all the same, and so the time between two events when nothing happens.
    /// Default one second.
    pub fn poll(mut self, poll: Duration) -> Self {
        self.poll = poll;
        self
    }

    /// How often to look whether the triggers are all there and the partitions are the same; for so long, and [`poll`](Self::poll), what
    /// got past them may get a wrong "no". One short query. Default one second.
    pub fn check(mut self, check: Duration) -> Self {
        self.check = check;
        self
    }

    /// The longest time between two attempts to connect again; the first comes after a tenth of a second, each later one after twice as
    /// long. Default ten seconds.
    pub fn retry_max(mut self, retry_max: Duration) -> Self {
        self.retry_max = retry_max;
        self
    }
}

/// What a follower has done. Each is told when it has just happened.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum FollowEvent {
    /// All rows were counted anew: at the start, after TRUNCATE, or when changes may have been missed.
    Refreshed(RefreshReport),
    /// Changes are in the guard, durably, and will be deleted from the outbox next.
    Applied {
        /// Rows that have come.
        inserted: u64,
        /// Rows that have gone.
        removed: u64,
        /// How long ago the oldest of them was made, in seconds, by the server's clock: the guard was so far behind.
        lag_seconds: f64,
    },
    /// Every change that can be seen is in the guard.
    CaughtUp,
    /// Still suspended; comes again with every look at the catalogue.
    Waiting,
    /// Changes may have got past the triggers: from now on the guard answers "maybe" to everything, until the next
    /// [`Refreshed`](Self::Refreshed). That comes by itself, once what is wrong has been put right.
    Suspended {
        /// What is wrong.
        reason: String,
    },
    /// The table or the column has a new name. It is followed under that; a follower that starts anew must be given it.
    Renamed {
        /// SCHEMA.TABLE.
        table: String,
        /// The column.
        column: String,
    },
    /// The database went away. The guard answers as of the last change.
    Disconnected {
        /// What happened.
        error: Error,
        /// When the connection is tried again.
        retry_in: Duration,
    },
}

/// The first time between two attempts to connect.
const RETRY_MIN: Duration = Duration::from_millis(100);

/// What `report` answers: whether to go on.
type Flow = ControlFlow<()>;

impl PostgresSource {
    /// Creates an outbox for this column and the triggers that fill it, unless they are there: needs the rights of the table's owner.
    /// Waits for transactions that have written the table. Every later change writes one row more, and one for each key of an UPDATE.
    /// Renaming the column, the table or the schema later breaks no write. Before the column is dropped, or its type is changed,
    /// [`remove_trigger`](Self::remove_trigger): the server refuses it until then.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub fn install_trigger(&mut self) -> Result<()> {
        outbox::install(&mut self.client, &self.table).map_err(|error| self.failed(&error))
    }

    /// Removes what [`install_trigger`](Self::install_trigger) has created.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub fn remove_trigger(&mut self) -> Result<()> {
        let Table { home, prefix, .. } = &self.table;
        outbox::remove(&mut self.client, home, prefix).map_err(|error| self.failed(&error))
    }

    /// Applies every change of the table to the guard, until `report` breaks. Refreshes the guard first where it has not followed this
    /// outbox to the end. Connects again when the database goes away; meanwhile the guard answers as of the last change.
    ///
    /// # Errors
    /// [`Error::Database`] when the triggers or the column are missing, when another guard takes the same outbox over, or for an answer
    /// of the server that another attempt would not change; the guard's own, as for [`Guard::write`] and [`Guard::refresh`]. The guard
    /// is whole and can follow again.
    pub fn follow(
        &mut self,
        guard: &Guard,
        options: FollowOptions,
        report: &mut dyn FnMut(FollowEvent) -> Flow,
    ) -> Result<()> {
        let mut refresh = options.refresh;
        let mut retry_in = RETRY_MIN;
        let mut has_failed = false;
        if !outbox::is_installed(&mut self.client, &self.table).map_err(|error| self.failed(&error))? {
            return Err(self.wrong(format!(
                "the triggers on \"{}\" that a follower needs are missing or disabled: install them (PostgresSource::install_trigger)",
                self.table.name
            )));
        }
        loop {
            let outcome = self.follow_connected(guard, options, &mut refresh, &mut |event| {
                (retry_in, has_failed) = (RETRY_MIN, false);
                report(event)
            });
            let mut error = match outcome {
                Ok(()) => return Ok(()),
                // The statement before may have met what was renamed or dropped since the last check: the next one comes first now.
                Err(error) if self.is_connected() => {
                    if std::mem::replace(&mut has_failed, true)
                        || !(self.has_moved()? || self.is_outdated()?)
                    {
                        return Err(error);
                    }
                    continue;
                }
                Err(error) => error,
            };
            loop {
                if report(FollowEvent::Disconnected { error, retry_in }).is_break() {
                    return Ok(());
                }
                std::thread::sleep(retry_in);
                retry_in = (2 * retry_in).min(options.retry_max);
                match self.reconnect()? {
                    None => break,
                    Some(still) => error = still,
                }
            }
        }
    }

    /// As long as the connection lasts. Ends well when `report` breaks.
    fn follow_connected(
        &mut self,
        guard: &Guard,
        options: FollowOptions,
        refresh: &mut bool,
        report: &mut dyn FnMut(FollowEvent) -> Flow,
    ) -> Result<()> {
        let listen = format!("LISTEN {}", quoted(&outbox::channel(&self.table)));
        self.client.batch_execute(&listen).map_err(|error| self.failed(&error))?;
        // What the note names may be in the outbox still.
        *refresh |= !self.delete_noted(guard)?;
        let mut checked: Option<Instant> = None;
        loop {
            if *refresh || checked.is_none_or(|at| at.elapsed() >= options.check) {
                if self.check(guard, refresh, report)?.is_break() {
                    return Ok(());
                }
                checked = Some(Instant::now());
            }
            // While changes get past the outbox, those in it would not make the guard right: the refresh counts them.
            let applied = if self.is_suspended { None } else { self.follow_batch(guard)? };
            match applied {
                Some(event) => {
                    if report(event).is_break() {
                        return Ok(());
                    }
                    if !self.delete_noted(guard)? {
                        return Err(self.taken_over());
                    }
                }
                None => {
                    let idle = if self.is_suspended { FollowEvent::Waiting } else { FollowEvent::CaughtUp };
                    if report(idle).is_break() {
                        return Ok(());
                    }
                    self.wait(options.poll.min(options.check))?;
                }
            }
        }
    }

    /// Looks at the catalogue: suspends the guard when changes may have got past the triggers, and refreshes it when none can any more.
    fn check(
        &mut self,
        guard: &Guard,
        refresh: &mut bool,
        report: &mut dyn FnMut(FollowEvent) -> Flow,
    ) -> Result<Flow> {
        self.has_moved()?;
        let found = installed::look(&mut self.client, &self.table).map_err(|error| self.failed(&error))?;
        let counted = outbox::counted_version(&mut self.client, &self.table).map_err(|e| self.failed(&e))?;
        if let Some([schema, name, column]) = &found.names
            && (schema, name, column) != (&self.table.schema, &self.table.name, &self.table.column)
        {
            (self.table.schema, self.table.name, self.table.column) =
                (schema.clone(), name.clone(), column.clone());
            self.wanted = (format!("{schema}.{name}"), column.clone());
            let renamed = FollowEvent::Renamed { table: self.wanted.0.clone(), column: column.clone() };
            if report(renamed).is_break() {
                return Ok(Flow::Break(()));
            }
        }
        let has_changed = counted.is_some_and(|version| version != found.version);
        let reason = match (&found.gap, has_changed && !*refresh) {
            (Some(gap), _) => Some(format!(
                "{gap}: enable them (ENABLE ALWAYS TRIGGER), or end the follower and start it again, which installs them anew"
            )),
            (None, true) => Some(
                "triggers, partitions or labels of an enum have changed: all rows are counted anew"
                    .to_owned(),
            ),
            (None, false) => None,
        };
        if let Some(reason) = reason
            && !std::mem::replace(&mut self.is_suspended, true)
        {
            guard.suspend();
            if report(FollowEvent::Suspended { reason }).is_break() {
                return Ok(Flow::Break(()));
            }
        }
        if found.gap.is_some() || !(*refresh || self.is_suspended) {
            return Ok(Flow::Continue(()));
        }
        let refreshed = self.refresh_following(guard)?;
        *refresh = false;
        if std::mem::replace(&mut self.is_suspended, false) {
            guard.resume();
        }
        Ok(report(FollowEvent::Refreshed(refreshed)))
    }

    /// Applies the changes that can be seen; `None` when there are none.
    fn follow_batch(&mut self, guard: &Guard) -> Result<Option<FollowEvent>> {
        let Some(batch) = outbox::read(&mut self.client, &self.table).map_err(|error| self.failed(&error))?
        else {
            return Ok(None);
        };
        if own_note(guard)?.is_none_or(|note| note.token != batch.token) {
            return Err(self.taken_over());
        }
        if batch.changes.iter().any(|(op, _)| *op == Op::Truncate) {
            return self.refresh_following(guard).map(|report| Some(FollowEvent::Refreshed(report)));
        }
        let mut changes = Changes::new();
        let (mut inserted, mut removed) = (0, 0);
        for (op, key) in &batch.changes {
            if *op == Op::Insert {
                changes.insert(key);
                inserted += 1;
            } else {
                changes.remove(key);
                removed += 1;
            }
        }
        changes.note(Note { token: batch.token, ids: batch.ids }.encode());
        guard.write(&changes)?;
        Ok(Some(FollowEvent::Applied { inserted, removed, lag_seconds: batch.lag_seconds }))
    }

    /// Deletes what the guard has from the outbox. False when the outbox is not the guard's.
    fn delete_noted(&mut self, guard: &Guard) -> Result<bool> {
        let Some(note) = own_note(guard)? else { return Ok(false) };
        outbox::delete(&mut self.client, &self.table, &note).map_err(|error| self.failed(&error))
    }

    fn refresh_following(&mut self, guard: &Guard) -> Result<RefreshReport> {
        self.is_following = true;
        let refreshed = guard.refresh(self);
        self.is_following = false;
        let refreshed = refreshed?;
        match self.delete_noted(guard)? {
            true => Ok(refreshed),
            false => Err(self.taken_over()),
        }
    }

    fn taken_over(&self) -> Error {
        self.wrong(format!(
            "another guard has begun to follow \"{}\".\"{}\": one guard at a time can; let the others be copies or ask that one",
            self.table.name, self.table.column
        ))
    }

    /// Until something is notified, or for `poll`.
    fn wait(&mut self, poll: Duration) -> Result<()> {
        let waited = || -> std::result::Result<(), ::postgres::Error> {
            let mut notifications = self.client.notifications();
            notifications.timeout_iter(poll).next()?;
            let mut more = notifications.iter();
            while more.next()?.is_some() {}
            Ok(())
        }();
        waited.map_err(|error| self.failed(&error))
    }

    /// Whether the schema of the outbox has another name than before, which is used from now on.
    fn has_moved(&mut self) -> Result<bool> {
        let home = installed::home(&mut self.client, &self.table).map_err(|error| self.failed(&error))?;
        let moved = home.filter(|home| *home != self.table.home);
        let has_moved = moved.is_some();
        self.table.home = moved.unwrap_or_else(|| std::mem::take(&mut self.table.home));
        Ok(has_moved)
    }

    /// Whether schema, table or column have other names than before, or have gone, which no check has seen.
    fn is_outdated(&mut self) -> Result<bool> {
        let found = installed::look(&mut self.client, &self.table).map_err(|error| self.failed(&error))?;
        let Table { schema, name, column, .. } = &self.table;
        let is_same = |names: &[String; 3]| names.iter().eq([schema, name, column]);
        Ok(found.names.map_or(!self.is_suspended, |names| !is_same(&names)))
    }

    fn is_connected(&mut self) -> bool {
        self.client.is_valid(Duration::from_secs(2)).is_ok()
    }

    /// `Some(error)` when the server still does not answer.
    fn reconnect(&mut self) -> Result<Option<Error>> {
        let mut client = match super::session(&mut self.connect) {
            Ok(client) => client,
            Err(error) => {
                let error = self.failed(&error);
                return Ok(Some(error));
            }
        };
        match Table::find(&mut client, &self.wanted.0, &self.wanted.1) {
            Ok(table) => {
                self.table = table;
                self.client = client;
                Ok(None)
            }
            Err(unfit) => match client.is_valid(Duration::from_secs(2)) {
                // Renamed or dropped meanwhile: the catalogue tells.
                Ok(()) => {
                    self.client = client;
                    Ok(None)
                }
                Err(_) => Ok(Some(unfit_for(&self.name, unfit))),
            },
        }
    }
}

/// The guard's note, if it is a follower's.
fn own_note(guard: &Guard) -> Result<Option<Note>> {
    Ok(guard.note()?.as_deref().and_then(Note::decode))
}
