//! The life of the service: open, serve, close.

use crate::error::Result;
use crate::reads::{Reads, Way};
use crate::routes::routes;
use crate::writes::Writes;
use sidebloom::{Durability, Options};
use std::path::Path;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// Serves until SIGINT or SIGTERM, then answers the requests that have come and closes the store. Opening and
/// closing wait for the disk, so both happen outside of the runtime.
pub fn serve(dir: &Path, address: &str, way: Way, threads: u32) -> Result<()> {
    let db = Options::new().durability(Durability::Sync).open(dir)?;
    db.warm()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let (reads, writes) = (Reads::new(db.clone(), way, threads), Writes::new(db.clone()));
        let app = routes(reads.clone(), writes.clone());
        let listener = TcpListener::bind(address).await?;
        println!("listening on {}", listener.local_addr()?);
        axum::serve(listener, app).with_graceful_shutdown(asked_to_stop()?).await?;
        // A call whose client has gone still runs, and has a handle of the store.
        reads.finish().await;
        writes.finish().await;
        Result::Ok(())
    })?;
    drop(runtime);
    Ok(db.close()?)
}

fn asked_to_stop() -> Result<impl Future<Output = ()>> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}
