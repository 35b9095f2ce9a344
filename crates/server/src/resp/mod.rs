//! A parser of the Redis protocol (RESP): finds requests in a connection's bytes without copying them.
//!
//! ```text
//! request = "*" count CRLF bulk{count}   count at most 1,048,576; a request with count 0 or less is ignored
//! bulk    = "$" length CRLF bytes CRLF
//! request = line LF                      otherwise: words, quoted where needed, as typed by hand
//! ```
//!
//! The `redis-protocol` crate (6.0) does not fit. Its decoders restart whenever bytes arrive, so a large
//! request in small pieces takes quadratic time. They follow nested arrays without a limit, allocate whatever
//! the client claims, and do not parse inline requests. This parser resumes where it stopped and holds one
//! vector of ranges.

mod replies;

pub use replies::Replies;

use std::ops::Range;

/// Limits of a request.
#[derive(Clone, Copy)]
pub struct Limits {
    /// Arguments.
    pub args: usize,
    /// Bytes of one argument.
    pub bulk: usize,
    /// Bytes in total.
    pub request: usize,
}

impl Limits {
    /// For an authenticated client. The count is Redis' own limit; the sizes allow a batch of a million
    /// titles.
    pub const FULL: Limits = Limits { args: 1 << 20, bulk: 64 << 20, request: 64 << 20 };
    /// Before the password is given; Redis' own limits.
    pub const UNAUTHENTICATED: Limits = Limits { args: 10, bulk: 16 << 10, request: 64 << 10 };
}

const LINE_MAX: usize = 64 << 10;
/// Longest number, with its mark and line end.
const NUMBER_LINE_MAX: usize = 32;

/// Finds one request after another. Positions are relative to the buffer passed to [`next`](Self::next).
#[derive(Default)]
pub struct Parser {
    state: State,
    /// Start of the current request.
    start: usize,
    /// Everything before this is parsed.
    at: usize,
    /// Bytes of an unfinished inline request that have no line end.
    searched: usize,
    args: Vec<Range<usize>>,
}

#[derive(Default, Clone, Copy)]
enum State {
    #[default]
    Start,
    /// The header of an argument is next; this many arguments are missing.
    Args { missing: usize },
    /// An argument is next.
    Bulk { missing: usize, len: usize },
}

/// The message for the client before it is disconnected.
#[derive(Debug, PartialEq, Eq)]
pub struct ProtocolError(pub String);

fn fail<T>(what: impl Into<String>) -> Result<T, ProtocolError> {
    Err(ProtocolError(what.into()))
}

impl Parser {
    /// Continues parsing `buffer`. `true` when a request is complete: until the next call, its arguments (at
    /// least one) can be [lent](Self::lend). Escapes in an inline request are replaced in the buffer.
    ///
    /// # Errors
    /// The protocol error, in Redis' words. The parser cannot continue after it.
    pub fn next(&mut self, buffer: &mut [u8], limits: Limits) -> Result<bool, ProtocolError> {
        loop {
            match self.state {
                State::Start => {
                    self.start = self.at;
                    self.args.clear();
                    match buffer.get(self.at) {
                        None => return Ok(false),
                        Some(b'*') => {
                            let Some(count) =
                                self.number(buffer, "mbulk count string", "multibulk length")?
                            else {
                                return Ok(false);
                            };
                            match usize::try_from(count) {
                                Ok(count) if count > limits.args => {
                                    let who = if limits.args < Limits::FULL.args {
                                        "unauthenticated"
                                    } else {
                                        "invalid"
                                    };
                                    return fail(format!("{who} multibulk length"));
                                }
                                Ok(missing @ 1..) => self.state = State::Args { missing },
                                Ok(0) | Err(_) => {}
                            }
                        }
                        Some(_) => {
                            if !self.line(buffer)? {
                                return Ok(false);
                            }
                            if !self.args.is_empty() {
                                return Ok(true);
                            }
                        }
                    }
                }
                State::Args { missing: 0 } => {
                    self.state = State::Start;
                    return Ok(true);
                }
                State::Args { missing } => {
                    match buffer.get(self.at) {
                        None => return Ok(false),
                        Some(b'$') => {}
                        Some(other) => return fail(format!("expected '$', got '{}'", other.escape_ascii())),
                    }
                    let Some(len) = self.number(buffer, "bulk count string", "bulk length")? else {
                        return Ok(false);
                    };
                    let Ok(len) = usize::try_from(len) else { return fail("invalid bulk length") };
                    if len > limits.bulk {
                        let who = if limits.bulk < Limits::FULL.bulk { "unauthenticated" } else { "invalid" };
                        return fail(format!("{who} bulk length: at most {} bytes", limits.bulk));
                    }
                    if self.at + len - self.start > limits.request {
                        return fail(format!("a request of more than {} bytes", limits.request));
                    }
                    self.state = State::Bulk { missing, len };
                }
                State::Bulk { missing, len } => {
                    let end = self.at + len;
                    match buffer.get(end..end + 2) {
                        None => return Ok(false),
                        Some(b"\r\n") => {}
                        Some(_) => return fail("expected CRLF after a bulk string"),
                    }
                    self.args.push(self.at..end);
                    self.at = end + 2;
                    self.state = State::Args { missing: missing - 1 };
                }
            }
        }
    }

    /// The positions of the arguments that [`next`](Self::next) found. [Give them back](Self::give_back) to
    /// reuse the memory.
    pub fn lend(&mut self) -> Vec<Range<usize>> {
        std::mem::take(&mut self.args)
    }

