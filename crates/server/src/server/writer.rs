//! The threads that change a guard or the filters, so that fsync delays only the connections that wait for
//! it.
//!
//! Changes that arrive during one write form the next group: one write, one fsync.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// A group with so many items is complete, so that the first ones do not wait too long.
const GROUP_ITEMS: usize = 1 << 14;

/// What takes groups of changes.
pub trait Group: Send + 'static {
    type Changes: Send + 'static;
    type Outcome: Send + 'static;

    /// How many outcomes the changes have.
    fn len(changes: &Self::Changes) -> usize;
    /// How many items they change.
    fn items(changes: &Self::Changes) -> usize;
    fn append(changes: &mut Self::Changes, later: Self::Changes);
    /// The outcomes in order, or why nothing was changed.
    fn write(&self, changes: &Self::Changes) -> Result<Vec<Self::Outcome>, String>;
    /// Makes all that was written durable.
    fn sync(&self) -> sidebloom::Result<()>;
}

/// The outcomes of some changes, or why nothing was changed.
pub type WriteOutcome<G> = Result<Vec<<G as Group>::Outcome>, Arc<str>>;

struct Job<G: Group> {
    changes: G::Changes,
    answer: oneshot::Sender<WriteOutcome<G>>,
}

/// A handle to a writing thread, which ends when the last handle is dropped.
pub struct Writer<G: Group>(Sender<Job<G>>);

impl<G: Group> Writer<G> {
    /// Starts the thread. When it ends without an error, everything that it wrote is durable.
    pub fn start(group: G) -> std::io::Result<(Self, JoinHandle<sidebloom::Result<()>>)> {
        let (sender, jobs) = channel();
        let thread = std::thread::Builder::new().name("serve-writer".into()).spawn(move || {
            write_all(&group, &jobs);
            group.sync()
        })?;
        Ok((Writer(sender), thread))
    }

    /// Applies changes and waits until they are durable, as the options of the store define it.
    pub async fn write(&self, changes: G::Changes) -> WriteOutcome<G> {
        let (answer, written) = oneshot::channel();
        let gone = || Arc::from("the server is stopping");
        self.0.send(Job { changes, answer }).map_err(|_| gone())?;
        written.await.map_err(|_| gone())?
    }
}

fn write_all<G: Group>(group: &G, jobs: &Receiver<Job<G>>) {
    while let Ok(first) = jobs.recv() {
        let mut len = G::len(&first.changes);
        let (mut all, mut waiting) = (first.changes, vec![(len, first.answer)]);
        while G::items(&all) < GROUP_ITEMS
            && let Ok(next) = jobs.try_recv()
        {
            let more = G::len(&next.changes);
            G::append(&mut all, next.changes);
            waiting.push((more, next.answer));
            len += more;
        }
        // Sending an answer fails if the client is gone, which is not an error.
        match group.write(&all) {
            Ok(outcomes) => {
                let mut outcomes = outcomes.into_iter();
                for (len, answer) in waiting {
                    let _ = answer.send(Ok(outcomes.by_ref().take(len).collect()));
                }
            }
            Err(error) => {
                tracing::error!(error, "{len} changes were refused");
                let cause: Arc<str> = error.into();
                for (_, answer) in waiting {
                    let _ = answer.send(Err(Arc::clone(&cause)));
                }
            }
        }
    }
}
