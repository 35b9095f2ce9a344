//! The bytes that TLS reads, and whether they end within a record.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Bytes before a record: its type, two of the version, and two of its length (RFC 8446, section 5.1).
const HEADER_BYTES: usize = 5;

pub struct Records {
    pub tcp: TcpStream,
    place: Place,
}

/// Where in a record the bytes so far end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// After so many bytes of the header. The last one before the current is needed for the length.
    Header { seen: usize, last: u8 },
    /// So many bytes are missing, at least one.
    Payload { missing: usize },
}

impl Place {
    const START: Place = Place::Header { seen: 0, last: 0 };

    /// The place after more bytes.
    fn after(mut self, mut bytes: &[u8]) -> Place {
        while let Some((first, rest)) = bytes.split_first() {
            (self, bytes) = match self {
                Place::Header { seen, last } if seen + 1 == HEADER_BYTES => {
                    match usize::from(u16::from_be_bytes([last, *first])) {
                        0 => (Place::START, rest),
                        missing => (Place::Payload { missing }, rest),
                    }
                }
                Place::Header { seen, .. } => (Place::Header { seen: seen + 1, last: *first }, rest),
                Place::Payload { missing } => match bytes.split_at_checked(missing) {
                    Some((_, rest)) => (Place::START, rest),
                    None => (Place::Payload { missing: missing - bytes.len() }, &[][..]),
                },
            };
        }
        self
    }
}

impl Records {
    pub fn of(tcp: TcpStream) -> Self {
        Records { tcp, place: Place::START }
    }

    /// Whether part of a record has arrived, and the rest has not.
    pub fn is_within(&self) -> bool {
        !matches!(self.place, Place::Header { seen: 0, .. })
    }
}

impl AsyncRead for Records {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Records { tcp, place } = self.get_mut();
        let before = buffer.filled().len();
        let polled = Pin::new(tcp).poll_read(cx, buffer);
        *place = place.after(buffer.filled().get(before..).unwrap_or_default());
        polled
    }
}

impl AsyncWrite for Records {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().tcp).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().tcp).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.tcp.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().tcp).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().tcp).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_the_same_however_the_bytes_arrive() {
        let record = |len: usize| [&[23, 3, 3][..], &(len as u16).to_be_bytes(), &vec![9; len]].concat();
        let lens = [1, 0, 300, 16_640, 5];
        let stream: Vec<u8> = lens.into_iter().flat_map(record).collect();
        let mut ends = vec![0];
        lens.iter().for_each(|len| ends.push(ends.last().unwrap() + HEADER_BYTES + len));
        for step in [1, 2, 3, 7, 305, stream.len()] {
            let (mut place, mut at) = (Place::START, 0);
            for bytes in stream.chunks(step) {
                place = place.after(bytes);
                at += bytes.len();
                assert_eq!(place == Place::START, ends.contains(&at), "{at} of {step}");
            }
        }
    }
}
