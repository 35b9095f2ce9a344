//! Consecutive commands of one connection: queries whose filter lines are prefetched together, or changes
//! applied as one write.

use super::command::ItemOp;
use super::replies::Replies;
use std::ops::Range;

/// Commands of one kind, not executed yet.
#[derive(Default)]
pub struct PendingCommands {
    /// The items' positions in the connection's buffer.
    pub items: Vec<Range<usize>>,
    /// The commands, each with the number of its items.
    pub commands: Vec<(ItemOp, usize, ReplyShape)>,
}

/// The form of a command's reply.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ReplyShape {
    One,
    Array,
}

impl PendingCommands {
    /// What the first command does with its items.
    pub fn what(&self) -> Option<ItemOp> {
        self.commands.first().map(|(what, ..)| *what)
    }

    pub fn push(&mut self, what: ItemOp, items: &[Range<usize>], shape: ReplyShape) {
        self.items.extend_from_slice(items);
        self.commands.push((what, items.len(), shape));
    }

    /// Each item, with its operation.
    pub fn each(&self) -> impl Iterator<Item = (ItemOp, &Range<usize>)> {
        let whats = self.commands.iter().flat_map(|(what, len, _)| std::iter::repeat_n(*what, *len));
        whats.zip(&self.items)
    }

    /// Writes the replies: `put` writes one answer.
    pub fn reply<A>(
        &self,
        replies: &mut Replies,
        answers: impl IntoIterator<Item = A>,
        put: impl Fn(&mut Replies, A),
    ) {
        let mut answers = answers.into_iter();
        for (_, len, shape) in &self.commands {
            if *shape == ReplyShape::Array {
                replies.array(*len);
            }
            answers.by_ref().take(*len).for_each(|answer| put(replies, answer));
        }
    }

    /// Writes the same error as the reply to every command.
    pub fn refuse(&self, replies: &mut Replies, error: &str) {
        self.commands.iter().for_each(|_| replies.error(error));
    }

    pub fn clear(&mut self) {
        self.items.clear();
        self.commands.clear();
    }
}
