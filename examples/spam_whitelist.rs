//! A spam list in a mail server's memory, with an exact whitelist of known false positives. The addresses
//! that matter (the server's own contacts) are known in advance, so each is looked up once, and the few false
//! positives go to the whitelist.

use sidebloom::filter::{FilterSpec, LineFilter, Verdict, Width};
use std::collections::HashSet;

fn main() -> sidebloom::Result<()> {
    let spammers = (0..200_000).map(|i| format!("offer{i}@spam.example"));
    let contacts: Vec<String> = (0..30_000).map(|i| format!("user{i}@customer.example")).collect();

    // Static, so a parity filter: 7.7 bits per address.
    let blocked = LineFilter::build(FilterSpec::Parity { width: Width::Seven }, spammers, 2024)?;
    let whitelist: HashSet<&String> =
        contacts.iter().filter(|address| blocked.contains(address) == Verdict::Maybe).collect();
    let is_spam =
        |address: &String| blocked.contains(address) == Verdict::Maybe && !whitelist.contains(address);

    let stopped_contacts = contacts.iter().filter(|address| is_spam(address)).count();
    let stopped_spam = (0..200_000).filter(|i| is_spam(&format!("offer{i}@spam.example"))).count();
    let strangers = 100_000;
    let stopped_strangers = (0..strangers).filter(|i| is_spam(&format!("new{i}@stranger.example"))).count();

    println!("filter: {} KiB for {} spammers", blocked.bits() / 8 / 1024, blocked.keys());
    println!("whitelist: {} of {} contacts would have been stopped", whitelist.len(), contacts.len());
    println!(
        "stopped: {stopped_spam} spammers, {stopped_contacts} contacts, {stopped_strangers} of {strangers} strangers"
    );
    assert_eq!((stopped_spam, stopped_contacts), (200_000, 0));
    Ok(())
}
