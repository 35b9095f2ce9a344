//! Replies of the Redis protocol, version 2 or 3.

/// Replies to one client.
#[derive(Default)]
pub struct Replies {
    /// Bytes not sent yet.
    pub bytes: Vec<u8>,
    /// Whether the client chose version 3 of the protocol.
    pub resp3: bool,
}

impl Replies {
    fn line(&mut self, mark: u8, text: &[u8]) {
        self.bytes.push(mark);
        self.bytes.extend_from_slice(text);
        self.bytes.extend_from_slice(b"\r\n");
    }

    fn head(&mut self, mark: u8, n: impl itoa::Integer) {
        self.line(mark, itoa::Buffer::new().format(n).as_bytes());
    }

    /// A status, such as `OK`.
    pub fn simple(&mut self, text: &str) {
        self.line(b'+', text.as_bytes());
    }

    /// An error, which starts with a code such as `ERR`.
    pub fn error(&mut self, text: &str) {
        self.line(b'-', text.replace(['\r', '\n'], " ").as_bytes());
    }

    /// An integer. The protocol's are below 2⁶³: larger ones are the largest of these.
    pub fn int(&mut self, n: u64) {
        match n {
            0 => self.bytes.extend_from_slice(b":0\r\n"),
            1 => self.bytes.extend_from_slice(b":1\r\n"),
            n => self.head(b':', n.min(i64::MAX as u64)),
        }
    }

    /// An integer that may be negative.
    pub fn signed(&mut self, n: i64) {
        self.head(b':', n);
    }

    /// A boolean in version 3; 1 or 0 in version 2.
    #[inline]
    pub fn boolean(&mut self, yes: bool) {
        self.bytes.extend_from_slice(match (self.resp3, yes) {
            (true, true) => b"#t\r\n",
            (true, false) => b"#f\r\n",
            (false, true) => b":1\r\n",
            (false, false) => b":0\r\n",
        });
    }

    /// A binary string.
    pub fn bulk(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        self.head(b'$', bytes.len());
        self.bytes.extend_from_slice(bytes);
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// Text for a person to read.
    pub fn text(&mut self, text: &str) {
        if self.resp3 {
            self.head(b'=', text.len() + 4);
            self.bytes.extend_from_slice(b"txt:");
            self.bytes.extend_from_slice(text.as_bytes());
            self.bytes.extend_from_slice(b"\r\n");
        } else {
            self.bulk(text);
        }
    }

    /// Null.
    pub fn null(&mut self) {
        self.bytes.extend_from_slice(if self.resp3 { b"_\r\n" } else { b"$-1\r\n" });
    }

    /// An integer, or null.
    pub fn int_or_null(&mut self, n: Option<u64>) {
        match n {
            Some(n) => self.int(n),
            None => self.null(),
        }
    }

    /// Null in place of an array.
    pub fn null_array(&mut self) {
        self.bytes.extend_from_slice(if self.resp3 { b"_\r\n" } else { b"*-1\r\n" });
    }

    /// The head of an array; its elements follow.
    pub fn array(&mut self, len: usize) {
        self.head(b'*', len);
    }

    /// The head of a map; its keys and values follow. An array of both in version 2.
    pub fn map(&mut self, len: usize) {
        if self.resp3 { self.head(b'%', len) } else { self.array(len * 2) }
    }

    /// The head of a set; its elements follow. An array in version 2.
    pub fn set(&mut self, len: usize) {
        if self.resp3 { self.head(b'~', len) } else { self.array(len) }
    }
}
