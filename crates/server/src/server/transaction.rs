//! The commands of a transaction, kept until `EXEC`.

use super::command::Command;
use bytes::BytesMut;
use std::ops::Range;

/// The commands since `MULTI`.
#[derive(Default)]
pub struct Transaction {
    /// The arguments of all commands.
    pub arguments: BytesMut,
    positions: Vec<Range<usize>>,
    commands: Vec<Queued>,
    pub is_spoilt: bool,
}

struct Queued {
    command: &'static Command,
    /// Where the positions of its arguments begin.
    first: usize,
}

impl Transaction {
    /// Marks it as aborted and frees its memory.
    pub fn spoil(&mut self) {
        *self = Transaction { is_spoilt: true, ..Transaction::default() };
    }

    /// Number of commands.
    pub fn len(&self) -> usize {
        self.commands.len()
    }

    /// Memory, in bytes.
    pub fn bytes(&self) -> usize {
        self.arguments.capacity()
            + self.positions.capacity() * size_of::<Range<usize>>()
            + self.commands.capacity() * size_of::<Queued>()
    }

    /// Memory of a command with so many arguments and bytes.
    pub fn bytes_of(args: usize, bytes: usize) -> usize {
        bytes + args * size_of::<Range<usize>>() + size_of::<Queued>()
    }

    /// Whether one of the commands changes something.
    pub fn changes(&self) -> bool {
        self.commands.iter().any(|queued| queued.command.is_change())
    }

    pub fn push(&mut self, command: &'static Command, words: impl Iterator<Item = impl AsRef<[u8]>>) {
        self.commands.push(Queued { command, first: self.positions.len() });
        for word in words {
            let start = self.arguments.len();
            self.arguments.extend_from_slice(word.as_ref());
            self.positions.push(start..self.arguments.len());
        }
    }

    /// The commands from one on, with the positions of their arguments.
    pub fn commands(&self, from: usize) -> impl Iterator<Item = (&'static Command, &[Range<usize>])> {
        let queued = self.commands.get(from..).unwrap_or_default();
        let ends = queued.iter().skip(1).map(|next| next.first).chain([self.positions.len()]);
        queued
            .iter()
            .zip(ends)
            .map(|(queued, end)| (queued.command, self.positions.get(queued.first..end).unwrap_or_default()))
    }
}
