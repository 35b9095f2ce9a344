//! The commands of a transaction, kept until `EXEC`.

use super::command::Command;
use bytes::BytesMut;
use std::ops::Range;

/// The commands since `MULTI`.
#[derive(Default)]
pub struct Transaction {
    /// The arguments of all commands.
    pub arguments: BytesMut,
    pub commands: Vec<(&'static Command, Vec<Range<usize>>)>,
    /// Their memory, in bytes.
    pub held: usize,
    pub is_spoilt: bool,
}

impl Transaction {
    /// Marks it as aborted and frees its memory.
    pub fn spoil(&mut self) {
        *self = Transaction { is_spoilt: true, ..Transaction::default() };
    }

    /// Whether one of the commands changes something.
    pub fn changes(&self) -> bool {
        self.commands.iter().any(|(command, _)| command.is_change())
    }

    pub fn push(&mut self, command: &'static Command, words: impl Iterator<Item = impl AsRef<[u8]>>) {
        let mut ranges = Vec::new();
        for word in words {
            let start = self.arguments.len();
            self.arguments.extend_from_slice(word.as_ref());
            ranges.push(start..self.arguments.len());
        }
        self.commands.push((command, ranges));
    }
}
