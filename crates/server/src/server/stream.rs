//! A client's connection: TCP, a Unix socket, or TLS over TCP.

#[cfg(feature = "tls")]
use super::records::Records;
use bytes::{BufMut, BytesMut};
use std::io;
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

/// What a connection takes that does nothing, in bytes; as measured.
const PLAIN_BYTES: usize = 8 << 10;
/// The same with TLS: also keys, and room for one record.
#[cfg(feature = "tls")]
const TLS_BYTES: usize = 24 << 10;

/// A client's connection.
pub enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    #[cfg(feature = "tls")]
    Tls(Box<Encrypted>),
}

#[cfg(feature = "tls")]
type Encrypted = tokio_rustls::server::TlsStream<Records>;

/// A connection's own memory in bytes, with TLS or without.
pub fn own_bytes(is_encrypted: bool) -> usize {
    #[cfg(feature = "tls")]
    if is_encrypted {
        return TLS_BYTES;
    }
    debug_assert!(!is_encrypted);
    PLAIN_BYTES
}

impl Stream {
    /// Whether part of a TLS record has arrived, and the rest has not.
    pub fn is_within_record(&self) -> bool {
        match self {
            Stream::Tcp(_) | Stream::Unix(_) => false,
            #[cfg(feature = "tls")]
            Stream::Tls(tls) => tls.get_ref().0.is_within(),
        }
    }

    /// Waits for bytes and appends them. A buffer is taken only once there are some, so that a connection
    /// that waits holds none. Returns how many; 0 at the end. If that is asked for, `None` as soon as part of
    /// a TLS record has arrived.
    #[cfg_attr(not(feature = "tls"), expect(unused_variables, reason = "only TLS has records"))]
    pub async fn receive(&mut self, input: &mut BytesMut, tells_part: bool) -> io::Result<Option<usize>> {
        match self {
            Stream::Tcp(tcp) => {
                tcp.readable().await?;
                input.reserve(READ_BYTES);
                tcp.read_buf(&mut input.limit(READ_BYTES_MAX)).await.map(Some)
            }
            Stream::Unix(unix) => {
                unix.readable().await?;
                input.reserve(READ_BYTES);
                unix.read_buf(&mut input.limit(READ_BYTES_MAX)).await.map(Some)
            }
            #[cfg(feature = "tls")]
            Stream::Tls(tls) => receive_encrypted(tls, input, tells_part).await,
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

#[cfg(feature = "tls")]
async fn receive_encrypted(
    tls: &mut Encrypted,
    input: &mut BytesMut,
    tells_part: bool,
) -> io::Result<Option<usize>> {
    let mut first = [0; FIRST_BYTES];
    let read = std::future::poll_fn(|cx| {
        let mut buffer = ReadBuf::new(&mut first);
        match Pin::new(&mut *tls).poll_read(cx, &mut buffer) {
            Poll::Pending if tells_part && tls.get_ref().0.is_within() => Poll::Ready(Ok(None)),
            Poll::Pending => Poll::Pending,
            Poll::Ready(read) => Poll::Ready(read.map(|()| Some(buffer.filled().len()))),
        }
    });
    let Some(len) = read.await? else { return Ok(None) };
    input.extend_from_slice(first.get(..len).unwrap_or_default());
    if len < FIRST_BYTES {
        return Ok(Some(len));
    }
    input.reserve(READ_BYTES);
    let mut rest = input.limit(READ_BYTES_MAX);
    let more = tokio::select! {
        biased;
        more = tls.read_buf(&mut rest) => more?,
        () = std::future::ready(()) => 0, // What there is now.
    };
    Ok(Some(len + more))
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
