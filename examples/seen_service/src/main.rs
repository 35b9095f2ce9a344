//! A small HTTP service that says whether it has seen a key before. `POST /seen` with a key as its body
//! answers `new` or `seen`, and remembers the key: of any number of requests at the same time, one is told
//! `new`. The answer is sent when the key is on disk, so it holds after a crash.
//!
//! ```text
//! cargo run --release -p seen-service -- seen.db 127.0.0.1:8080
//! curl --data https://example.org/ http://127.0.0.1:8080/seen
//! ```
//!
//! `examples/lookup_service` also reads values, and has a load test.

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::{get, post};
use sidebloom::{Db, Durability, Exposition, MAX_KEY_BYTES, Options};
use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// Calls at the same time. They share a sync, so this is more than the disk can do at once.
const CALLS_MAX: u32 = 64;

#[derive(Clone)]
struct Service {
    db: Db,
    bound: Arc<Semaphore>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [dir, address] = &args[..] else {
        eprintln!("usage: seen-service DIR ADDRESS");
        return ExitCode::from(2);
    };
    match serve(dir, address).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("seen-service: {why}");
            ExitCode::from(2)
        }
    }
}

/// Serves until Ctrl-C, then answers the requests that have come and closes the store.
async fn serve(dir: &str, address: &str) -> Result<(), Box<dyn Error>> {
    let db = Options::new().durability(Durability::Sync).open(dir)?;
    let service = Service { db, bound: Arc::new(Semaphore::new(CALLS_MAX as usize)) };
    let routes = Router::new()
        .route("/seen", post(seen))
        .route("/metrics", get(metrics))
        .layer(DefaultBodyLimit::max(MAX_KEY_BYTES))
        .with_state(service.clone());
    let listener = TcpListener::bind(address).await?;
    println!("listening on {}", listener.local_addr()?);
    let interrupted = async { _ = tokio::signal::ctrl_c().await };
    axum::serve(listener, routes).with_graceful_shutdown(interrupted).await?;
    // A call whose client has gone still runs, and has a handle of the store.
    _ = service.bound.acquire_many(CALLS_MAX).await?;
    let closed = tokio::task::spawn_blocking(|| service.db.close());
    Ok(closed.await??)
}

/// `insert_new` may wait for the disk, so it has a thread of its own. Writers that wait at the same time
/// share one sync.
async fn seen(State(service): State<Service>, key: Bytes) -> Result<&'static str, (StatusCode, String)> {
    let failed = |why: String| (StatusCode::INTERNAL_SERVER_ERROR, why);
    let permit = service.bound.acquire_owned().await.map_err(|e| failed(e.to_string()))?;
    let call = move || {
        let is_new = service.db.insert_new(key, "");
        drop((service.db, permit));
        is_new
    };
    let inserted = tokio::task::spawn_blocking(call).await;
    let is_new = inserted.map_err(|e| failed(e.to_string()))?.map_err(|e| failed(e.to_string()))?;
    Ok(if is_new { "new" } else { "seen" })
}

/// For Prometheus: docs/metrics.md lists what there is. Statistics may open filters, so they get a thread.
async fn metrics(State(service): State<Service>) -> Result<impl IntoResponse, (StatusCode, String)> {
    let failed = |why: String| (StatusCode::INTERNAL_SERVER_ERROR, why);
    let call = move || {
        let mut metrics = Exposition::new();
        metrics.add_store("seen", &service.db).map(|_| metrics.to_string())
    };
    let text = tokio::task::spawn_blocking(call).await.map_err(|e| failed(e.to_string()))?;
    let text = text.map_err(|e| failed(e.to_string()))?;
    Ok(([(CONTENT_TYPE, Exposition::CONTENT_TYPE)], text))
}