    /// Takes back what was lent.
    pub fn give_back(&mut self, args: Vec<Range<usize>>) {
        self.args = args;
    }

    /// Memory of the arguments' positions, in bytes.
    pub fn bytes(&self) -> usize {
        self.args.capacity() * size_of::<Range<usize>>()
    }

    /// The number of bytes at the start of the buffer in complete requests. The caller must remove them.
    pub fn take_consumed(&mut self) -> usize {
        let complete = match self.state {
            State::Start => self.at,
            State::Args { .. } | State::Bulk { .. } => self.start,
        };
        self.at -= complete;
        self.start = self.start.saturating_sub(complete);
        if matches!(self.state, State::Start) {
            self.args = Vec::new(); // An idle connection holds no memory.
        }
        if complete > 0 {
            self.args.iter_mut().for_each(|arg| *arg = arg.start - complete..arg.end - complete);
        }
        complete
    }

    /// Parses the number after a mark, and its line end; `None` while it is incomplete.
    fn number(&mut self, buffer: &[u8], long: &str, wrong: &str) -> Result<Option<i64>, ProtocolError> {
        let rest = buffer.get(self.at + 1..).unwrap_or_default();
        let Some(len) = rest.iter().take(NUMBER_LINE_MAX).position(|byte| *byte == b'\r') else {
            return if rest.len() < NUMBER_LINE_MAX { Ok(None) } else { fail(format!("too big {long}")) };
        };
        match rest.get(len + 1) {
            None => return Ok(None),
            Some(b'\n') => {}
            Some(_) => return fail(format!("invalid {wrong}")),
        }
        let (digits, sign) = match rest.split_first() {
            Some((b'-', _)) => (rest.get(1..len), -1),
            _ => (rest.get(..len), 1),
        };
        let digits =
            digits.filter(|digits| (1..=18).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit));
        let Some(digits) = digits else { return fail(format!("invalid {wrong}")) };
        self.at += len + 3;
        Ok(Some(sign * digits.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0'))))
    }

    /// Parses an inline request, which may be empty; `false` while it is incomplete.
    fn line(&mut self, buffer: &mut [u8]) -> Result<bool, ProtocolError> {
        let rest = buffer.get_mut(self.at..).unwrap_or_default();
        let fresh = rest.get(self.searched..rest.len().min(LINE_MAX)).unwrap_or_default();
        let Some(len) = fresh.iter().position(|byte| *byte == b'\n') else {
            self.searched = rest.len(); // A line that arrives byte by byte is searched once.
            return if rest.len() < LINE_MAX { Ok(false) } else { fail("too big inline request") };
        };
        let len = self.searched + len;
        self.searched = 0;
        let line = rest.get_mut(..len).unwrap_or_default();
        if !split_words(line, |word| self.args.push(self.at + word.start..self.at + word.end)) {
            return fail("unbalanced quotes in request");
        }
        self.at += len + 1;
        Ok(true)
    }
}

/// Splits a line into words as Redis does: separated by spaces; `"with \n \r \t \b \a \\ \" \xHH"`,
/// `'with \' only'`. Escapes are replaced in place, which never makes a word longer. `false` when a quote is
/// not closed, or is not followed by a space.
fn split_words(line: &mut [u8], mut word: impl FnMut(Range<usize>)) -> bool {
    let (mut read, mut write) = (0, 0);
    let at = |line: &[u8], i: usize| line.get(i).copied();
    loop {
        while at(line, read).is_some_and(|byte| byte.is_ascii_whitespace()) {
            read += 1;
        }
        if read >= line.len() {
            return true;
        }
        write = write.max(read);
        let start = write;
        let mut quote = None;
        loop {
            let Some(byte) = at(line, read) else {
                if quote.is_some() {
                    return false;
                }
                break;
            };
            let (plain, width) = match (quote, byte) {
                (None, byte) if byte.is_ascii_whitespace() => break,
                (None, b'"' | b'\'') => {
                    quote = Some(byte);
                    read += 1;
                    continue;
                }
                (Some(mark), byte) if mark == byte => {
                    if at(line, read + 1).is_some_and(|next| !next.is_ascii_whitespace()) {
                        return false;
                    }
                    quote = None;
                    read += 1;
                    continue;
                }
                (Some(b'\''), b'\\') if at(line, read + 1) == Some(b'\'') => (b'\'', 2),
                (Some(b'"'), b'\\') => escape(line.get(read + 1..).unwrap_or_default()),
                (_, byte) => (byte, 1),
            };
            if let Some(slot) = line.get_mut(write) {
                *slot = plain;
            }
            write += 1;
            read += width;
        }
        word(start..write);
    }
}

/// The byte that an escape stands for, and the length of the escape with its backslash.
fn escape(rest: &[u8]) -> (u8, usize) {
    let hex = |byte: &u8| char::from(*byte).to_digit(16).map(|digit| digit as u8);
    match rest {
        [b'x', high, low, ..] => match (hex(high), hex(low)) {
            (Some(high), Some(low)) => (high << 4 | low, 4),
            _ => (b'x', 2),
        },
        [b'n', ..] => (b'\n', 2),
        [b'r', ..] => (b'\r', 2),
        [b't', ..] => (b'\t', 2),
        [b'b', ..] => (8, 2),
        [b'a', ..] => (7, 2),
        [other, ..] => (*other, 2),
        [] => (b'\\', 1),
    }
}

#[cfg(test)]
mod tests;
