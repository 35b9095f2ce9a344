//! `sidebloom filter dedup`: prints every line once.
//!
//! With `--window`, once in a while: see [`windowed`]. Otherwise, exactly once, in bounded memory.
//!
//! Looks up each line in a store of the lines seen so far. The filters answer for most new lines, the blocks
//! for repeated ones. Each new line is printed at once, so the command works in the middle of a pipe.
//!
//! # Measured
//! 20 million URLs (1.22 GB, `examples/generate_urls.rs`: numbers 0 to 10 million, then 5 to 15 million),
//! `--memory 64M`, on two cores of an Intel Xeon (Sapphire Rapids): 94 s, 15 million lines printed, at most
//! 51.4 MiB resident, including filters and code. With 256M: 61 s and 129 MiB. The peak is VmHWM of
//! `/proc/self/status`, which `--verbose` prints.

mod timestamp;
mod windowed;

use super::input::{InputLines, can_be_read_twice, estimated_lines};
use crate::context::{Context, Failure, Outcome};
use crate::human::{self, parse_bytes, parse_rate, parse_window};
use crate::print::LineFormat;
use crate::system;
use crate::workdir::WorkDir;
use sidebloom::{Compression, FilterPolicy, Options};
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;
use windowed::Windowed;

/// Print the first occurrence of each line, in order, within a memory limit
///
/// Exact, and streaming: prints a new line at once. A temporary store on disk, in the directory for temporary
/// files (TMPDIR), holds the lines. The limit covers the whole process, including its code and the mapped
/// filters. A quarter of it is for filters, at 2 to 10 bits per line of a file and 8 for standard input, so
/// 64M is enough for 67 or 16 million distinct lines. More lines are an error (exit code 2), after the first
/// ones are printed.
///
/// With --window, a line is printed unless it was seen within that time. Filters in memory remember the
/// lines, without a store, so this is inexact in two ways. First, time is divided into twelfths of the
/// window, and each is forgotten as a whole: a line that was seen within the window is never printed, one
/// that was last seen more than 13/12 of the window ago is new, and in between it may be either. Second, a
/// new line is taken for a seen one, and not printed, with a probability below --rate. With --verbose, the
/// command says at the end what this probability is for the lines that it remembers.
///
/// Each time that a line is seen again, it is remembered for another window, whether it is printed or not.
/// A line takes about 2.6 bytes of memory in each twelfth in which it is seen (2.0 at a rate of 1%), so the
/// default of 256M is enough for some 70 million. If the lines of a window do not fit, that is an error (exit
/// code 2), after the lines before are printed: the rate never gets worse silently.
///
/// A line's time is its arrival. With --timestamps, each line begins with its time, and a blank or TAB;
/// whole lines are printed, but only the rest is compared. The time is in RFC 3339
/// (2026-11-29T18:30:00.5+01:00, with Z or an offset) or in seconds since 1970 (1796000000 or 1796000000.25),
/// from 1970 to 9999, in milliseconds; further digits are ignored. A line that is out of order counts as seen
/// at the latest time so far. So a single line from the far future makes the command forget all lines before
/// it, and none after it until their times reach that line's. Leave out lines whose times cannot be right.
#[derive(clap::Args)]
pub struct Args {
    /// The lines
    #[arg(default_value = "-")]
    lines: PathBuf,
    /// Lines end in NUL instead of LF, also those printed
    #[arg(short = '0', long)]
    null: bool,
    /// Memory limit in bytes, at least 64M, or 16M with --window; K, M and G stand for powers of 1024
    #[arg(long, value_name = "BYTES", default_value = "256M", value_parser = parse_bytes)]
    memory: u64,
    /// Forget lines that were not seen for this long, such as 90m, 24h or 7d; at least a second
    #[arg(long, value_name = "TIME", value_parser = parse_window)]
    window: Option<Duration>,
    /// How many new lines may be taken for seen ones, at most: a share such as 0.001, or 0.1%
    #[arg(long, value_name = "RATE", default_value = "0.001", value_parser = parse_rate, requires = "window")]
    rate: f64,
    /// Lines begin with their time (see above)
    #[arg(long, requires = "window")]
    timestamps: bool,
}

