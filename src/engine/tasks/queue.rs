//! A queue that grows and shrinks in pieces, so a step under a lock takes the same time at any length.

use std::collections::VecDeque;

/// Items per piece of memory.
const PIECE_LEN: usize = 1024;

/// First in, first out.
pub(crate) struct Queue<T> {
    /// None of them is empty.
    pieces: VecDeque<VecDeque<T>>,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Queue { pieces: VecDeque::new() }
    }
}

impl<T> Queue<T> {
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    pub fn push(&mut self, item: T) {
        match self.pieces.back_mut() {
            Some(piece) if piece.len() < PIECE_LEN => piece.push_back(item),
            _ => self.pieces.push_back(VecDeque::from([item])),
        }
    }

    /// Moves the contents of another queue to the end of this one.
    pub fn append(&mut self, mut more: Queue<T>) {
        self.pieces.append(&mut more.pieces);
    }

    pub fn pop(&mut self) -> Option<T> {
        let piece = self.pieces.front_mut()?;
        let item = piece.pop_front();
        if piece.is_empty() {
            self.pieces.pop_front();
        }
        item
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.pieces.iter().flatten()
    }
}

impl<T> FromIterator<T> for Queue<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut queue = Queue::default();
        items.into_iter().for_each(|item| queue.push(item));
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
        fn i7_a_queue_is_one_whose_pieces_are_small(
            steps in prop::collection::vec(
                prop_oneof![any::<u64>().prop_map(Step::Push), (0u64..3000).prop_map(Step::Append), (0usize..3000).prop_map(Step::Pop)], 1..40,
            ),
        ) {
            let (mut queue, mut expected) = (Queue::default(), VecDeque::new());
            for step in steps {
                match step {
                    Step::Push(id) => {
                        queue.push(id);
                        expected.push_back(id);
                    }
                    Step::Append(count) => {
                        queue.append((0..count).collect());
                        expected.extend(0..count);
                    }
                    Step::Pop(count) => {
                        (0..count).for_each(|_| assert_eq!(queue.pop(), expected.pop_front()));
                    }
                }
                prop_assert!(queue.iter().eq(expected.iter()));
                prop_assert_eq!(queue.is_empty(), expected.is_empty());
                prop_assert!(queue.pieces.iter().all(|piece| piece.capacity() <= PIECE_LEN));
            }
        }
    }
}
