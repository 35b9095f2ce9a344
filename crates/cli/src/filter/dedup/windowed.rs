//! `filter dedup --window`: prints every line once in a while, by a filter that forgets.

use super::timestamp::split_timestamp;
use crate::context::{Context, Failure, Outcome};
use crate::filter::input::InputLines;
use crate::human;
use crate::print::LineFormat;
use crate::system;
use sidebloom::filter::{Error, RotatingBloom};
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Memory other than filters: code, stacks, input and output buffers.
const BASE_BYTES: u64 = 12 << 20;
const MIN_MEMORY: u64 = 16 << 20;

/// The options of [`Args`](super) that apply.
pub struct Windowed {
    pub lines: PathBuf,
    pub null: bool,
    pub memory: u64,
    pub window: Duration,
    pub rate: f64,
    pub timestamps: bool,
}

impl Windowed {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        if self.memory < MIN_MEMORY {
            return Err(Failure::message(format!("--memory {}: at least 16M is needed", self.memory)));
        }
        let window_ms = u64::try_from(self.window.as_millis()).unwrap_or(u64::MAX);
        let mut seen = RotatingBloom::new(window_ms, self.rate, self.memory - BASE_BYTES)?;
        let mut out = cx.out();
        let format = LineFormat::new(cx.json, self.null);
        let mut lines = InputLines::open(&self.lines, "reading")?.ending_in_nul(self.null);
        // A clock that nobody can set.
        let started = Instant::now();
        let mut new = 0u64;
        loop {
            if !lines.has_line_in_memory() {
                out.flush()?; // Before waiting for input.
            }
            let number = lines.number() + 1;
            let Some(line) = lines.next()? else { break };
            let (time_ms, key) = if self.timestamps {
                split_timestamp(line).map_err(|why| self.bad_line(number, &why))?
            } else {
                (started.elapsed().as_millis() as u64, line)
            };
            if seen.insert_new(key, time_ms).map_err(|error| self.refused(number, error))? {
                new += 1;
                format.write(&mut *out, line)?;
            }
        }
        tracing::info!("{} of {} lines are new", human::count(new), human::count(lines.number()));
        tracing::info!(
            "the window has {} lines in {} filters of {}; of new lines, {} would be taken for seen",
            human::count(seen.keys()),
            seen.filters(),
            human::bytes(seen.bytes() as f64),
            human::percent(seen.fpr(), 1.0),
        );
        system::log_peak_memory();
        Ok(Outcome::Found)
    }

    fn bad_line(&self, number: u64, why: &str) -> Failure {
        Failure::message(format!("{}: line {number}: {why}", self.lines.display()))
    }

    fn refused(&self, number: u64, error: Error) -> Failure {
        match error {
            Error::Full { capacity, .. } => {
                let (kept, rate) = (human::count(capacity), human::percent(self.rate, 1.0));
                let memory = self.memory;
                let why = format!(
                    "too many lines in the window: --memory {memory} has room for {kept} at a rate of {rate}; \
                     give more memory, a shorter window or a higher rate"
                );
                self.bad_line(number, &why)
            }
            error => error.into(),
        }
    }
}
