//! Consecutive commands of one connection that are done in one step: questions with their filter lines fetched together, changes as one
//! write.

use super::command::ItemOp;
use super::replies::Replies;
use std::ops::Range;

/// Commands that wait for others of their kind.
#[derive(Default)]
pub struct PendingCommands {
    /// Where the items are in the connection's buffer.
    pub items: Vec<Range<usize>>,
    /// The commands, each with how many of the items are its own.
    pub commands: Vec<(ItemOp, usize, ReplyShape)>,
}

/// How a command's answers are sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ReplyShape {
    One,
    Array,
}

impl PendingCommands {
    /// What is to be done with the items, by the first command.
    pub fn what(&self) -> Option<ItemOp> {
        self.commands.first().map(|(what, ..)| *what)
    }

    pub fn push(&mut self, what: ItemOp, items: &[Range<usize>], shape: ReplyShape) {
        self.items.extend_from_slice(items);
        self.commands.push((what, items.len(), shape));
    }

    /// Each item with what is to be done with it.
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

    /// Writes the same error as the reply to each command.
    pub fn refuse(&self, replies: &mut Replies, error: &str) {
        self.commands.iter().for_each(|_| replies.error(error));
    }

    pub fn clear(&mut self) {
        self.items.clear();
        self.commands.clear();
    }
}
