//! Files that import each other, directly or indirectly.

use std::collections::{BTreeMap, BTreeSet};

use crate::methods::imports;
use crate::modules::{Imports, Modules};
use crate::{Files, crates};

/// The groups of files in which each one imports every other, directly or indirectly.
pub(crate) fn cycles<'a>(imports: &Imports<'a>) -> BTreeSet<BTreeSet<&'a str>> {
    let reached: BTreeMap<_, _> = imports.keys().map(|file| (*file, reachable(imports, file))).collect();
    let together = |file: &&'a str| {
        let group =
            reached[file].iter().filter(|other| reached.get(**other).is_some_and(|back| back.contains(file)));
        group.copied().collect::<BTreeSet<_>>()
    };
    imports.keys().map(together).filter(|group| !group.is_empty()).collect()
}

fn reachable<'a>(imports: &Imports<'a>, from: &'a str) -> BTreeSet<&'a str> {
    let (mut found, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(file) = open.pop() {
        for next in imports.get(file).into_iter().flat_map(BTreeMap::keys) {
            if found.insert(*next) {
                open.push(next);
            }
        }
    }
    found
}

fn print_cycle(dir: &str, group: &BTreeSet<&str>, imports: &Imports<'_>) {
    println!("{dir}: {group:?}");
    for from in group {
        for (to, by) in imports[from].iter().filter(|(to, _)| group.contains(*to)) {
            println!(
                "    {from} imports {to} by {}",
                Vec::from_iter(by.iter().map(String::as_str)).join(", ")
            );
        }
    }
}

#[test]
fn no_file_imports_itself_by_way_of_others() {
    let mut found = Vec::new();
    for (dir, files) in crates() {
        let imports = imports(&Modules::new(&files));
        for group in cycles(&imports) {
            print_cycle(&dir, &group, &imports);
            found.push(format!("{dir}: {group:?}"));
        }
    }
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn each_kind_of_cycle_is_found() {
    let planted: [&[(&str, &str)]; 9] = [
        &[("a.rs", "use crate::b::B; pub struct A;"), ("b.rs", "pub struct B(crate::a::A);")],
        &[("a/b.rs", "use super::c::C; pub struct B;"), ("a/c.rs", "use super::b; pub struct C(b::B);")],
        // By way of one re-export, and of two.
        &[
            ("a/mod.rs", "mod b; mod c; pub(crate) use b::B; pub(crate) use c::C;"),
            ("a/b.rs", "use super::C; pub struct B;"),
            ("a/c.rs", "use crate::a::B; pub struct C;"),
        ],
        &[
            ("lib.rs", "mod a; pub use a::*;"),
            ("a/mod.rs", "mod b; mod c; pub use b::B as Renamed; pub(crate) use self::c::{C, D};"),
            ("a/b.rs", "pub struct B(super::D);"),
            ("a/c.rs", "pub struct C(crate::Renamed); pub struct D;"),
        ],
        // A parent that uses its child, which uses what the parent defines.
        &[("a/mod.rs", "mod b; fn f() { b::g() }"), ("a/b.rs", "use super::f; pub fn g() {}")],
        &[("a/mod.rs", "mod b; pub use b::B; struct A(B);"), ("a/b.rs", "use super::*; pub struct B(A);")],
        &[("main.rs", "mod b; fn f() { b::g() }"), ("b.rs", "pub fn g() { crate::f() }")],
        &[
            ("a.rs", "use crate::b::B; pub struct A;"),
            ("b.rs", "use crate::c::C; pub struct B;"),
            ("c.rs", "fn f() { let a = crate::a::A; } pub struct C;"),
        ],
        &[
            ("a.rs", "pub const A: u8 = 0; fn f() { (0..crate::b::B).map(g) }"),
            ("b.rs", "pub const B: u8 = crate::a::A + 1;"),
        ],
    ];
    for files in planted {
        assert_eq!(count(files), 1, "{files:?}");
    }
    let fine: [&[(&str, &str)]; 4] = [
        // A re-export is not an import.
        &[("a/mod.rs", "mod b; pub use b::B; pub struct A;"), ("a/b.rs", "use super::A; pub struct B(A);")],
        // A path through a re-exporting module is an import of the file that it leads to.
        &[
            ("a/mod.rs", "mod b; mod c; pub use b::B; pub use c::C;"),
            ("a/b.rs", "pub struct B(super::C);"),
            ("a/c.rs", "pub struct C;"),
        ],
        // Tests and comments, and modules of other crates with the same name.
        &[
            ("a.rs", "use crate::b::B; pub struct A; #[cfg(test)] mod tests;"),
            ("b.rs", "pub struct B; // crate::a::A\n#[cfg(test)] mod tests { use crate::a::A; }"),
            ("a/tests.rs", "use super::A; pub struct T;"),
        ],
        &[("a.rs", "use crate::b::B; pub struct A;"), ("b.rs", "use other::a::A; pub struct B;")],
    ];
    for files in fine {
        assert_eq!(count(files), 0, "{files:?}");
    }
}

#[cfg(test)]
pub(crate) fn files(files: &[(&str, &str)]) -> Files {
    files.iter().map(|(file, text)| (file.to_string(), text.to_string())).collect()
}

#[cfg(test)]
pub(crate) fn count(planted: &[(&str, &str)]) -> usize {
    cycles(&imports(&Modules::new(&files(planted)))).len()
}
