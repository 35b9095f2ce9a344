//! Sockets that a service manager has opened, and telling it when the server is ready: systemd's protocols.

use crate::context::Failure;
use sidebloom_server::server::Endpoints;

/// The sockets that were passed, at most one over TCP and one Unix socket.
pub fn endpoints() -> Result<Endpoints, Failure> {
    let mut passed = listenfd::ListenFd::from_env();
    let mut endpoints = Endpoints::default();
    for n in 0..passed.len() {
        let fails = |e| Failure::message(format!("the socket that was passed as number {n}: {e}"));
        if endpoints.tcp.is_none()
            && let Ok(Some(listener)) = passed.take_tcp_listener(n)
        {
            endpoints.tcp = Some(listener);
        } else {
            let listener = passed.take_unix_listener(n).map_err(fails)?;
            if listener.is_some() && endpoints.unix.is_some() {
                return Err(Failure::message(
                    "more sockets were passed than one over TCP and one Unix socket",
                ));
            }
            endpoints.unix = listener.or(endpoints.unix);
        }
    }
    Ok(endpoints)
}

/// Tells the service manager, if there is one, that clients can connect.
pub fn tell_ready() {
    if let Err(error) = sd_notify::notify(&[sd_notify::NotifyState::Ready]) {
        tracing::warn!(%error, "cannot tell the service manager that the server is ready");
    }
}
