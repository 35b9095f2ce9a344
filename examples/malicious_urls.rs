//! A browser that warns of malicious URLs without telling anybody where its user goes. It has a filter of the list; only a URL that the
//! filter may know is checked against the full list, which lives on a server.

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
    // 12 lanes: 13.7 bits per URL, one URL in 4096 asked in vain.
    let mut sorted: Vec<&String> = urls.iter().collect();
    sorted.sort(); // the same list gives the same file, whoever builds it
    let filter = LineFilter::build(FilterSpec::Parity { width: Width::Twelve }, sorted, 7)?;
    let mut server = FullList { urls, asked: 0 };

    let (mut warnings, visits) = (0, 200_000);
    for i in 0..visits {
        // One visit in a thousand goes to a page of the list.
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
    println!("{visits} visits, {} questions to the server, {warnings} warnings", server.asked);
    assert_eq!(warnings, 200, "no page of the list goes through");
    assert!(server.asked < 320);
    Ok(())
}
