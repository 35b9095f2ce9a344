//! The stream of ids, its time, and the right answers.
//!
//! Time is simulated: it passes with the positions of the stream, so that every store remembers equally many
//! ids, however fast it is. One position in 20 repeats an id that is half a life old, and another one an id
//! whose life ended half a life ago. So each answer follows from its position, and no table of ids is needed.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bytes of an id.
pub const ID_BYTES: usize = 24;
/// Bytes of a value.
pub const VALUE_BYTES: usize = 8;
/// How long an id is remembered, in milliseconds of the stream's time.
pub const LIFE_MS: u64 = 3_600_000;
/// Positions that a thread takes at once.
pub const CHUNK: u64 = 256;
/// When the stream begins, in milliseconds since 1970.
const BEGIN_MS: u64 = 1_800_000_000_000;
/// Repetitions come once in so many positions.
const CYCLE: u64 = 20;
/// Where, in a cycle, an id is remembered, and is forgotten, and where those are that they repeat.
const REMEMBERED_AT: u64 = 3;
const FORGOTTEN_AT: u64 = 13;
const REMEMBERED: u64 = 5;
const FORGOTTEN: u64 = 7;

/// How many positions there are.
#[derive(Debug, Clone, Copy, serde::Serialize, serde::Deserialize)]
pub struct Stream {
    /// Positions in the life of an id.
    pub window: u64,
    /// All positions.
    pub total: u64,
}

/// A position of the stream.
pub struct Event {
    /// The id.
    pub id: [u8; ID_BYTES],
    /// Its value.
    pub value: [u8; VALUE_BYTES],
    /// The right answer.
    pub is_new: bool,
}

impl Stream {
    /// The time at a position, in milliseconds since 1970.
    pub fn millis_at(self, position: u64) -> u64 {
        BEGIN_MS + position * LIFE_MS / self.window
    }

    /// What comes at a position.
    pub fn event(self, position: u64) -> Event {
        let before = |positions: u64, of_cycle: u64| {
            position.checked_sub(positions).map(|at| at - at % CYCLE + of_cycle)
        };
        let repeated = match position % CYCLE {
            REMEMBERED_AT => before(self.window / 2, REMEMBERED).map(|at| (at, false)),
            FORGOTTEN_AT => before(self.window / 2 * 3, FORGOTTEN).map(|at| (at, true)),
            _ => None,
        };
        let (number, is_new) = repeated.unwrap_or((position, true));
        Event { id: id_of(number), value: position.to_be_bytes(), is_new }
    }
}

/// Random bytes that follow from the number: SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom
/// number generators", 2014).
fn id_of(number: u64) -> [u8; ID_BYTES] {
    let mut id = [0; ID_BYTES];
    let mut state = number.wrapping_mul(3);
    for word in id.as_chunks_mut::<8>().0 {
        state = state.wrapping_add(1);
        let mut mixed = state.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        *word = (mixed ^ mixed >> 31).to_be_bytes();
    }
    id
}

/// The stream's time.
#[derive(Debug, Default)]
pub struct StreamClock(AtomicU64);

impl StreamClock {
    /// Sets the time, in milliseconds since 1970, unless it is later.
    pub fn pass_to(&self, millis: u64) {
        self.0.fetch_max(millis, Relaxed);
    }

    /// The time in milliseconds since 1970.
    pub fn millis(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// The time in seconds since 1970.
    pub fn seconds(&self) -> u32 {
        (self.millis() / 1000) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn answers_are_those_of_a_table_of_all_ids() {
        let stream = Stream { window: 2000, total: 9000 };
        let mut seen = HashMap::new();
        let mut repeated = [0; 2];
        for position in 0..stream.total {
            let (event, now) = (stream.event(position), stream.millis_at(position));
            let before = seen.get(&event.id).copied();
            assert_eq!(event.is_new, before.is_none_or(|then| then + LIFE_MS <= now), "{position}");
            repeated[usize::from(event.is_new)] += u64::from(before.is_some());
            if event.is_new {
                seen.insert(event.id, now);
            }
        }
        assert_eq!(repeated, [(9000 - 1000) / 20, (9000 - 3000) / 20]);
    }
}
