//! The page about the metrics is made from the table.

use super::families::FAMILIES;
use super::family::Kind;
use std::fmt::Write;

/// The page, with the table of families after this head.
fn page(head: &str) -> String {
    let mut page = head.to_owned();
    for family in FAMILIES {
        let label = family.values.label().map_or(String::new(), |label| format!("`{label}`"));
        writeln!(page, "| `{}` | {} | {label} | {} |", family.name, family.kind.name(), family.help).unwrap();
    }
    page
}

/// `UPDATE_GOLDEN=1 cargo test --lib prometheus` writes it.
#[test]
fn the_page_of_metrics_has_the_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/metrics.md");
    let before = std::fs::read_to_string(path).unwrap();
    let end = "|---|---|---|---|\n";
    let (head, _) = before.split_once(end).unwrap();
    let page = page(&format!("{head}{end}"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, page).unwrap();
    } else {
        assert_eq!(before, page, "see UPDATE_GOLDEN above");
    }
}

#[test]
fn names_follow_the_conventions() {
    for (n, family) in FAMILIES.iter().enumerate() {
        let name = family.name;
        assert!(name.starts_with("sidebloom_"), "{name}");
        assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'), "{name}");
        assert_eq!(name.ends_with("_total"), family.kind == Kind::Counter, "{name}");
        for unit in ["micros", "millis", "nanos", "kib", "percent"] {
            assert!(!name.contains(unit), "{name} is not in a base unit");
        }
        assert!(FAMILIES[..n].iter().all(|other| other.name != name), "{name} is there twice");
        assert!(family.help.ends_with('.') && !family.help.contains('\n'), "{name}");
        assert!(!family.help.contains(['|', '\\']), "{name}: it would have to be escaped");
    }
}
