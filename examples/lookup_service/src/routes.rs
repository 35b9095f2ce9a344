//! The routes.

use crate::reads::Reads;
use crate::writes::Writes;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;

type Failure = (StatusCode, String);

pub fn routes(reads: Reads, writes: Writes) -> Router {
    Router::new()
        .route("/ping", get(ping))
        .route("/keys/{key}", get(look_up).put(put))
        .with_state((reads, writes))
}

/// Does nothing: what the others are compared with.
async fn ping() {}

async fn look_up(
    State((reads, _)): State<(Reads, Writes)>,
    Path(key): Path<String>,
) -> Result<Bytes, Failure> {
    let value = reads.get(key).await.map_err(failed)?;
    // A `Value` is a view of its block. `copy_from_slice` lets the block go.
    value.map(|value| Bytes::copy_from_slice(&value)).ok_or((StatusCode::NOT_FOUND, String::new()))
}

/// The answer is sent when the row is on disk.
async fn put(
    State((_, writes)): State<(Reads, Writes)>,
    Path(key): Path<String>,
    value: Bytes,
) -> Result<StatusCode, Failure> {
    writes.put(key, value).await.map_err(failed)?;
    Ok(StatusCode::NO_CONTENT)
}

fn failed(error: sidebloom::Error) -> Failure {
    (StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
}
