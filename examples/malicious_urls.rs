//! A browser that warns of malicious URLs without revealing where its user goes. It holds a filter of the
//! list, and sends a URL to the server with the full list only if the filter says "maybe".

use sidebloom::filter::{FilterSpec, LineFilter, Verdict, Width};
use std::collections::HashSet;

/// The server's list.
struct FullList {
    urls: HashSet<String>,
    asked: u32,
}

impl FullList {
    fn check(&mut self, url: &str) -> bool {
        self.asked += 1;
        self.urls.contains(url)
    }
}

fn main() -> sidebloom::Result<()> {
    let urls: HashSet<String> = (0..100_000).map(|i| format!("http://login-{i}.example/verify")).collect();
    // 13.8 bits per URL, one false positive in 7,800.
    let mut sorted: Vec<&String> = urls.iter().collect();
    sorted.sort(); // So the same list always gives the same file.
    let filter = LineFilter::build(FilterSpec::Parity { width: Width::Twelve }, sorted, 7)?;
    let mut server = FullList { urls, asked: 0 };

    let (mut warnings, visits) = (0, 200_000);
    for i in 0..visits {
        // One visit in a thousand is to a page of the list.
        let url = match i % 1000 {
            0 => format!("http://login-{}.example/verify", i / 2),
            _ => format!("https://site-{i}.example/"),
        };
        if filter.contains(&url) == Verdict::Maybe && server.check(&url) {
            warnings += 1;
        }
    }

    println!(
        "filter: {} KiB instead of the list's {} KiB",
        filter.bits() / 8 / 1024,
        server.urls.len() * 31 / 1024
    );
    println!("{visits} visits, {} queries to the server, {warnings} warnings", server.asked);
    assert_eq!(warnings, 200, "no page of the list goes through");
    assert!(server.asked < 320);
    Ok(())
}
