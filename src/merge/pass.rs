//! Passes many rows at once, by the fronts of their keys alone.
//!
//! 1. Each input lists the fronts of the entries that it has at hand, from the current one on: a block, a
//!    group of keys or a chunk of a memtable.
//! 2. The smallest of the first fronts is the current key. Every input that has it moves on; none needs to be
//!    put in order, and none is asked which entry is newer.
//! 3. A front here is the first 32 bytes of a key. It decides if all keys at hand have one length up to that.
//! 4. It stops where that is not so, where an input has tombstones at hand, and before a segment that is not
//!    open: there, entries have to be looked at one by one.

use super::inputs::Inputs;
use crate::direction::Direction;
use crate::error::Result;
use crate::key::LongFront;
use std::ops::Bound;

/// The inputs of a merge, each with the fronts that it has at hand.
pub(super) struct Pass<'m> {
    inputs: &'m mut Inputs,
    streams: Vec<Stream>,
    /// The first front of each stream that is left.
    heads: Vec<LongFront>,
    /// The length of all keys at hand.
    key_len: Option<usize>,
    must_stop: bool,
}

struct Stream {
    input: usize,
    fronts: Vec<LongFront>,
    /// The number of the first front that is left.
    at: usize,
}

impl<'m> Pass<'m> {
    /// Starts at the first entries of these inputs. `None` if that would not help.
    pub fn new(inputs: &'m mut Inputs, from: impl Iterator<Item = usize>) -> Option<Self> {
        if inputs.direction == Direction::Reverse || inputs.mask.is_some() || inputs.end != Bound::Unbounded {
            return None;
        }
        let mut pass =
            Pass { inputs, streams: Vec::new(), heads: Vec::new(), key_len: None, must_stop: false };
        for (at, input) in from.enumerate() {
            pass.streams.push(Stream { input, fronts: Vec::new(), at: 0 });
            pass.heads.push((0, 0));
            pass.list(at);
        }
        Some(pass).filter(|pass| !pass.must_stop)
    }

    /// Moves over at most `most` rows, and counts them in `passed`. Returns whether it has moved past the
    /// current key without reaching the next row.
    pub fn run(&mut self, most: u64, passed: &mut u64) -> Result<bool> {
        for _ in 0..most {
            self.leave_key()?;
            if self.must_stop || self.heads.is_empty() {
                return Ok(true);
            }
            *passed += 1;
        }
        Ok(false)
    }

    /// The inputs that are left, each at its first entry.
    pub fn finish(self) -> Vec<usize> {
        for stream in self.streams.iter().filter(|stream| stream.at > 0) {
            if let Some(source) = self.inputs.all.get_mut(stream.input) {
                source.step_over(stream.at);
            }
        }
        self.streams.into_iter().map(|stream| stream.input).collect()
    }

    /// Moves every stream that is at the smallest key to its next entry. Stops at a segment to open.
    #[inline]
    fn leave_key(&mut self) -> Result<()> {
        let Some(&smallest) = self.heads.iter().min() else { return Ok(()) };
        let mut at = 0;
        while let Some(head) = self.heads.get(at) {
            if *head != smallest || self.step(at)? {
                at += 1;
            }
        }
        Ok(())
    }

    /// Moves stream `at` to its next entry; `false` if it was the last, and the stream is gone.
    #[inline]
    fn step(&mut self, at: usize) -> Result<bool> {
        if let (Some(stream), Some(head)) = (self.streams.get_mut(at), self.heads.get_mut(at))
            && let Some(next) = stream.fronts.get(stream.at + 1)
        {
            stream.at += 1;
            *head = *next;
            return Ok(true);
        }
        self.refill(at)
    }

    #[inline(never)]
    fn refill(&mut self, at: usize) -> Result<bool> {
        let Some(stream) = self.streams.get_mut(at) else { return Ok(false) };
        let input = stream.input;
        if stream.at > 0
            && let Some(source) = self.inputs.all.get_mut(input)
        {
            source.step_over(stream.at);
            stream.at = 0;
        }
        if !self.inputs.advance(input)? {
            self.streams.swap_remove(at);
            self.heads.swap_remove(at);
            return Ok(false);
        }
        self.list(at);
        Ok(true)
    }

    /// Lists what stream `at` has at hand.
    fn list(&mut self, at: usize) {
        let (Some(stream), Some(head)) = (self.streams.get_mut(at), self.heads.get_mut(at)) else { return };
        stream.fronts.clear();
        let source = self.inputs.all.get(stream.input);
        let key_len = source.and_then(|source| source.list_fronts(&mut stream.fronts));
        *head = stream.fronts.first().copied().unwrap_or_default();
        self.key_len = self.key_len.or(key_len);
        self.must_stop |= key_len.is_none() || key_len != self.key_len;
    }
}
