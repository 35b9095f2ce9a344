//! A queue of files. It grows and shrinks by pieces, so that no step under a lock takes the longer the more files wait.

use crate::id::FileId;
use std::collections::VecDeque;

/// Files in one piece of memory.
const PIECE_FILES: usize = 1024;

/// The files, first in, first out.
#[derive(Default)]
pub(crate) struct IdQueue {
    /// None of them is empty.
    pieces: VecDeque<VecDeque<FileId>>,
}

impl IdQueue {
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    pub fn push(&mut self, id: FileId) {
        match self.pieces.back_mut() {
            Some(piece) if piece.len() < PIECE_FILES => piece.push_back(id),
            _ => self.pieces.push_back(VecDeque::from([id])),
        }
    }

    /// Moves the files of another queue to the end of this one.
    pub fn append(&mut self, mut more: IdQueue) {
        self.pieces.append(&mut more.pieces);
    }

    pub fn pop(&mut self) -> Option<FileId> {
        let piece = self.pieces.front_mut()?;
        let id = piece.pop_front();
        if piece.is_empty() {
            self.pieces.pop_front();
        }
        id
    }

    pub fn iter(&self) -> impl Iterator<Item = FileId> {
        self.pieces.iter().flatten().copied()
    }
}

impl FromIterator<FileId> for IdQueue {
    fn from_iter<I: IntoIterator<Item = FileId>>(ids: I) -> Self {
        let mut queue = IdQueue::default();
        ids.into_iter().for_each(|id| queue.push(id));
        queue
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone)]
    enum Step {
        Push(u64),
        Append(u64),
        Pop(usize),
    }

    proptest! {
        #[test]
        fn i7_a_queue_of_files_is_one_whose_pieces_are_small(
            steps in prop::collection::vec(
                prop_oneof![any::<u64>().prop_map(Step::Push), (0u64..3000).prop_map(Step::Append), (0usize..3000).prop_map(Step::Pop)], 1..40,
            ),
        ) {
            let (mut queue, mut expected) = (IdQueue::default(), VecDeque::new());
            for step in steps {
                match step {
                    Step::Push(id) => {
                        queue.push(FileId(id));
                        expected.push_back(FileId(id));
                    }
                    Step::Append(count) => {
                        queue.append((0..count).map(FileId).collect());
                        expected.extend((0..count).map(FileId));
                    }
                    Step::Pop(count) => {
                        (0..count).for_each(|_| assert_eq!(queue.pop(), expected.pop_front()));
                    }
                }
                prop_assert!(queue.iter().eq(expected.iter().copied()));
                prop_assert_eq!(queue.is_empty(), expected.is_empty());
                prop_assert!(queue.pieces.iter().all(|piece| piece.capacity() <= PIECE_FILES));
            }
        }
    }
}
