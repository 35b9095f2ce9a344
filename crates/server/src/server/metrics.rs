//! Metrics for Prometheus, over HTTP on an address of their own.
//!
//! A scraper is no client: it needs no password, and sees counts and the names of guards, never keys. It
//! takes a thread only while the text is made. At most [`CONNECTIONS_MAX`] connections are served at once,
//! each for at most [`CONNECTION_TIMEOUT`] and for one request; others wait.

use crate::filters::Filters;
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use sidebloom::Exposition;
use sidebloom::guard::Guard;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// Scrapers at once.
const CONNECTIONS_MAX: usize = 16;
/// From the connection to the end of the response.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);
/// For the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(2);
/// For the head of a request, in bytes.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// The name of the store of filters, in the label `store`. A guard has its own.
const FILTERS: &str = "filters";

/// What the metrics are of.
pub struct Measured {
    /// The guards, with their names.
    pub guards: Vec<(String, Guard)>,
    /// The store of filters.
    pub filters: Option<Arc<Filters>>,
}

impl Measured {
    /// The text for a scraper.
    fn text(&self) -> sidebloom::Result<String> {
        let mut metrics = Exposition::new();
        if let Some(filters) = &self.filters {
            metrics.add_store(FILTERS, filters.db())?;
        }
        let mut taken = BTreeSet::from([FILTERS.to_owned()]);
        for (name, guard) in &self.guards {
            let mut label = name.clone();
            // It may be that of the store of filters.
            while !taken.insert(label.clone()) {
                label = format!("guard {label}");
            }
            metrics.add(label, guard.store_stats(), BTreeMap::new())?;
        }
        Ok(metrics.to_string())
    }
}

/// Serves `GET /metrics` as long as the runtime lives.
pub async fn serve(listener: TcpListener, measured: Measured) {
    let (measured, free) = (Arc::new(measured), Arc::new(Semaphore::new(CONNECTIONS_MAX)));
    loop {
        let Ok(seat) = Arc::clone(&free).acquire_owned().await else { return };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection for metrics");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let measured = Arc::clone(&measured);
        tokio::spawn(async move {
            let served = tokio::time::timeout(CONNECTION_TIMEOUT, serve_one(stream, measured)).await;
            if let Ok(Err(error)) = served {
                tracing::debug!(%error, "a connection for metrics broke");
            }
            drop(seat);
        });
    }
}

async fn serve_one(stream: TcpStream, measured: Arc<Measured>) -> hyper::Result<()> {
    let answer = service_fn(move |request| {
        let measured = Arc::clone(&measured);
        async move { Ok::<_, Infallible>(respond(&request, measured).await) }
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_BYTES_MAX)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), answer)
        .await
}

async fn respond(request: &Request<Incoming>, measured: Arc<Measured>) -> Response<Full<Bytes>> {
    if request.uri().path() != "/metrics" {
        return plain(StatusCode::NOT_FOUND, "not found: there is /metrics\n".into());
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "use GET\n".into());
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    // Looks at all segments.
    match tokio::task::spawn_blocking(move || measured.text()).await {
        Ok(Ok(text)) => {
            let mut response = Response::new(Full::from(text));
            let kind = HeaderValue::from_static(Exposition::CONTENT_TYPE);
            response.headers_mut().insert(CONTENT_TYPE, kind);
            response
        }
        Ok(Err(error)) => plain(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
        Err(error) => plain(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
    }
}

fn plain(status: StatusCode, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    response
}
