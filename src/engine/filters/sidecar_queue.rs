//! The queue of sidecars that a background thread verifies or rebuilds.
//!
//! Reading a few files ahead of the verification keeps the disk busy. The number starts at zero and grows,
//! because the first lookups after opening would wait for these reads.

use crate::engine::tasks::queue::Queue;

/// The most files read ahead: about 5 MB of filters at the default segment size.
const AHEAD: usize = 8;

/// Checks per additional file of read-ahead.
const CHECKS_PER_FILE: usize = 4;

/// The segments whose sidecars wait, in order.
pub(crate) struct SidecarQueue<T> {
    waiting: Queue<T>,
    /// How many of the first ones are being read.
    ahead: usize,
    /// How many have been taken from the queue.
    taken: usize,
}

impl<T> Default for SidecarQueue<T> {
    fn default() -> Self {
        SidecarQueue { waiting: Queue::default(), ahead: 0, taken: 0 }
    }
}

impl<T: Clone> SidecarQueue<T> {
    /// Appends segments.
    pub fn append(&mut self, segments: Queue<T>) {
        self.waiting.append(segments);
    }

    /// Appends a segment.
    pub fn push(&mut self, segment: T) {
        self.waiting.push(segment);
    }

    /// The first segment, and some of the next ones, whose sidecars should be read ahead during its check.
    /// Each segment is returned for reading ahead only once.
    pub fn pop(&mut self) -> Option<(T, Vec<T>)> {
        let first = self.waiting.pop()?;
        self.ahead = self.ahead.saturating_sub(1);
        let window = AHEAD.min(self.taken / CHECKS_PER_FILE);
        self.taken += 1;
        if self.ahead > window / 2 {
            return Some((first, Vec::new()));
        }
        let next: Vec<T> = self.waiting.iter().take(window).skip(self.ahead).cloned().collect();
        self.ahead += next.len();
        Some((first, next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sidecar_is_read_ahead_once_and_few_at_a_time_fewer_at_first() {
        for len in [0, 1, 2, AHEAD as u64, 100] {
            let mut queue = SidecarQueue::default();
            queue.append((0..len).collect());
            let (mut checked, mut begun) = (Vec::new(), Vec::new());
            while let Some((id, ahead)) = queue.pop() {
                checked.push(id);
                begun.extend(ahead);
                let most = checked.len() + AHEAD.min((checked.len() - 1) / CHECKS_PER_FILE);
                assert!(begun.len() < most, "{} begun at {}", begun.len(), checked.len());
                if checked.len() == 50 {
                    queue.append((len..len + 3).collect());
                }
            }
            let all = if len < 50 { len } else { len + 3 };
            assert_eq!(checked, (0..all).collect::<Vec<_>>());
            assert_eq!(
                begun,
                checked.get(CHECKS_PER_FILE + 1..).unwrap_or_default(),
                "all but the first, in order"
            );
        }
    }
}