/// Memory other than filters and parts: code, stacks, memory that the allocator retains, and on slow disks a
/// quarter MiB of read-ahead for each of the 32 segments that may wait for a compaction.
const BASE_BYTES: u64 = 32 << 20;
const MIN_MEMORY: u64 = 64 << 20;
/// Measured memory per byte of a part, rounded up: memtables being filled and written, blocks in the cache
/// and in a compaction, a filter being built, and fragmentation.
const TIMES_PART: u64 = 9;
/// Filter bits per line, if the number of lines is known, and if not.
const FILTER_BITS: std::ops::RangeInclusive<f64> = 2.0..=10.0;
const FILTER_BITS_OF_A_STREAM: f64 = 8.0;

struct MemoryPlan {
    /// A memtable, the block cache, and a segment, each.
    part: u64,
    filter_bits_per_line: f64,
    lines_max: u64,
}

impl MemoryPlan {
    fn of(memory: u64, lines: Option<u64>) -> Result<Self, Failure> {
        if memory < MIN_MEMORY {
            return Err(Failure::message(format!("--memory {memory}: at least 64M is needed")));
        }
        let filters = memory / 4;
        let bits = 8.0 * filters as f64;
        let filter_bits_per_line = lines.map_or(FILTER_BITS_OF_A_STREAM, |lines| {
            (bits / lines.max(1) as f64).clamp(*FILTER_BITS.start(), *FILTER_BITS.end())
        });
        Ok(MemoryPlan {
            part: (memory - filters - BASE_BYTES) / TIMES_PART,
            filter_bits_per_line,
            lines_max: (bits / filter_bits_per_line) as u64,
        })
    }
}

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        match self.window {
            Some(window) => {
                let Args { lines, null, memory, rate, timestamps, .. } = self;
                Windowed { lines, null, memory, window, rate, timestamps }.run(cx)
            }
            None => self.run_exact(cx),
        }
    }

    fn run_exact(self, cx: &Context) -> Result<Outcome, Failure> {
        let lines = if can_be_read_twice(&self.lines)? {
            Some(estimated_lines(&self.lines, self.null)?)
        } else {
            None
        };
        let shares = MemoryPlan::of(self.memory, lines)?;
        let dir = WorkDir::temporary("dedup")?;
        let seen = Options::new()
            .memtable_bytes(shares.part)
            .block_cache_bytes(shares.part)
            .segment_bytes(shares.part)
            .filter_policy(FilterPolicy::bits_per_key(shares.filter_bits_per_line))
            .compression(Compression::Lz4)
            .open(dir.path().join("seen"))?;
        let mut out = cx.out();
        let format = LineFormat::new(cx.json, self.null);
        let mut lines = InputLines::open(&self.lines, "reading")?.ending_in_nul(self.null);
        let mut first = 0u64;
        loop {
            if !lines.has_line_in_memory() {
                out.flush()?; // Before waiting for input.
            }
            let Some(line) = lines.next()? else { break };
            if seen.contains_key(line)? {
                continue;
            }
            if first == shares.lines_max {
                return Err(Failure::message(format!(
                    "more than {} distinct lines, too many for --memory {}",
                    human::count(first),
                    self.memory
                )));
            }
            seen.put(line, b"")?;
            first += 1;
            format.write(&mut *out, line)?;
        }
        tracing::info!("{first} of {} lines are distinct", lines.number());
        system::log_peak_memory();
        Ok(Outcome::Found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_is_divided_without_a_rest_that_nobody_has() {
        for memory in [MIN_MEMORY, 100 << 20, 256 << 20, 16 << 30] {
            for lines in [None, Some(0), Some(1_000_000), Some(1 << 40)] {
                let shares = MemoryPlan::of(memory, lines).unwrap();
                let filters = shares.lines_max as f64 * shares.filter_bits_per_line / 8.0;
                let all = filters + (TIMES_PART * shares.part + BASE_BYTES) as f64;
                assert!(all <= memory as f64 && all > memory as f64 - 100.0, "{memory}, {lines:?}: {all}");
                assert!(shares.part >= 1 << 20);
            }
        }
        assert_eq!(MemoryPlan::of(MIN_MEMORY, Some(1 << 40)).unwrap().lines_max, 1 << 26);
        assert!(MemoryPlan::of(MIN_MEMORY - 1, None).is_err());
    }
}
