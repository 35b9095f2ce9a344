//! Consecutive commands of one connection: queries whose filter lines are prefetched together, or changes
//! applied as one write.

use super::catalog::Target;
use super::command::{Command, ItemOp};
use super::item_command::{ItemCommand, ReplyShape};
use super::request::slice;
use crate::resp::Replies;
use bytes::BytesMut;
use std::ops::Range;
use std::time::Duration;

/// More capacity for items and commands than this is freed after a batch, so that an idle connection holds
/// little.
const ITEMS_KEPT: usize = 8;

/// More items or names than this may take so long, or read so much from the disk, that other connections
/// should not wait for them.
pub const FEW_ITEMS: usize = 64;

/// Commands of one kind, not executed yet.
#[derive(Default)]
pub struct PendingCommands {
    /// The items' positions in the connection's buffer.
    items: Vec<Range<usize>>,
    commands: Vec<PendingCommand>,
    /// The position of the name that the last command gave.
    name: Range<usize>,
}

/// One of them.
pub struct PendingCommand {
    pub command: &'static Command,
    /// `None` if there is no such filter. Then it is a question, and nothing is there.
    pub target: Option<Target>,
    pub what: ItemOp,
    pub shape: ReplyShape,
    /// Number of its items.
    len: usize,
}

impl PendingCommands {
    /// What the first command does with its items.
    pub fn what(&self) -> Option<ItemOp> {
        self.commands.first().map(|command| command.what)
    }

    /// Number of commands.
    pub fn len(&self) -> usize {
        self.commands.len()
    }

    /// Adds a command; `what` is done with its items at the target.
    pub fn push(&mut self, command: &ItemCommand<'_>, target: Option<Target>, what: ItemOp) {
        let ItemCommand { command, shape, ref name, items, .. } = *command;
        self.items.extend_from_slice(items);
        self.commands.push(PendingCommand { command, target, what, shape, len: items.len() });
        self.name = name.clone();
    }

    /// The target of the last command, if it gave this name: mostly, the next command gives it, too.
    pub fn target_of(&self, input: &BytesMut, name: &[u8]) -> Option<Target> {
        let last = self.commands.last()?;
        if slice(input, &self.name) == name { last.target.clone() } else { None }
    }

    /// Notes that the commands took this long together.
    pub fn note_time(&self, time: Duration) {
        let all = self.commands.len().max(1) as u32;
        for same in self.commands.chunk_by(|a, b| std::ptr::eq(a.command, b.command)) {
            if let Some(first) = same.first() {
                first.command.calls.note(same.len() as u64, time / all * same.len() as u32);
            }
        }
    }

    /// The commands, for the log of slow ones: the first one's name, and the number of commands and items.
    pub fn summary(&self) -> Vec<Vec<u8>> {
        let name = self.commands.first().map_or("", |first| first.command.name).as_bytes().to_vec();
        vec![name, format!("({} commands, {} items)", self.commands.len(), self.items.len()).into_bytes()]
    }

    /// The commands with their items' positions, in runs of the same target.
    pub fn runs(&self) -> Vec<Run<'_>> {
        let (mut runs, mut rest) = (Vec::new(), self.items.as_slice());
        for commands in self.commands.chunk_by(|a, b| is_same(a.target.as_ref(), b.target.as_ref())) {
            let len = commands.iter().map(|command| command.len).sum();
            let (items, others) = rest.split_at_checked(len).unwrap_or_default();
            runs.push(Run { commands, items });
            rest = others;
        }
        runs
    }

    pub fn clear(&mut self) {
        self.items.clear();
        self.items.shrink_to(ITEMS_KEPT);
        self.commands.clear();
        self.commands.shrink_to(ITEMS_KEPT);
    }

    /// Memory of the items' positions and of the commands, in bytes.
    pub fn bytes(&self) -> usize {
        self.items.capacity() * size_of::<Range<usize>>()
            + self.commands.capacity() * size_of::<PendingCommand>()
    }
}

fn is_same(a: Option<&Target>, b: Option<&Target>) -> bool {
    match (a, b) {
        (Some(Target::Filter(a)), Some(Target::Filter(b))) => std::sync::Arc::ptr_eq(a, b),
        (Some(Target::Guard(a)), Some(Target::Guard(b))) => std::sync::Arc::ptr_eq(a, b),
        (None, None) => true,
        _ => false,
    }
}

/// Consecutive commands with the same target.
pub struct Run<'p> {
    pub commands: &'p [PendingCommand],
    /// The positions of their items.
    pub items: &'p [Range<usize>],
}

impl<'p> Run<'p> {
    pub fn target(&self) -> Option<&'p Target> {
        self.commands.first()?.target.as_ref()
    }

    /// The items, given the buffer that has them.
    pub fn items<'b>(&self, input: &'b BytesMut) -> impl Iterator<Item = &'b [u8]> {
        self.items.iter().map(|item| slice(input, item))
    }

    /// Each command with its items' positions.
    pub fn each(&self) -> impl Iterator<Item = (&'p PendingCommand, &'p [Range<usize>])> {
        let mut rest = self.items;
        self.commands.iter().map(move |command| {
            let (items, others) = rest.split_at_checked(command.len).unwrap_or_default();
            rest = others;
            (command, items)
        })
    }

    /// Writes the replies: `put` writes one answer.
    pub fn reply<A>(
        &self,
        replies: &mut Replies,
        answers: impl IntoIterator<Item = A>,
        put: impl Fn(&mut Replies, A),
    ) {
        let mut answers = answers.into_iter();
        for command in self.commands {
            if command.shape != ReplyShape::One {
                replies.array(command.len);
            }
            answers.by_ref().take(command.len).for_each(|answer| put(replies, answer));
        }
    }

    /// Writes the same error as the reply to every command.
    pub fn refuse(&self, replies: &mut Replies, error: &str) {
        self.commands.iter().for_each(|_| replies.error(error));
    }
}
