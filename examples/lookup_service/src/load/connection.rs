//! A client: HTTP/1.1 over one connection, with one request at a time.

use super::figures::Figures;
use super::schedule::Queue;
use super::store::{Request, key, value};
use crate::error::Result;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Instant;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const OK: &[u8] = b"HTTP/1.1 200 ";
const NO_CONTENT: &[u8] = b"HTTP/1.1 204 ";

/// Asks for what comes from the queue, checks each answer, and records how long it took.
pub async fn ask(mut stream: TcpStream, mut queue: Queue, figures: Rc<RefCell<Figures>>) -> Result<()> {
    stream.set_nodelay(true)?;
    let end = Instant::now() + figures.borrow().duration;
    let mut answer = Vec::new();
    loop {
        let (request, begun) = match &mut queue {
            Queue::Closed(_) if Instant::now() > end => return Ok(()),
            Queue::Closed(mix) => (mix.next(), Instant::now()),
            Queue::Open(requests) => match requests.recv().await {
                Some(next) => next,
                None => return Ok(()),
            },
        };
        stream.write_all(&text_of(request)).await?;
        let body_at = read_answer(&mut stream, &mut answer).await?;
        let took = begun.elapsed();
        let is_right = match request {
            Request::Ping => answer.starts_with(OK),
            Request::Missing(_) => answer.starts_with(b"HTTP/1.1 404 "),
            Request::Found(number) => answer.starts_with(OK) && answer[body_at..] == value(number),
            Request::Put(_) => answer.starts_with(NO_CONTENT),
        };
        if !is_right {
            return Err(format!("wrong answer: {}", answer.escape_ascii()).into());
        }
        figures.borrow_mut().record(request, took);
    }
}

fn text_of(request: Request) -> Vec<u8> {
    let path = |number| format!("/keys/{}", key(number).replace('/', "%2F"));
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").into_bytes();
    match request {
        Request::Ping => get("/ping"),
        Request::Missing(number) | Request::Found(number) => get(&path(number)),
        Request::Put(number) => {
            let (path, value) = (path(number), value(number));
            let head =
                format!("PUT {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n", value.len());
            [head.into_bytes(), value].concat()
        }
    }
}

/// Reads one answer. Returns where its body begins.
async fn read_answer(stream: &mut TcpStream, answer: &mut Vec<u8>) -> Result<usize> {
    const END_OF_HEADERS: &[u8] = b"\r\n\r\n";
    answer.clear();
    loop {
        if stream.read_buf(answer).await? == 0 {
            return Err("the service closed a connection".into());
        }
        let headers = answer.windows(END_OF_HEADERS.len()).position(|bytes| bytes == END_OF_HEADERS);
        let Some(headers) = headers else { continue };
        let body_at = headers + END_OF_HEADERS.len();
        if answer.starts_with(NO_CONTENT) {
            return Ok(body_at);
        }
        let text = std::str::from_utf8(&answer[..headers])?;
        let mut lengths = text.lines().filter_map(|line| line.strip_prefix("content-length: "));
        let body_bytes: usize = lengths.next().ok_or("an answer without its length")?.parse()?;
        if answer.len() == body_at + body_bytes {
            return Ok(body_at);
        }
    }
}
