//! Following a PostgreSQL table while the guard serves: in a thread of its own, since its client brings a runtime along.

use crate::cli::context::Failure;
use sidebloom::guard::Guard;
#[cfg(feature = "postgres")]
use sidebloom::guard::PostgresSource;
use tokio::sync::oneshot;

/// Which table.
#[derive(clap::Args)]
pub struct Followed {
    /// Keep the guard up to date with a table of this PostgreSQL server, as `guard follow` does. Clients cannot change the guard then
    #[arg(long, value_name = "URL", requires = "table", requires = "column")]
    postgres: Option<String>,
    /// The table that has the keys, or SCHEMA.TABLE
    #[arg(long, value_name = "TABLE", requires = "postgres")]
    table: Option<String>,
    /// The column of the keys
    #[arg(long, value_name = "COLUMN", requires = "postgres")]
    column: Option<String>,
}

/// A follower at work. Dropped, it stops within a moment.
pub struct Follower {
    /// Resolves when it has ended by itself: from then on the guard falls behind.
    pub ended: oneshot::Receiver<Failure>,
    #[cfg(feature = "postgres")]
    _stop: std::sync::mpsc::Sender<()>,
}

impl Followed {
    /// Finds the table; `None` when none is named.
    pub fn connect(&self) -> Result<Option<PostgresSource>, Failure> {
        match (&self.postgres, &self.table, &self.column) {
            (Some(url), Some(table), Some(column)) => connect(url, table, column).map(Some),
            _ => Ok(None),
        }
    }
}

/// There is none in this build.
#[cfg(not(feature = "postgres"))]
pub enum PostgresSource {}

#[cfg(not(feature = "postgres"))]
fn connect(_: &str, _: &str, _: &str) -> Result<PostgresSource, Failure> {
    Err(crate::cli::guard::source::not_built_in("PostgreSQL", "postgres"))
}

/// Starts following.
#[cfg(not(feature = "postgres"))]
pub fn start(_: Guard, source: PostgresSource) -> Result<Follower, Failure> {
    match source {}
}

#[cfg(feature = "postgres")]
fn connect(url: &str, table: &str, column: &str) -> Result<PostgresSource, Failure> {
    Ok(PostgresSource::connect(url, table, column)?)
}

/// Starts following.
#[cfg(feature = "postgres")]
pub fn start(guard: Guard, mut source: PostgresSource) -> Result<Follower, Failure> {
    use sidebloom::guard::postgres::{FollowEvent, FollowOptions};
    use std::ops::ControlFlow;
    use std::sync::mpsc::{TryRecvError, channel};
    use std::time::Duration;

    /// How soon it notices that it is to stop.
    const POLL: Duration = Duration::from_millis(200);

    source.install_trigger()?;
    let (stop, stopped) = channel::<()>();
    let (caught_up, ready) = channel();
    let (end, ended) = oneshot::channel();
    let follow = move || {
        let outcome = source.follow(&guard, FollowOptions::new().poll(POLL), &mut |event| {
            match &event {
                FollowEvent::Disconnected { error, retry_in } => {
                    tracing::warn!(%error, ?retry_in, "the guard falls behind its database");
                }
                FollowEvent::Suspended { reason } => {
                    tracing::warn!("every answer is \"maybe\" from now on: {reason}");
                }
                FollowEvent::Renamed { table, column } => {
                    tracing::warn!("the column is now {column} of {table}: name it so at the next start");
                }
                FollowEvent::Waiting => {}
                FollowEvent::CaughtUp => drop(caught_up.send(())), // Nobody listens after the first.
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
    let mut follower = Follower { ended, _stop: stop };
    // Answers before it has caught up would be wrong.
    match ready.recv() {
        Ok(()) => Ok(follower),
        Err(_) => {
            Err(follower.ended.try_recv().unwrap_or_else(|_| Failure::message("the follower has died")))
        }
    }
}
