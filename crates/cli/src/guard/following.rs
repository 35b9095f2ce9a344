//! Follows a PostgreSQL table in its own thread, since the PostgreSQL client has its own runtime.

use crate::context::Failure;
use sidebloom::guard::Guard;
#[cfg(feature = "postgres")]
pub use sidebloom_postgres::PostgresSource;
use std::sync::mpsc::Sender;
use tokio::sync::oneshot;

/// Which table.
#[derive(clap::Args)]
pub struct FollowArgs {
    /// Follow a table of this PostgreSQL server, as `guard follow` does. Clients then cannot change the guard
    #[arg(long, value_name = "URL", requires = "table", requires = "column")]
    postgres: Option<String>,
    /// The table that has the keys, as TABLE or SCHEMA.TABLE
    #[arg(long, value_name = "TABLE", requires = "postgres")]
    table: Option<String>,
    /// The column of the keys
    #[arg(long, value_name = "COLUMN", requires = "postgres")]
    column: Option<String>,
}

impl FollowArgs {
    /// Finds the table; `None` when none is named.
    pub fn connect(&self) -> Result<Option<PostgresSource>, Failure> {
        match (&self.postgres, &self.table, &self.column) {
            (Some(url), Some(table), Some(column)) => connect(url, table, column).map(Some),
            _ => Ok(None),
        }
    }
}

/// A running follower.
pub struct Follower {
    /// Resolves when the follower stops by itself; the guard would then go stale.
    pub ended: oneshot::Receiver<Failure>,
    /// It stops once this is dropped.
    pub stop: Sender<()>,
}

/// This build has no PostgreSQL support.
#[cfg(not(feature = "postgres"))]
pub enum PostgresSource {}

#[cfg(not(feature = "postgres"))]
pub fn connect(_: &str, _: &str, _: &str) -> Result<PostgresSource, Failure> {
    Err(Failure::not_built_in("PostgreSQL", "postgres"))
}

/// Starts following.
#[cfg(not(feature = "postgres"))]
pub fn start(_: Guard, source: PostgresSource) -> Result<Follower, Failure> {
    match source {}
}

#[cfg(feature = "postgres")]
pub fn connect(url: &str, table: &str, column: &str) -> Result<PostgresSource, Failure> {
    Ok(PostgresSource::connect(url, table, column)?)
}

/// Starts following.
#[cfg(feature = "postgres")]
pub fn start(guard: Guard, mut source: PostgresSource) -> Result<Follower, Failure> {
    use sidebloom_postgres::{FollowEvent, FollowOptions, Installation};
    use std::ops::ControlFlow;
    use std::sync::mpsc::{TryRecvError, channel};
    use std::time::Duration;

    /// How often it checks whether to stop.
    const POLL: Duration = Duration::from_millis(200);

    let installed = source.install_trigger()?;
    if matches!(installed, Installation::Mended { .. }) {
        tracing::warn!("{installed}");
    }
    let (stop, stopped) = channel::<()>();
    let (caught_up, ready) = channel();
    let (end, ended) = oneshot::channel();
    let follow = move || {
        let outcome = source.follow(&guard, FollowOptions::new().poll(POLL), &mut |event| {
            match &event {
                FollowEvent::Disconnected { error, retry_in } => {
                    tracing::warn!(%error, ?retry_in, "cannot follow the database; the guard is out of date");
                }
                FollowEvent::Suspended { reason } => {
                    tracing::warn!("every answer is \"maybe\" from now on: {reason}");
                }
                FollowEvent::Renamed { table, column } => {
                    tracing::warn!(
                        "the column is now {column} of {table}; use these names at the next start"
                    );
                }
                FollowEvent::Waiting => {}
                // The receiver is gone after the first event.
                FollowEvent::CaughtUp => drop(caught_up.send(())),
                event => tracing::info!(?event, "followed"),
            }
            match stopped.try_recv() {
                Err(TryRecvError::Disconnected) => ControlFlow::Break(()),
                Ok(()) | Err(TryRecvError::Empty) => ControlFlow::Continue(()),
            }
        });
        if let Err(error) = outcome {
            let _ = end.send(error.into()); // The server may have ended first.
        }
    };
    std::thread::Builder::new()
        .name("guard-follower".into())
        .spawn(follow)
        .map_err(|e| Failure::message(format!("cannot start a thread: {e}")))?;
    let mut follower = Follower { ended, stop };
    // Answers given before it has caught up could be wrong.
    match ready.recv() {
        Ok(()) => Ok(follower),
        Err(_) => {
            Err(follower.ended.try_recv().unwrap_or_else(|_| Failure::message("the follower panicked")))
        }
    }
}
