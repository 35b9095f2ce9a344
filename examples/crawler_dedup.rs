//! A crawler that visits each URL once. It looks up every link in a filter. An absent link is certainly new;
//! otherwise the exact list of visited pages on "disk" decides.
//!
//! The number of pages is not known in advance, so the filter is a scalable one.

use sidebloom::filter::{ScalableBloom, Verdict};
use std::collections::HashSet;

fn main() -> sidebloom::Result<()> {
    let mut seen = ScalableBloom::new(1000, 0.01)?;
    let mut visited_on_disk = HashSet::new();
    let mut queue = vec!["/page/0".to_owned()];
    let (mut links, mut disk_lookups) = (0u32, 0u32);

    while let Some(url) = queue.pop() {
        for link in links_of(&url) {
            links += 1;
            if seen.contains(&link) == Verdict::Maybe {
                disk_lookups += 1; // Already visited, or a rare false positive.
                if visited_on_disk.contains(&link) {
                    continue;
                }
            }
            seen.insert(&link)?;
            visited_on_disk.insert(link.clone());
            queue.push(link);
        }
    }

    let pages = visited_on_disk.len();
    println!("{links} links led to {pages} pages, each visited once");
    println!(
        "{disk_lookups} disk lookups, {} of them for false positives",
        disk_lookups + pages as u32 - links
    );
    println!(
        "the filter grew to {} layers; its false-positive rate is {:.2} %",
        seen.layers().len(),
        100.0 * seen.fpr()
    );
    assert_eq!(pages, 50_000, "every page of this little web was found");
    Ok(())
}

/// A web of 50,000 pages: each links to its two successors in a tree, and to three pages anywhere.
fn links_of(url: &str) -> Vec<String> {
    const PAGES: u64 = 50_000;
    let page: u64 = url.rsplit('/').next().and_then(|number| number.parse().ok()).unwrap_or(0);
    let anywhere = |i: u64| (page * 7919 + i * 104_729) % PAGES;
    let tree = [2 * page + 1, 2 * page + 2].into_iter().filter(|&child| child < PAGES);
    tree.chain((0..3).map(anywhere)).map(|page| format!("/page/{page}")).collect()
}
