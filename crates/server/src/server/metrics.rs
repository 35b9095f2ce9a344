//! Metrics for Prometheus, over HTTP on an address of their own.
//!
//! A scraper is no client: it needs no password, and sees counts and the names of guards, never keys. It
//! takes a thread only while the text is made. At most [`CONNECTIONS_MAX`] connections are served at once,
//! each for at most [`CONNECTION_TIMEOUT`] and for one request. One more closes the one that has sent no
//! request for longest; it waits only if all have sent one.

use super::state::Server;
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
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

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
    /// Has the counts of clients and commands.
    pub server: Arc<Server>,
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
        let mut text = metrics.to_string();
        super::families::write(&self.server, &mut text);
        Ok(text)
    }
}

/// Serves `GET /metrics` as long as the runtime lives.
pub async fn serve(listener: TcpListener, measured: Measured) {
    let measured = Arc::new(measured);
    let mut seats = Seats { free: Arc::new(Semaphore::new(CONNECTIONS_MAX)), silent: VecDeque::new() };
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection for metrics");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let Some(seat) = seats.take().await else { return };
        let measured = Arc::clone(&measured);
        tokio::spawn(async move {
            let has_asked = Arc::clone(&seat.has_asked);
            let served = tokio::time::timeout(CONNECTION_TIMEOUT, serve_one(stream, measured, has_asked));
            tokio::select! {
                served = served => if let Ok(Err(error)) = served {
                    tracing::debug!(%error, "a connection for metrics broke");
                },
                () = seat.wait_until_wanted() => {}
            }
        });
    }
}

/// The places of connections that are served at once.
struct Seats {
    free: Arc<Semaphore>,
    /// Those that had sent no request when they were looked at last, the oldest first.
    silent: VecDeque<Silent>,
}

/// A connection that may not have sent a request.
struct Silent {
    has_asked: Arc<AtomicBool>,
    close: oneshot::Sender<()>,
}

/// One of the places; free again when it is dropped.
struct Seat {
    has_asked: Arc<AtomicBool>,
    wanted: oneshot::Receiver<()>,
    _permit: OwnedSemaphorePermit,
}

impl Seats {
    /// Takes a place: a free one, or that of the connection that has been silent for longest.
    async fn take(&mut self) -> Option<Seat> {
        self.silent.retain(|one| !one.close.is_closed() && !one.has_asked.load(Relaxed));
        if self.free.available_permits() == 0
            && let Some(oldest) = self.silent.pop_front()
        {
            let _ = oldest.close.send(()); // It may have ended just now.
        }
        let permit = Arc::clone(&self.free).acquire_owned().await.ok()?; // It is never closed.
        let (has_asked, (close, wanted)) = (Arc::new(AtomicBool::new(false)), oneshot::channel());
        self.silent.push_back(Silent { has_asked: Arc::clone(&has_asked), close });
        Some(Seat { has_asked, wanted, _permit: permit })
    }
}

impl Seat {
    /// Waits until somebody else needs the place of this connection, which is silent.
    async fn wait_until_wanted(self) {
        if self.wanted.await.is_err() || self.has_asked.load(Relaxed) {
            std::future::pending().await
        }
    }
}

async fn serve_one(
    stream: TcpStream,
    measured: Arc<Measured>,
    has_asked: Arc<AtomicBool>,
) -> hyper::Result<()> {
    let answer = service_fn(move |request| {
        has_asked.store(true, Relaxed);
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
