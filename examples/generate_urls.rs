//! Prints URLs to try filters on: `generate_urls FIRST COUNT` prints the URLs of the numbers FIRST to FIRST +
//! COUNT − 1. Each number always gives the same URL, and the URLs are unsorted. Overlapping ranges share
//! exactly the URLs of their common numbers.
//!
//! ```text
//! cargo run --release --example generate_urls 0 50000000 > a.txt
//! cargo run --release --example generate_urls 45000000 50000000 > b.txt
//! sidebloom filter common a.txt b.txt --memory 64MiB | wc -l        # 5000000
//! ```

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

const SITES: [&str; 8] = ["news", "shop", "wiki", "blog", "maps", "forum", "video", "mail"];
const PAGES: [&str; 8] = ["index", "article", "product", "thread", "archive", "search", "profile", "tag"];

fn main() -> ExitCode {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    let [first, count] = numbers[..] else {
        eprintln!("usage: generate_urls FIRST COUNT");
        return ExitCode::from(2);
    };
    match print(first, count, &mut BufWriter::with_capacity(1 << 20, io::stdout().lock())) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            eprintln!("generate_urls: {error}");
            ExitCode::from(2)
        }
        _ => ExitCode::SUCCESS,
    }
}

fn print(first: u64, count: u64, out: &mut impl Write) -> io::Result<()> {
    for number in first..first.saturating_add(count) {
        let id = scrambled(number);
        let (site, page) = (SITES[(id % 8) as usize], PAGES[(id / 8 % 8) as usize]);
        let host = id / 64 % 10_000;
        writeln!(out, "https://{site}{host}.example.com/{page}/{id:016x}?ref={}", number % 1000)?;
    }
    out.flush()
}

/// A bijection of 64-bit numbers (the finalizer of SplitMix64), so no two numbers have the same URL.
fn scrambled(number: u64) -> u64 {
    let mut x = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}
