//! The socket of one client.

use super::replies::Replies;
use bytes::BytesMut;
use std::future::Future;
use std::io::ErrorKind;
use std::pin::Pin;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until, timeout};

/// Minimum size of a read; the same as in Redis.
const READ_BYTES: usize = 16 << 10;
/// Time for a disconnected client to read the reason.
const LINGER: Duration = Duration::from_secs(1);

/// Why a connection ends, for the log.
pub type End = &'static str;

pub struct Wire {
    pub stream: TcpStream,
    /// A client that reads none of its replies for this long is disconnected.
    pub output_timeout: Duration,
}

impl Wire {
    /// Waits for bytes. Returns whether more may be waiting.
    pub async fn receive(
        &mut self,
        input: &mut BytesMut,
        deadline: Option<Instant>,
        stopped: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<bool, End> {
        let stream = &mut self.stream;
        let read = async {
            stream.readable().await?;
            input.reserve(READ_BYTES);
            stream.read_buf(input).await
        };
        let len = tokio::select! {
            biased; // A client that never pauses must not keep the server from stopping.
            () = stopped => return Err("the server is stopping"),
            read = read => read.map_err(|_| "the connection broke")?,
            () = until(deadline) => return Err("the client was idle for too long"),
        };
        if len == 0 { Err("the client disconnected") } else { Ok(len >= READ_BYTES) }
    }

    /// Sends the replies. A client that does not read them is disconnected.
    pub async fn send(&mut self, replies: &mut Replies) -> Result<(), End> {
        let mut rest = replies.bytes.as_slice();
        while !rest.is_empty() {
            match self.stream.try_write(rest) {
                Ok(sent) => rest = rest.get(sent..).unwrap_or_default(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let writable = timeout(self.output_timeout, self.stream.writable()).await;
                    writable
                        .map_err(|_| "the client does not read its replies")?
                        .map_err(|_| "the connection broke")?;
                }
                Err(_) => return Err("the connection broke"),
            }
        }
        replies.bytes.clear();
        replies.bytes.shrink_to(READ_BYTES / 16);
        Ok(())
    }

    /// Closes the connection. Reads and discards input for a moment: closing with unread input would make the
    /// client's system drop the last reply.
    pub async fn close(&mut self) {
        let drain = async {
            let _ = self.stream.shutdown().await;
            let mut dropped = [0; 4096];
            while self.stream.read(&mut dropped).await.is_ok_and(|len| len > 0) {}
        };
        let _ = timeout(LINGER, drain).await;
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
