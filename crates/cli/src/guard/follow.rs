//! `sidebloom guard follow`: keeps a guard up to date with a PostgreSQL table.

use crate::context::{Context, Failure, Outcome};
#[cfg(feature = "postgres")]
use crate::notice::notice;
use std::path::PathBuf;

/// Keep a guard up to date with a PostgreSQL table that others write
///
/// Installs triggers on the table (as its owner) unless they exist. The triggers write every change to an
/// outbox, from which it is applied to the guard on arrival. Refreshes the guard first if it has missed
/// changes of this outbox. Answers reflect the last change applied; each line of output shows the lag. If the
/// server is unreachable, retries until it is back. Checks the triggers and partitions every second. If
/// changes may have bypassed them, every answer is "maybe" until they are in place again and all rows are
/// recounted. Runs until interrupted, which is safe at any time. Needs a build with the feature postgres.
#[derive(clap::Args)]
pub struct Args {
    /// The guard's directory
    dir: PathBuf,
    /// The PostgreSQL server, as for `build`
    #[arg(long, value_name = "URL")]
    postgres: String,
    /// The table that has the keys, as TABLE or SCHEMA.TABLE
    #[arg(long, value_name = "TABLE")]
    table: String,
    /// The column of the keys
    #[arg(long, value_name = "COLUMN")]
    column: String,
    /// Recount all rows first
    #[arg(long)]
    refresh: bool,
    /// Exit once every visible change is in the guard
    #[arg(long, conflicts_with = "remove_trigger")]
    once: bool,
    /// Publish the guard to object storage, as `guard publish` does, whenever it has caught up, so that
    /// readers know that it is up to date. Needs a build with the feature remote
    #[arg(long, value_name = "URL", conflicts_with = "remove_trigger")]
    publish: Option<String>,
    /// Publish at most once in this many seconds, and remove states of an hour ago
    #[arg(long, value_name = "SECONDS", default_value = "5", requires = "publish")]
    publish_every: u64,
    /// Remove the triggers and the outbox, to stop following for good. Accepts the current names of table and
    /// column, or the names at installation. Exits 1 if nothing was installed
    #[arg(long, conflicts_with = "refresh")]
    remove_trigger: bool,
}

#[cfg(not(feature = "postgres"))]
impl Args {
    pub fn run(self, _: &Context) -> Result<Outcome, Failure> {
        Err(Failure::not_built_in("PostgreSQL", "postgres"))
    }
}

#[cfg(feature = "postgres")]
impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        use super::publishing::Publishing;
        use sidebloom::guard::Guard;
        use sidebloom_postgres::PostgresSource;
        use sidebloom_postgres::{FollowEvent, FollowOptions, Installation};
        use std::ops::ControlFlow;

        let guard = cx.opening(|| Guard::open(&self.dir))?;
        if self.remove_trigger {
            let removed = PostgresSource::remove_triggers_at(&self.postgres, &self.table, &self.column)?;
            if !removed {
                notice(format_args!("nothing is installed for {} of {}", self.column, self.table));
            }
            return Ok(Outcome::found(removed));
        }
        let mut publishing = self
            .publish
            .as_deref()
            .map(|url| Publishing::new(&guard, url, self.publish_every))
            .transpose()?;
        let mut source = PostgresSource::connect(&self.postgres, &self.table, &self.column)?;
        let installed = source.install_trigger()?;
        if matches!(installed, Installation::Mended { .. }) {
            notice(&installed);
        }
        let mut printed = Ok(());
        source.follow(&guard, FollowOptions::new().refresh(self.refresh), &mut |event| {
            let ends = self.once && matches!(event, FollowEvent::CaughtUp);
            printed = print(cx, &event);
            if let Some(publishing) = &mut publishing
                && printed.is_ok()
            {
                printed = publishing.after(&event, ends);
            }
            if ends || printed.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        printed.map(|()| Outcome::Found)
    }
}

/// Prints one line per event that has news.
#[cfg(feature = "postgres")]
fn print(cx: &Context, event: &sidebloom_postgres::FollowEvent) -> Result<(), Failure> {
    use crate::human;
    use sidebloom_postgres::FollowEvent;
    use std::io::Write;

    let line = match event {
        FollowEvent::Refreshed(report) if cx.json => {
            serde_json::json!({ "refreshed": { "rows": report.rows, "keys": report.keys, "seconds": report.seconds } })
        }
        FollowEvent::Applied { inserted, removed, lag_seconds } if cx.json => {
            serde_json::json!({ "applied": { "inserted": inserted, "removed": removed, "lag_seconds": lag_seconds } })
        }
        FollowEvent::Refreshed(report) => {
            let [rows, keys] = [report.rows, report.keys].map(human::count);
            writeln!(cx.out(), "refreshed: {rows} rows, {keys} keys, in {:.1} s", report.seconds)?;
            return cx.flush();
        }
        FollowEvent::Applied { inserted, removed, lag_seconds } => {
            let [inserted, removed] = [*inserted, *removed].map(human::count);
            let lag = human::nanos(lag_seconds * 1e9);
            writeln!(cx.out(), "applied: {inserted} inserted, {removed} removed; lag {lag}")?;
            return cx.flush();
        }
        FollowEvent::Disconnected { error, retry_in } => {
            notice(format_args!("{error}; trying again in {:.1} s", retry_in.as_secs_f64()));
            return Ok(());
        }
        FollowEvent::Suspended { reason } => {
            notice(format_args!("every answer is \"maybe\" from now on: {reason}"));
            return Ok(());
        }
        FollowEvent::Renamed { table, column } => {
            notice(format_args!("the column is now {column} of {table}; use these names at the next start"));
            return Ok(());
        }
        _ => return Ok(()),
    };
    cx.print_json(&line)?;
    cx.flush()
}
