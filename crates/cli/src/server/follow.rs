//! Follows a PostgreSQL table in its own thread, since the PostgreSQL client has its own runtime.

use crate::context::Failure;
use sidebloom::guard::Guard;
#[cfg(feature = "postgres")]
pub use sidebloom_postgres::PostgresSource;
use tokio::sync::oneshot;

/// A running follower. Stops shortly after it is dropped.
pub struct Follower {
    /// Resolves when the follower stops by itself; the guard would then go stale.
    pub ended: oneshot::Receiver<Failure>,
    #[cfg(feature = "postgres")]
    _stop: std::sync::mpsc::Sender<()>,
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
    let mut follower = Follower { ended, _stop: stop };
    // Answers given before it has caught up could be wrong.
    match ready.recv() {
        Ok(()) => Ok(follower),
        Err(_) => {
            Err(follower.ended.try_recv().unwrap_or_else(|_| Failure::message("the follower panicked")))
        }
    }
}
