//! From a store to a SlateDB.

use super::error::Error;
use super::progress::{BATCHES, Copied};
use sidebloom::Snapshot;
use slatedb::config::{FlushOptions, FlushType, PutOptions, Ttl};
use slatedb::{Db, WriteBatch};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc::{Sender, channel};
use tokio::task::spawn_blocking;

/// Copies all rows of a snapshot to an empty SlateDB, and returns their number. On return, they are in SST
/// files, with the filters of its policies. `progress` is called after each batch of about 1 MiB.
///
/// Waits for durability only at the end: SlateDB writes its log every `flush_interval`, and each batch would
/// wait for that. A failure, or dropping the future, leaves some of the rows.
///
/// Rows that expire do so in SlateDB, too. It shows them until a compaction removes them: compare
/// `KeyValue::expire_ts` with the time.
///
/// ```
/// use sidebloom_slatedb::{ParityFilterPolicy, export};
/// use slatedb::object_store::memory::InMemory;
/// use std::sync::Arc;
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// # let dir = tempfile::tempdir()?;
/// let store = sidebloom::Db::open(dir.path().join("songs"))?;
/// store.put("Nina Simone - Sinnerman", "1965")?;
///
/// let remote = slatedb::Db::builder("songs", Arc::new(InMemory::new()))
///     .with_filter_policies(vec![Arc::new(ParityFilterPolicy::new(10.0)?)])
///     .build()
///     .await?;
/// let copied = export(&store.snapshot(), &remote, |so_far| eprintln!("{} rows", so_far.rows)).await?;
/// assert_eq!(copied.rows, 1);
/// remote.close().await?;
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Before any row is written: [`Error::NotEmpty`], and [`Error::EmptyKey`], since sidebloom accepts the empty
/// key and SlateDB does not. Then [`Error::SlateDb`] and [`Error::Store`].
///
/// # Panics
/// Outside a Tokio runtime.
pub async fn export(from: &Snapshot, to: &Db, mut progress: impl FnMut(Copied)) -> Result<Copied, Error> {
    if to.scan::<std::ops::RangeFull>(..).await?.next().await?.is_some() {
        return Err(Error::NotEmpty { target: "the SlateDB" });
    }
    let (send, mut receive) = channel(BATCHES);
    let from = from.clone();
    let reader = spawn_blocking(move || read(&from, &send));
    let mut copied = Copied::default();
    while let Some((batch, so_far)) = receive.recv().await {
        to.write(batch).await?;
        copied = so_far;
        progress(copied);
    }
    reader.await??;
    to.flush_with_options(FlushOptions { flush_type: FlushType::MemTable }).await?;
    Ok(copied)
}

/// Sends the rows in batches, each with the count so far. Stops if nobody receives them.
fn read(from: &Snapshot, to: &Sender<(WriteBatch, Copied)>) -> Result<(), Error> {
    if from.contains_key("")? {
        return Err(Error::EmptyKey);
    }
    let (mut batch, mut copied, mut sent) = (WriteBatch::new(), Copied::default(), Copied::default());
    let mut rows = from.cursor();
    let mut is_at_row = rows.seek_to_first()?;
    while let (true, Some(key), Some(value)) = (is_at_row, rows.key(), rows.value()) {
        batch.put_with_options(key, value, &PutOptions { ttl: ttl_until(rows.expires_at()) });
        copied.add(key, value);
        if copied.fills_a_batch(&sent) {
            if to.blocking_send((std::mem::take(&mut batch), copied)).is_err() {
                return Ok(());
            }
            sent = copied;
        }
        is_at_row = rows.next()?;
    }
    if copied.rows > sent.rows {
        // If it fails, the other side reports its own error.
        let _ = to.blocking_send((batch, copied));
    }
    Ok(())
}

/// The moment at which a row expires. It overrides the database's default, as "never" does.
fn ttl_until(expiry: Option<SystemTime>) -> Ttl {
    let Some(expiry) = expiry else { return Ttl::NoExpiry };
    let since = expiry.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ttl::ExpireAtMillis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
