//! Keeps a guard up to date with a table that others write.

use crate::connection::open_session;
use crate::event::FollowEvent;
use crate::note::Note;
use crate::options::FollowOptions;
use crate::outbox::RowChange;
use crate::source::{PostgresSource, table_error};
use crate::table::{Table, quoted};
use crate::{catalog, outbox};
use postgres::fallible_iterator::FallibleIterator;
use sidebloom::guard::{Changes, Guard, RefreshReport};
use sidebloom::{Error, Result};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Delay before the first attempt to reconnect.
const RETRY_MIN: Duration = Duration::from_millis(100);

/// Time between two checks of an empty outbox, since any role may notify.
const LOOK: Duration = Duration::from_millis(2);

/// Returned by `report`: whether to continue.
type Flow = ControlFlow<()>;

impl PostgresSource {
    /// Applies every change of the table to the guard, until `report` breaks. First refreshes the guard if it
    /// may have missed changes of this outbox. Reconnects when the connection is lost; until then the guard
    /// answers as of the last change.
    ///
    /// # Errors
    /// [`Error::Database`] when the triggers or the column are missing, when another guard takes over the
    /// outbox, or for a server error that a retry would not change; the errors of [`Guard::write`] and
    /// [`Guard::refresh`]. The guard stays consistent and can follow again.
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
                "the triggers on \"{}\" that a follower needs are missing, disabled or not safe from other roles: install them \
                 (PostgresSource::install_trigger)",
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
                // The statement may have failed on something renamed or dropped since the last check: check
                // now, then continue.
                Err(error) if self.is_connected() => {
                    if std::mem::replace(&mut has_failed, true)
                        || !(self.take_new_home()? || self.is_outdated()?)
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

    /// Follows until the connection is lost. Returns `Ok` when `report` breaks.
    fn follow_connected(
        &mut self,
        guard: &Guard,
        options: FollowOptions,
        refresh: &mut bool,
        report: &mut dyn FnMut(FollowEvent) -> Flow,
    ) -> Result<()> {
        let listen = format!("LISTEN {}", quoted(&outbox::channel(&self.table)));
        self.client.batch_execute(&listen).map_err(|error| self.failed(&error))?;
        // The outbox may still contain changes that the note names.
        *refresh |= !self.delete_noted(guard)?;
        let mut checked: Option<Instant> = None;
        loop {
            if *refresh || checked.is_none_or(|at| at.elapsed() >= options.check) {
                if self.check(guard, refresh, report)?.is_break() {
                    return Ok(());
                }
                checked = Some(Instant::now());
            }
            let looked = Instant::now();
            self.take_notifications()?;
            // While changes bypass the outbox, applying its changes would not make the guard right: the
            // refresh will count them.
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
                    std::thread::sleep(LOOK.saturating_sub(looked.elapsed()));
                }
            }
        }
    }

    /// Checks the catalog. Suspends the guard if changes may have bypassed the triggers; refreshes it once
    /// none can any more.
    fn check(
        &mut self,
        guard: &Guard,
        refresh: &mut bool,
        report: &mut dyn FnMut(FollowEvent) -> Flow,
    ) -> Result<Flow> {
        self.take_new_home()?;
        let found = catalog::look(&mut self.client, &self.table).map_err(|error| self.failed(&error))?;
        let counted = outbox::counted_version(&mut self.client, &self.table).map_err(|e| self.failed(&e))?;
        if let Some(names) = &found.names
            && let Some(renamed) = self.rename(names)
            && report(renamed).is_break()
        {
            return Ok(Flow::Break(()));
        }
        let has_changed = counted.is_some_and(|version| version != found.version);
        let reason = match (&found.gap, has_changed && !*refresh) {
            (Some(gap), _) => Some(gap.clone()),
            (None, true) => {
                Some("triggers, partitions or enum labels have changed: counting all rows again".to_owned())
            }
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

    /// Uses these names of schema, table and column from now on. `None` if they are the current ones.
    fn rename(&mut self, names: &[String; 3]) -> Option<FollowEvent> {
        if self.has_names(names) {
            return None;
        }
        let [schema, name, column] = names.clone();
        self.wanted = (format!("{schema}.{name}"), column.clone());
        let renamed = FollowEvent::Renamed { table: self.wanted.0.clone(), column: column.clone() };
        (self.table.schema, self.table.name, self.table.column) = (schema, name, column);
        Some(renamed)
    }

    fn has_names(&self, names: &[String; 3]) -> bool {
        let Table { schema, name, column, .. } = &self.table;
        names.iter().eq([schema, name, column])
    }

    /// Applies the visible changes; `None` when there are none.
    fn follow_batch(&mut self, guard: &Guard) -> Result<Option<FollowEvent>> {
        let Some(batch) = outbox::read(&mut self.client, &self.table).map_err(|error| self.failed(&error))?
        else {
            return Ok(None);
        };
        if note_of(guard)?.is_none_or(|note| note.token != batch.token) {
            return Err(self.taken_over());
        }
        if batch.changes.iter().any(|(change, _)| *change == RowChange::Truncate) {
            return self.refresh_following(guard).map(|report| Some(FollowEvent::Refreshed(report)));
        }
        let mut changes = Changes::new();
        let (mut inserted, mut removed) = (0, 0);
        for (change, key) in &batch.changes {
            if *change == RowChange::Insert {
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

    /// Deletes from the outbox what the guard has. Returns false if the outbox is not this guard's.
    fn delete_noted(&mut self, guard: &Guard) -> Result<bool> {
        let Some(note) = note_of(guard)? else { return Ok(false) };
        outbox::delete(&mut self.client, &self.table, &note).map_err(|error| self.failed(&error))
    }

    fn refresh_following(&mut self, guard: &Guard) -> Result<RefreshReport> {
        self.is_following = true;
        let refreshed = guard.refresh(self);
        self.is_following = false;
        let refreshed = refreshed?;
        if self.delete_noted(guard)? { Ok(refreshed) } else { Err(self.taken_over()) }
    }

    fn taken_over(&self) -> Error {
        self.wrong(format!(
            "another guard has started to follow \"{}\".\"{}\", and only one guard at a time can: copy that guard or query it instead",
            self.table.name, self.table.column
        ))
    }

    /// Waits for a notification, or for `poll`.
    fn wait(&mut self, poll: Duration) -> Result<()> {
        let waited = self.client.notifications().timeout_iter(poll).next().map(drop);
        waited.map_err(|error| self.failed(&error))
    }

    /// Takes the notifications that have already arrived. More may keep arriving: a role that notifies
    /// nonstop would hold the follower here.
    fn take_notifications(&mut self) -> Result<()> {
        let taken = || -> std::result::Result<(), postgres::Error> {
            let mut notifications = self.client.notifications();
            for _ in 0..notifications.len() {
                notifications.iter().next()?;
            }
            Ok(())
        }();
        taken.map_err(|error| self.failed(&error))
    }

    /// Whether the outbox's schema was renamed. Uses the new name from now on.
    fn take_new_home(&mut self) -> Result<bool> {
        let home = catalog::home(&mut self.client, &self.table).map_err(|error| self.failed(&error))?;
        let moved = home.filter(|home| *home != self.table.home);
        let has_moved = moved.is_some();
        self.table.home = moved.unwrap_or_else(|| std::mem::take(&mut self.table.home));
        Ok(has_moved)
    }

    /// Whether schema, table or column were renamed or dropped since the last check.
    fn is_outdated(&mut self) -> Result<bool> {
        let found = catalog::look(&mut self.client, &self.table).map_err(|error| self.failed(&error))?;
        Ok(found.names.map_or(!self.is_suspended, |names| !self.has_names(&names)))
    }

    fn is_connected(&mut self) -> bool {
        self.client.is_valid(Duration::from_secs(2)).is_ok()
    }

    /// `Some(error)` if the server still does not answer.
    fn reconnect(&mut self) -> Result<Option<Error>> {
        let (mut client, path) = match open_session(&mut self.connect) {
            Ok(session) => session,
            Err(error) => return Ok(Some(self.failed(&error))),
        };
        match Table::find(&mut client, &path, &self.wanted.0, &self.wanted.1) {
            Ok(table) => {
                self.table = table;
                (self.client, self.search_path) = (client, path);
                Ok(None)
            }
            Err(error) => match client.is_valid(Duration::from_secs(2)) {
                // Renamed or dropped since: the next check will tell.
                Ok(()) => {
                    (self.client, self.search_path) = (client, path);
                    Ok(None)
                }
                Err(_) => Ok(Some(table_error(&self.name, error))),
            },
        }
    }
}

/// The guard's note, if it is a follower's.
fn note_of(guard: &Guard) -> Result<Option<Note>> {
    Ok(guard.note()?.as_deref().and_then(Note::decode))
}
