//! A request whose form is known: its arguments, as positions in a buffer.

use bytes::BytesMut;
use std::ops::Range;

/// The arguments of one request; the command's name comes first.
#[derive(Clone, Copy)]
pub struct Request<'r> {
    pub input: &'r BytesMut,
    pub args: &'r [Range<usize>],
}

impl<'r> Request<'r> {
    pub fn arg(&self, n: usize) -> Option<&'r [u8]> {
        self.args.get(n).map(|arg| slice(self.input, arg))
    }

    /// All arguments.
    pub fn words(&self) -> impl Iterator<Item = &'r [u8]> {
        let input = self.input;
        self.args.iter().map(move |arg| slice(input, arg))
    }
}

/// The bytes at a position.
pub fn slice<'b>(input: &'b BytesMut, position: &Range<usize>) -> &'b [u8] {
    input.get(position.clone()).unwrap_or_default()
}
