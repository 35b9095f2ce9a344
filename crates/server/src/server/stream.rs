//! A client's connection: TCP, a Unix socket, or TLS over TCP.

use bytes::{BufMut, BytesMut};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

/// Minimum size of a read; the same as in Redis.
pub const READ_BYTES: usize = 16 << 10;
/// Maximum size of a read, so that other connections need not wait long until it is parsed.
const READ_BYTES_MAX: usize = 64 << 10;
/// While it waits for a client, a connection has room for this much, in bytes.
#[cfg(feature = "tls")]
const FIRST_BYTES: usize = 512;

/// A client's connection.
pub enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    #[cfg(feature = "tls")]
    Tls(Box<tokio_rustls::server::TlsStream<TcpStream>>),
}

impl Stream {
    /// `None` over a Unix socket.
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Stream::Tcp(tcp) => tcp.peer_addr().ok(),
            Stream::Unix(_) => None,
            #[cfg(feature = "tls")]
            Stream::Tls(tls) => tls.get_ref().0.peer_addr().ok(),
        }
    }

    /// Waits for bytes and appends them. A buffer is taken only once there are some, so that a connection
    /// that waits holds none. Returns 0 at the end.
    pub async fn receive(&mut self, input: &mut BytesMut) -> io::Result<usize> {
        match self {
            Stream::Tcp(tcp) => {
                tcp.readable().await?;
                input.reserve(READ_BYTES);
                tcp.read_buf(&mut input.limit(READ_BYTES_MAX)).await
            }
            Stream::Unix(unix) => {
                unix.readable().await?;
                input.reserve(READ_BYTES);
                unix.read_buf(&mut input.limit(READ_BYTES_MAX)).await
            }
            #[cfg(feature = "tls")]
            Stream::Tls(tls) => {
                let mut first = [0; FIRST_BYTES];
                let len = tls.read(&mut first).await?;
                input.extend_from_slice(first.get(..len).unwrap_or_default());
                Ok(len)
            }
        }
    }

    /// Whether a read of so many bytes may have left more.
    pub fn may_have_more(&self, read: usize) -> bool {
        match self {
            Stream::Tcp(_) | Stream::Unix(_) => read >= READ_BYTES,
            #[cfg(feature = "tls")]
            Stream::Tls(_) => read >= FIRST_BYTES,
        }
    }
}

/// Calls a method of the stream, whichever it is.
macro_rules! each {
    ($self:ident, $stream:ident => $call:expr) => {
        match $self.get_mut() {
            Stream::Tcp($stream) => $call,
            Stream::Unix($stream) => $call,
            #[cfg(feature = "tls")]
            Stream::Tls($stream) => $call,
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        each!(self, stream => Pin::new(stream).poll_read(cx, buffer))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        each!(self, stream => Pin::new(stream).poll_write(cx, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => Pin::new(stream).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => Pin::new(stream).poll_shutdown(cx))
    }
}
