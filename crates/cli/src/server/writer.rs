//! The thread that changes the guard, so that fsync delays only the connections that wait for it.
//!
//! Changes that arrive during one write form the next group: one write of the guard, one fsync.

use sidebloom::guard::{Changes, Guard};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// Maximum number of changes in a group, so that the first ones do not wait too long.
const GROUP_MAX: usize = 1 << 16;

/// For each change, whether it changed a count; or why nothing was changed.
pub type WriteOutcome = Result<Vec<bool>, Arc<str>>;

struct Job {
    changes: Changes,
    answer: oneshot::Sender<WriteOutcome>,
}

/// A handle to the writing thread, which ends when the last handle is dropped.
#[derive(Clone)]
pub struct Writer(Sender<Job>);

impl Writer {
    /// Starts the thread. When it ends without an error, everything that it wrote is durable.
    pub fn start(guard: Guard) -> std::io::Result<(Self, JoinHandle<sidebloom::Result<()>>)> {
        let (sender, jobs) = channel();
        let thread = std::thread::Builder::new().name("guard-writer".into()).spawn(move || {
            write_all(&guard, &jobs);
            guard.sync()
        })?;
        Ok((Writer(sender), thread))
    }

    /// Applies changes and waits until they are durable, as the guard's options define it.
    pub async fn write(&self, changes: Changes) -> WriteOutcome {
        let (answer, written) = oneshot::channel();
        let gone = || Arc::from("the server is stopping");
        self.0.send(Job { changes, answer }).map_err(|_| gone())?;
        written.await.map_err(|_| gone())?
    }
}

fn write_all(guard: &Guard, jobs: &Receiver<Job>) {
    while let Ok(first) = jobs.recv() {
        let mut all = first.changes;
        let mut waiting = vec![(all.len(), first.answer)];
        while all.len() < GROUP_MAX
            && let Ok(next) = jobs.try_recv()
        {
            all.append(&next.changes);
            waiting.push((next.changes.len(), next.answer));
        }
        // Sending an answer fails if the client is gone, which is not an error.
        match guard.write_each(&all) {
            Ok(done) => {
                let mut rest = done.as_slice();
                for (len, answer) in waiting {
                    let (mine, others) = rest.split_at_checked(len).unwrap_or_default();
                    rest = others;
                    let _ = answer.send(Ok(mine.to_vec()));
                }
            }
            Err(error) => {
                tracing::error!(%error, "{} changes were refused", all.len());
                let cause: Arc<str> = error.to_string().into();
                for (_, answer) in waiting {
                    let _ = answer.send(Err(Arc::clone(&cause)));
                }
            }
        }
    }
}
