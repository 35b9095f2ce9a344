//! Requests of the Redis protocol, found in the bytes of a connection without copying them.
//!
//! ```text
//! request = "*" count CRLF bulk{count}   count at most 1,048,576; nothing is asked when it is 0 or negative
//! bulk    = "$" length CRLF bytes CRLF
//! request = line LF                      otherwise: words, quoted where needed, as a person types them
//! ```
//!
//! Why not the `redis-protocol` crate (6.0): its decoders start anew with every byte that arrives, so that a large request in small
//! pieces costs the square of its length; they follow nested arrays without a limit, allocate for each request, size that allocation by
//! what the client claims, and know no request typed as a line. This one goes on where it stopped and holds one vector of ranges.

use std::ops::Range;

/// How much a request may ask of the server.
#[derive(Clone, Copy)]
pub struct Limits {
    /// Arguments.
    pub args: usize,
    /// Bytes of one argument.
    pub bulk: usize,
    /// Bytes in all.
    pub request: usize,
}

impl Limits {
    /// Of a client that may use the filter. The count is Redis' own limit, the sizes leave room for a batch of 200,000 titles.
    pub const FULL: Limits = Limits { args: 1 << 20, bulk: 1 << 20, request: 16 << 20 };
    /// Before the password is given; Redis' own limits.
    pub const UNAUTHENTICATED: Limits = Limits { args: 10, bulk: 16 << 10, request: 64 << 10 };
}

const LINE_MAX: usize = 64 << 10;
/// A number of any length that is allowed, with its mark and line end.
const NUMBER_LINE_MAX: usize = 32;

/// Finds one request after the other. Positions count from the start of the buffer that [`next`](Self::next) is given.
#[derive(Default)]
pub struct Parser {
    state: State,
    /// Where the request that is being read begins.
    start: usize,
    /// What is before this is read.
    at: usize,
    args: Vec<Range<usize>>,
}

#[derive(Default, Clone, Copy)]
enum State {
    #[default]
    Start,
    /// The header of an argument is next, this many are missing.
    Args { missing: usize },
    /// An argument is next.
    Bulk { missing: usize, len: usize },
}

/// What the client is told before it is shut out.
#[derive(Debug, PartialEq, Eq)]
pub struct ProtocolError(pub String);

fn fail<T>(what: impl Into<String>) -> Result<T, ProtocolError> {
    Err(ProtocolError(what.into()))
}

impl Parser {
    /// Reads on in `buffer`. `true` when a request is complete: its arguments can be [lent](Self::lend), never none, until the next call.
    /// Escapes in a line are replaced within the buffer.
    ///
    /// # Errors
    /// What is wrong, in Redis' words. There is no way to go on.
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
                        return fail(format!("{who} bulk length"));
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

    /// Where the arguments of the request are that [`next`](Self::next) has found: on loan, until they are
    /// [given back](Self::give_back) for their memory.
    pub fn lend(&mut self) -> Vec<Range<usize>> {
        std::mem::take(&mut self.args)
    }

    /// Takes back what was lent.
    pub fn give_back(&mut self, args: Vec<Range<usize>>) {
        self.args = args;
    }

    /// How many bytes at the start of the buffer belong to requests that are complete. They are forgotten: the caller removes them.
    pub fn take_consumed(&mut self) -> usize {
        let complete = match self.state {
            State::Start => self.at,
            State::Args { .. } | State::Bulk { .. } => self.start,
        };
        self.at -= complete;
        self.start = self.start.saturating_sub(complete);
        if matches!(self.state, State::Start) {
            self.args = Vec::new(); // An idle connection keeps nothing.
        }
        self.args.iter_mut().for_each(|arg| *arg = arg.start - complete..arg.end - complete);
        complete
    }

    /// The number behind a mark, and its line end; `None` while it is incomplete.
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

    /// A request typed as a line, perhaps an empty one; `false` while it is incomplete.
    fn line(&mut self, buffer: &mut [u8]) -> Result<bool, ProtocolError> {
        let rest = buffer.get_mut(self.at..).unwrap_or_default();
        let Some(len) = rest.iter().take(LINE_MAX).position(|byte| *byte == b'\n') else {
            return if rest.len() < LINE_MAX { Ok(false) } else { fail("too big inline request") };
        };
        let line = rest.get_mut(..len).unwrap_or_default();
        if !split_words(line, |word| self.args.push(self.at + word.start..self.at + word.end)) {
            return fail("unbalanced quotes in request");
        }
        self.at += len + 1;
        Ok(true)
    }
}

/// Words as Redis' command line takes them: separated by spaces; `"with \n \r \t \b \a \\ \" \xHH"`, `'with \' only'`. Escapes are
/// replaced in place, which makes a word shorter, never longer. `false` when a quote is not closed, or something but a space follows it.
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

/// The byte that stands behind a backslash, and how many bytes it takes with the backslash.
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
