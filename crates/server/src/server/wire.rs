//! What a connection reads and writes, with its time limits.

use super::clients::Client;
use super::settings::OUTPUT_BYTES_PER_SECOND;
use super::stream::Stream;
use crate::resp::Replies;
use bytes::BytesMut;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, sleep_until, timeout};

/// Time for a disconnected client to read the reason.
const LINGER: Duration = Duration::from_secs(1);
/// A buffer for replies larger than this is freed once they are sent, in bytes.
const REPLY_BYTES_KEPT: usize = 1 << 10;

/// Why a connection ends, for the log.
pub type End = &'static str;

pub struct Wire {
    stream: Stream,
    client: Arc<Client>,
    /// A client that reads none of its replies for this long is disconnected.
    output_timeout: Duration,
}

impl Wire {
    pub fn new(stream: Stream, client: Arc<Client>, output_timeout: Duration) -> Self {
        Wire { stream, client, output_timeout }
    }

    /// Waits for bytes, or for part of a TLS record if that is to be told. Returns whether more may be
    /// waiting.
    pub async fn receive(
        &mut self,
        input: &mut BytesMut,
        tells_part: bool,
        deadline: Option<(Instant, End)>,
        stopped: Pin<&mut impl Future<Output = End>>,
    ) -> Result<bool, End> {
        let len = tokio::select! {
            biased; // A client that never pauses must not keep the server from stopping.
            end = stopped => return Err(end),
            read = self.stream.receive(input, tells_part) => read.map_err(|_| "the connection broke")?,
            end = until(deadline) => return Err(end),
        };
        match len {
            Some(0) => Err("the client disconnected"),
            Some(len) => Ok(self.stream.may_have_more(len)),
            None => Ok(false),
        }
    }

    /// Whether part of a TLS record has arrived, and the rest has not.
    pub fn is_within_record(&self) -> bool {
        self.stream.is_within_record()
    }

    /// Sends the replies. A client that does not read them, or too slowly, is disconnected.
    pub async fn send(&mut self, replies: &mut Replies) -> Result<(), End> {
        if replies.bytes.is_empty() {
            return Ok(());
        }
        let (started, mut written) = (Instant::now(), 0);
        while let Some(rest) = replies.bytes.get(written..).filter(|rest| !rest.is_empty()) {
            let slowest = Duration::from_secs(written as u64 / OUTPUT_BYTES_PER_SECOND);
            let deadline = Instant::now().min(started + slowest) + self.output_timeout;
            written += self.send_some(rest, deadline).await?;
        }
        replies.bytes.clear();
        replies.bytes.shrink_to(REPLY_BYTES_KEPT);
        Ok(())
    }

    /// Sends some of the bytes. Returns how many.
    async fn send_some(&mut self, bytes: &[u8], deadline: Instant) -> Result<usize, End> {
        let Wire { stream, client, .. } = self;
        let write = async {
            let written = stream.write(bytes).await?;
            stream.flush().await?;
            Ok::<_, std::io::Error>(written)
        };
        tokio::select! {
            biased; // Mostly, all is written at once.
            written = write => match written {
                Ok(0) | Err(_) => Err("the connection broke"),
                Ok(written) => Ok(written),
            },
            () = client.killed() => Err("the client was disconnected by another"),
            end = until(Some((deadline, "the client does not read its replies, or too slowly"))) => Err(end),
        }
    }

    /// Closes the connection. Reads and discards input for a moment: closing with unread input would make the
    /// client's system drop the last reply.
    pub async fn close(&mut self) {
        let drain = async {
            let _ = self.stream.shutdown().await;
            let mut dropped = vec![0; 4096]; // Not in the future, which every connection has.
            while self.stream.read(&mut dropped).await.is_ok_and(|len| len > 0) {}
        };
        let _ = timeout(LINGER, drain).await;
    }
}

async fn until(deadline: Option<(Instant, End)>) -> End {
    match deadline {
        Some((deadline, end)) => {
            sleep_until(deadline).await;
            end
        }
        None => std::future::pending().await,
    }
}
