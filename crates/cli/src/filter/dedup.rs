//! `sidebloom filter dedup`: every line once.
//!
//! A store of the lines seen so far, asked for each line: its filters answer for most lines that are new, and its blocks for those that
//! are not. Nothing is printed late, so it works in the middle of a pipe.
//!
//! # Measured
//! 20 million URLs (1.22 GB, `examples/generate_urls.rs`: numbers 0 to 10 million, then 5 to 15 million), `--memory 64M`, on two cores
//! of an Intel Xeon (Sapphire Rapids): 94 s; 15 million lines printed; at most 51.4 MiB resident, filters and code included. With 256M,
//! 61 s and 129 MiB. The peak is the process's own (VmHWM in `/proc/self/status`; `-v` prints it).

use super::input::{Lines, can_be_read_twice, estimated_lines};
use crate::context::{Context, Failure, Outcome};
use crate::human::{self, parse_bytes};
use crate::print::write_line;
use crate::system;
use crate::workdir::WorkDir;
use sidebloom::{Compression, FilterPolicy, Options};
use std::path::PathBuf;

/// Print each line the first time that it comes, in order, in a given memory
///
/// Exact, and a stream: a new line is printed at once. The lines are kept in a store on disk meanwhile, in the directory for
/// temporary files (TMPDIR). The memory is all that the process holds, its code and the mapped filters included. A quarter of it is
/// for filters, at 2 to 10 bits for each line of a file and at 8 for standard input, so that 64M are enough for 67 or 16 million
/// different lines. More than that is an error (exit code 2), after the lines so far are printed.
#[derive(clap::Args)]
pub struct Args {
    /// The lines
    #[arg(default_value = "-")]
    lines: PathBuf,
    /// Memory to use, in bytes, at least 64M; K, M and G stand for powers of 1024
    #[arg(long, value_name = "BYTES", default_value = "256M", value_parser = parse_bytes)]
    memory: u64,
}

/// What the process takes beside filters and parts: code, stacks, what the allocator keeps back, and where the disk is slow a quarter
/// MiB of read-ahead for each of the 32 segments that may wait for a compaction.
const BASE_BYTES: u64 = 32 << 20;
const MIN_MEMORY: u64 = 64 << 20;
/// What the process was measured to take for each byte of a part, and a little more: memtables being filled and written, blocks of the
/// cache and of a compaction, a filter being built, and the gaps between all of those.
const TIMES_PART: u64 = 9;
/// Bits of filter for each line, where their number is known, and where it is not.
const FILTER_BITS: std::ops::RangeInclusive<f64> = 2.0..=10.0;
const FILTER_BITS_OF_A_STREAM: f64 = 8.0;

/// How the memory is divided.
struct MemoryPlan {
    /// A memtable, the block cache, and a segment, each.
    part: u64,
    filter_bits_per_line: f64,
    lines_max: u64,
}

impl MemoryPlan {
    fn of(memory: u64, lines: Option<u64>) -> Result<Self, Failure> {
        if memory < MIN_MEMORY {
            return Err(Failure::message(format!("--memory {memory}: at least 64M are needed")));
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
        let lines = if can_be_read_twice(&self.lines)? { Some(estimated_lines(&self.lines)?) } else { None };
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
        let (mut lines, mut first) = (Lines::open(&self.lines, "reading")?, 0u64);
        while let Some(line) = lines.next()? {
            if seen.contains_key(line)? {
                continue;
            }
            if first == shares.lines_max {
                return Err(Failure::message(format!(
                    "more than {} different lines: their filters need more memory than --memory {}",
                    human::count(first),
                    self.memory
                )));
            }
            seen.put(line, b"")?;
            first += 1;
            write_line(&mut *out, line, cx.json)?;
        }
        tracing::info!("{first} of {} lines are different", lines.number());
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
