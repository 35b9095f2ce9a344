//! A connection that was accepted.

use super::stream::Stream;
#[cfg(feature = "tls")]
use super::tls::Tls;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::{TcpStream, UnixStream};

/// Idle time before TCP keepalive probes; the connection is dropped after three unanswered probes.
const KEEPALIVE: Duration = Duration::from_secs(120);
const KEEPALIVE_AGAIN: Duration = Duration::from_secs(20);

/// A connection before the handshake, if it needs one.
pub enum Accepted {
    Tcp(TcpStream),
    Unix(UnixStream),
    #[cfg(feature = "tls")]
    Encrypted(TcpStream, Tls),
}

impl Accepted {
    fn tcp(&self) -> Option<&TcpStream> {
        match self {
            Accepted::Tcp(tcp) => Some(tcp),
            Accepted::Unix(_) => None,
            #[cfg(feature = "tls")]
            Accepted::Encrypted(tcp, _) => Some(tcp),
        }
    }

    /// `None` over a Unix socket.
    pub fn address(&self) -> Option<SocketAddr> {
        self.tcp()?.peer_addr().ok()
    }

    pub fn is_encrypted(&self) -> bool {
        !matches!(self, Accepted::Tcp(_) | Accepted::Unix(_))
    }

    pub fn set_up(&self) -> io::Result<()> {
        use rustix::net::sockopt;
        let Some(stream) = self.tcp() else { return Ok(()) };
        stream.set_nodelay(true)?;
        sockopt::set_socket_keepalive(stream, true)?;
        sockopt::set_tcp_keepidle(stream, KEEPALIVE)?;
        sockopt::set_tcp_keepintvl(stream, KEEPALIVE_AGAIN)?;
        sockopt::set_tcp_keepcnt(stream, 3)?;
        Ok(())
    }

    /// After the handshake, if there is one. Returns why there was none.
    pub async fn stream(self) -> Result<Stream, String> {
        match self {
            Accepted::Tcp(tcp) => Ok(Stream::Tcp(tcp)),
            Accepted::Unix(unix) => Ok(Stream::Unix(unix)),
            // The handshake takes more memory than all else, and not for long.
            #[cfg(feature = "tls")]
            Accepted::Encrypted(tcp, tls) => {
                Ok(Stream::Tls(Box::new(Box::pin(async move { tls.accept(tcp).await }).await?)))
            }
        }
    }

    /// Tells a client why it is not served, if it can be told at once. One that expects TLS would understand
    /// nothing of it.
    pub fn refuse(&self, why: &str) {
        let _ = match self {
            Accepted::Tcp(stream) => stream.try_write(why.as_bytes()),
            Accepted::Unix(stream) => stream.try_write(why.as_bytes()),
            #[cfg(feature = "tls")]
            Accepted::Encrypted(..) => Ok(0),
        };
    }
}
