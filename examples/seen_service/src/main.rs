//! A small HTTP service that says whether it has seen a key before. `POST /seen` with a key as its body
//! answers `new` or `seen`, and remembers the key: of any number of requests at the same time, one is told
//! `new`. The answer is sent when the key is on disk, so it holds after a crash.
//!
//! ```text
//! cargo run --release -p seen-service -- seen.db 127.0.0.1:8080
//! curl --data https://example.org/ http://127.0.0.1:8080/seen
//! ```

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
use tokio::net::TcpListener;

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
    let routes = Router::new()
        .route("/seen", post(seen))
        .route("/metrics", get(metrics))
        .layer(DefaultBodyLimit::max(MAX_KEY_BYTES))
        .with_state(db.clone());
    let listener = TcpListener::bind(address).await?;
    println!("listening on {}", listener.local_addr()?);
    let interrupted = async { _ = tokio::signal::ctrl_c().await };
    axum::serve(listener, routes).with_graceful_shutdown(interrupted).await?;
    Ok(db.close()?)
}

/// `insert_new` may wait for the disk, so it has a thread of its own. Writers that wait at the same time
/// share one sync.
async fn seen(State(db): State<Db>, key: Bytes) -> Result<&'static str, (StatusCode, String)> {
    let failed = |why: String| (StatusCode::INTERNAL_SERVER_ERROR, why);
    let inserted = tokio::task::spawn_blocking(move || db.insert_new(key, "")).await;
    let is_new = inserted.map_err(|e| failed(e.to_string()))?.map_err(|e| failed(e.to_string()))?;
    Ok(if is_new { "new" } else { "seen" })
}

/// For Prometheus: docs/metrics.md lists what there is.
async fn metrics(State(db): State<Db>) -> Result<impl IntoResponse, (StatusCode, String)> {
    let mut metrics = Exposition::new();
    let added = metrics.add_store("seen", &db);
    added.map_err(|e| (StatusCode::INTERNAL_SERVER_ERROR, e.to_string()))?;
    Ok(([(CONTENT_TYPE, Exposition::CONTENT_TYPE)], metrics.to_string()))
}
