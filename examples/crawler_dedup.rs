//! A crawler that visits each URL once, on the store itself. `insert_new_many` takes the links of a page,
//! remembers those that are new, and says which they are. For nearly every new link, a filter answers, and
//! nothing is read.

use sidebloom::{Error, IoOp, Options};

fn main() -> sidebloom::Result<()> {
    let dir = tempfile::tempdir().map_err(|e| Error::io(IoOp::CreateDir, std::env::temp_dir(), e))?;
    // With a memtable of 256 KiB, most URLs are soon in segments.
    let seen = Options::new().memtable_bytes(256 << 10).open(dir.path().join("seen.db"))?;
    let mut queue = vec!["/page/0".to_owned()];
    let (mut links, mut pages) = (0, 0);
    if seen.insert_new("/page/0", "")? {
        pages += 1;
    }
    while let Some(url) = queue.pop() {
        let found: Vec<(String, &str)> = links_of(&url).into_iter().map(|link| (link, "")).collect();
        let are_new = seen.insert_new_many(&found)?;
        links += found.len();
        let new = found.into_iter().zip(are_new).filter_map(|((link, _), is_new)| is_new.then_some(link));
        let known = queue.len();
        queue.extend(new);
        pages += queue.len() - known;
    }

    let stats = seen.stats();
    println!("{links} links led to {pages} pages, each visited once");
    println!(
        "filters answered {} times that a segment lacks a link, and were wrong {} times that it has it; {} blocks were read",
        stats.filter_negatives, stats.filter_false_positives, stats.block_reads
    );
    assert_eq!(pages, 50_000, "every page of this little web was found");
    seen.close()
}

/// A web of 50,000 pages: each links to its two successors in a tree, and to three pages anywhere.
fn links_of(url: &str) -> Vec<String> {
    const PAGES: u64 = 50_000;
    let page: u64 = url.rsplit('/').next().and_then(|number| number.parse().ok()).unwrap_or(0);
    let anywhere = |i: u64| (page * 7919 + i * 104_729) % PAGES;
    let tree = [2 * page + 1, 2 * page + 2].into_iter().filter(|&child| child < PAGES);
    tree.chain((0..3).map(anywhere)).map(|page| format!("/page/{page}")).collect()
}
