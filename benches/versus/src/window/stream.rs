//! The stream of ids, its time, and the right answers.
//!
//! Time is simulated: it passes with the positions of the stream, so that every store remembers equally many
//! ids, however fast it is. One position in 20 repeats an id that is half a mean life old, and another one an
//! id that is one and a half old. So each answer follows from its position, and no table of ids is needed.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bytes of an id.
pub const ID_BYTES: usize = 24;
/// Bytes of a value.
pub const VALUE_BYTES: usize = 8;
/// How long an id is remembered in the mean, in milliseconds of the stream's time.
pub const LIFE_MS: u64 = 3_600_000;
/// No life ends so close to the moment at which its id returns, because threads and stores differ about it.
const MARGIN_MS: u64 = LIFE_MS / 10;
/// Positions that a thread takes at once.
pub const CHUNK: u64 = 256;
/// When the stream begins, in milliseconds since 1970.
const BEGIN_MS: u64 = 1_800_000_000_000;
/// Repetitions come once in so many positions.
const CYCLE: u64 = 20;
/// Where, in a cycle, ids are that return early and late, and where they return.
const EARLY: u64 = 5;
const LATE: u64 = 7;
const EARLY_AGAIN: u64 = 3;
const LATE_AGAIN: u64 = 13;

/// How many positions there are, and how long ids are remembered.
#[derive(Debug, Clone, Copy, serde::Serialize, serde::Deserialize)]
pub struct Stream {
    /// Positions in the mean life of an id.
    pub window: u64,
    /// All positions.
    pub total: u64,
    /// Whether lives have an exponential distribution. Otherwise all are the same.
    pub mixed: bool,
}

/// A position of the stream.
pub struct Event {
    /// The id.
    pub id: [u8; ID_BYTES],
    /// Its value.
    pub value: [u8; VALUE_BYTES],
    /// The right answer.
    pub is_new: bool,
    /// How long the id is remembered from now on if it is new, in milliseconds of the stream's time.
    pub life_ms: u64,
}

impl Stream {
    /// The time at a position, in milliseconds since 1970.
    pub fn millis_at(self, position: u64) -> u64 {
        BEGIN_MS + position * LIFE_MS / self.window
    }

    /// How long the id is remembered that is new at a position.
    fn life_ms(self, position: u64) -> u64 {
        if !self.mixed {
            return LIFE_MS;
        }
        let uniform = ((split_mix(position) >> 11) + 1) as f64 / (1u64 << 53) as f64;
        let life = ((-uniform.ln() * LIFE_MS as f64) as u64).max(1);
        let returns_after = match position % CYCLE {
            EARLY => LIFE_MS / 2,
            LATE => LIFE_MS / 2 * 3,
            _ => return life,
        };
        if life.abs_diff(returns_after) < MARGIN_MS { life + 2 * MARGIN_MS } else { life }
    }

    /// What comes at a position.
    pub fn event(self, position: u64) -> Event {
        let before = |positions: u64, of_cycle: u64| {
            position.checked_sub(positions).map(|at| at - at % CYCLE + of_cycle)
        };
        let repeated = match position % CYCLE {
            EARLY_AGAIN => before(self.window / 2, EARLY),
            LATE_AGAIN => before(self.window / 2 * 3, LATE),
            _ => None,
        };
        let has_ended =
            |number: u64| self.millis_at(number) + self.life_ms(number) <= self.millis_at(position);
        Event {
            id: id_of(repeated.unwrap_or(position)),
            value: position.to_be_bytes(),
            is_new: repeated.is_none_or(has_ended),
            life_ms: self.life_ms(position),
        }
    }
}

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
fn split_mix(number: u64) -> u64 {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// Random bytes that follow from the number.
fn id_of(number: u64) -> [u8; ID_BYTES] {
    let mut id = [0; ID_BYTES];
    for (word, at) in id.as_chunks_mut::<8>().0.iter_mut().zip(1..) {
        *word = split_mix(number.wrapping_mul(3).wrapping_add(at)).to_be_bytes();
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
        for mixed in [false, true] {
            let stream = Stream { window: 2000, total: 9000, mixed };
            let mut seen = HashMap::new();
            let mut repeated = [0; 2];
            for position in 0..stream.total {
                let (event, now) = (stream.event(position), stream.millis_at(position));
                let before = seen.get(&event.id).copied();
                assert_eq!(event.is_new, before.is_none_or(|until| until <= now), "{position}");
                repeated[usize::from(event.is_new)] += u64::from(before.is_some());
                if event.is_new {
                    seen.insert(event.id, now + event.life_ms);
                }
            }
            let expected = [(9000u64 - 1000) / 20, (9000 - 3000) / 20];
            assert_eq!(repeated[0] + repeated[1], expected[0] + expected[1]);
            assert!(mixed != (repeated == expected), "{repeated:?}");
        }
    }

    #[test]
    fn mixed_lives_have_their_mean_and_none_is_empty() {
        let stream = Stream { window: 2000, total: 1 << 22, mixed: true };
        assert!((0..stream.total).all(|position| stream.life_ms(position) > 0));
        let mean = (0..stream.total).map(|position| stream.life_ms(position)).sum::<u64>() / stream.total;
        assert!(mean.abs_diff(LIFE_MS) < LIFE_MS / 50, "{mean}");
    }
}
