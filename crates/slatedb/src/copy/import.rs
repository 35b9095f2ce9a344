//! From a SlateDB to a store.

use super::error::Error;
use super::progress::{BATCHES, Copied};
use bytes::Bytes;
use sidebloom::Keyspace;
use slatedb::config::ScanOptions;
use slatedb::{DbIterator, DbReadOps};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::spawn_blocking;

/// How many bytes a scan fetches at once from each sorted run.
const READ_AHEAD_BYTES: usize = 1 << 20;

type Row = (Bytes, Bytes);

/// A message to the blocking task. A channel that closes without [`Message::End`] has lost rows.
enum Message {
    Rows(Vec<Row>),
    End,
}

/// Copies all rows of a SlateDB (a `Db`, `DbSnapshot` or `DbReader`) to an empty store (or keyspace), and
/// returns their number. The rows arrive in order, so they go straight into segments
/// ([`Keyspace::ingest`]): they become visible all at once, and are durable on return. A failure, or
/// dropping the future, leaves the store unchanged. `progress` is called after each batch of about 1 MiB.
///
/// Rows that have expired by the system's clock are left out, although SlateDB still shows them. Expiry
/// times, sequence numbers and creation times are not copied, nor are writes during the copy.
///
/// # Errors
/// [`Error::NotEmpty`], before anything is read; then [`Error::SlateDb`] and [`Error::Store`], the latter
/// also for keys longer than [`MAX_KEY_BYTES`](sidebloom::MAX_KEY_BYTES) and values longer than
/// [`MAX_VALUE_BYTES`](sidebloom::MAX_VALUE_BYTES).
///
/// # Panics
/// Outside a Tokio runtime.
pub async fn import<R: DbReadOps>(
    from: &R,
    to: &Keyspace,
    progress: impl FnMut(Copied),
) -> Result<Copied, Error> {
    let (store, empty) = (to.clone(), Error::NotEmpty { target: "the store" });
    spawn_blocking(move || match store.iter().next() {
        None => Ok(()),
        Some(row) => row.map_err(Error::from).and(Err(empty)),
    })
    .await??;
    let options =
        ScanOptions { read_ahead_bytes: READ_AHEAD_BYTES, max_fetch_tasks: 2, ..ScanOptions::default() };
    let rows = from.scan_with_options::<std::ops::RangeFull>(.., &options).await?;
    let (send, receive) = channel(BATCHES);
    let store = to.clone();
    let writer = spawn_blocking(move || store.ingest(Rows { receive, batch: Vec::new().into_iter() }.fuse()));
    let read = read(rows, send, progress).await;
    // The reader's error comes first, as the cause: when the writer fails, the reader stops without one.
    let written = writer.await?;
    let copied = read?;
    written?;
    Ok(copied)
}

/// Sends the rows in batches. Stops if nobody receives them.
async fn read(
    mut from: DbIterator,
    to: Sender<Message>,
    mut progress: impl FnMut(Copied),
) -> Result<Copied, Error> {
    let (mut batch, mut copied, mut sent) = (Vec::new(), Copied::default(), Copied::default());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let now = i64::try_from(now).unwrap_or(i64::MAX);
    while let Some(row) = from.next().await? {
        if row.expire_ts.is_some_and(|expiry| expiry <= now) {
            continue;
        }
        copied.add(&row.key, &row.value);
        batch.push((row.key, row.value));
        if copied.fills_a_batch(&sent) {
            if to.send(Message::Rows(std::mem::take(&mut batch))).await.is_err() {
                return Ok(sent);
            }
            sent = copied;
            progress(copied);
        }
    }
    if to.send(Message::Rows(batch)).await.is_ok() {
        progress(copied);
        let _ = to.send(Message::End).await; // If it fails, the writer reports an error.
    }
    Ok(copied)
}

/// The rows from the channel.
struct Rows {
    receive: Receiver<Message>,
    batch: std::vec::IntoIter<Row>,
}

impl Iterator for Rows {
    type Item = sidebloom::Result<Row>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(row) = self.batch.next() {
                return Some(Ok(row));
            }
            match self.receive.blocking_recv() {
                Some(Message::Rows(rows)) => self.batch = rows.into_iter(),
                Some(Message::End) => return None,
                // Without this error, the rows so far would become visible.
                None => {
                    let what = "the copy stopped before the last row".to_owned();
                    return Some(Err(sidebloom::Error::Database { name: "SlateDB".to_owned(), what }));
                }
            }
        }
    }
}
