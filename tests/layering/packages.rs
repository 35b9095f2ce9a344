//! Which packages of the workspace each one may depend on.

use std::collections::BTreeSet;

use crate::{Files, resolved, workspace};

/// In order: a package sees only those above it.
const DEPENDENCIES: [(&str, &[&str]); 19] = [
    ("sidebloom-filter", &[]),
    ("sidebloom", &["sidebloom-filter"]),
    ("sidebloom-capi", &["sidebloom"]),
    ("sidebloom-sqlite", &["sidebloom"]),
    ("sidebloom-postgres", &["sidebloom-filter", "sidebloom"]),
    ("sidebloom-remote", &["sidebloom-filter", "sidebloom"]),
    ("sidebloom-rocksdb-plugin", &["sidebloom-filter"]),
    ("sidebloom-rocksdb", &["sidebloom", "sidebloom-rocksdb-plugin"]),
    ("sidebloom-rocksdb-shared", &["sidebloom-rocksdb-plugin"]),
    ("sidebloom-server", &["sidebloom-filter", "sidebloom"]),
    ("sidebloom-slatedb", &["sidebloom-filter", "sidebloom"]),
    (
        "sidebloom-cli",
        &[
            "sidebloom-filter",
            "sidebloom",
            "sidebloom-sqlite",
            "sidebloom-postgres",
            "sidebloom-remote",
            "sidebloom-server",
            "sidebloom-slatedb",
        ],
    ),
    ("sidebloom-python", &["sidebloom", "sidebloom-cli"]),
    ("micro", &["sidebloom-filter", "sidebloom"]),
    ("versus", &["sidebloom-filter", "sidebloom", "sidebloom-rocksdb"]),
    (
        "sidebloom-fuzz",
        &["sidebloom-filter", "sidebloom", "sidebloom-remote", "sidebloom-server", "sidebloom-cli"],
    ),
    ("sidebloom-harness", &["sidebloom"]),
    ("lookup-service", &["sidebloom"]),
    ("seen-service", &["sidebloom"]),
];

/// What embedded packages may depend on. Each further name makes everybody wait.
const FOREIGN: [(&str, &[&str]); 2] = [
    ("sidebloom-filter", &["crc32fast", "getrandom", "libc", "siphasher", "thiserror", "xxhash-rust"]),
    (
        "sidebloom",
        &[
            "arc-swap",
            "boxcar",
            "bytes",
            "caseless",
            "crossbeam-skiplist",
            "libc",
            "fsst-rs",
            "lz4_flex",
            "memmap2",
            "quick_cache",
            "rustix",
            "serde",
            "sha2",
            "shuttle",
            "thiserror",
            "tracing",
            "unicode-normalization",
            "zstd",
        ],
    ),
];

/// The packages that may use `sidebloom::internal`, which docs.rs does not show. The first is the store's
/// own, with its examples.
const INSIDERS: [&str; 5] = ["", "benches/micro", "crates/cli", "crates/remote", "fuzz"];

/// The lines of a manifest, each with its section; a section's header too.
fn lines(manifest: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut section = "";
    manifest.lines().map(move |line| {
        if let Some(header) = line.strip_prefix('[') {
            section = header.trim_end_matches(']');
        }
        (section, line)
    })
}

/// The package that a line of a manifest depends on, as `name = …`, `name.workspace = …`,
/// `x = { package = "name" }` or `[dependencies.name]`; for any target, including build dependencies, but not
/// for tests.
fn dependency<'a>(section: &'a str, line: &'a str) -> Option<&'a str> {
    let kinds = ["dependencies", "build-dependencies"];
    let is_kind = |section: &str| {
        let last = section.rsplit('.').next().unwrap_or_default();
        kinds.contains(&last) && !section.starts_with("workspace")
    };
    let renamed = || line.split_once("package = \"").and_then(|(_, name)| name.split('"').next());
    match section.rsplit_once('.') {
        Some((outer, name)) if is_kind(outer) => renamed().or(line.starts_with('[').then_some(name)),
        _ if !is_kind(section) || !line.starts_with(|c: char| c.is_ascii_alphanumeric()) => None,
        _ => renamed().or(line.split(['.', ' ', '=']).next()),
    }
}

fn violations(manifests: &Files) -> Vec<String> {
    let mut found = Vec::new();
    for (path, manifest) in manifests {
        let Some((_, line)) =
            lines(manifest).find(|(section, line)| *section == "package" && line.starts_with("name"))
        else {
            continue;
        };
        let name = line.trim_start_matches(|c| c != '"').trim_matches('"');
        let Some((_, allowed)) = DEPENDENCIES.iter().find(|(package, _)| *package == name) else {
            found.push(format!("{path}: tests/layering/packages.rs does not list the package {name}"));
            continue;
        };
        let foreign = FOREIGN.iter().find(|(package, _)| *package == name).map(|(_, foreign)| foreign);
        for (section, line) in lines(manifest) {
            let Some(dependency) = dependency(section, line) else { continue };
            let is_ours = DEPENDENCIES.iter().any(|(package, _)| *package == dependency);
            let is_allowed = if is_ours {
                allowed.contains(&dependency)
            } else {
                foreign.is_none_or(|foreign| foreign.contains(&dependency))
            };
            if !is_allowed {
                found.push(format!("{path}: {name} may not depend on {dependency}"));
            }
            if line.contains("bench-support") && !matches!(name, "micro" | "versus") {
                found.push(format!(
                    "{path}: bench-support is for benchmarks, {name} sees public interfaces only"
                ));
            }
        }
    }
    found
}

#[test]
fn packages_depend_on_lower_packages_only() {
    let mut manifests = workspace("toml");
    manifests.retain(|path, _| path.ends_with("Cargo.toml"));
    assert_eq!(violations(&manifests), [""; 0]);
}

/// The file that a line names by `path = "…"` or `include!("…")`, without `..`, from the workspace's root.
fn included(path: &str, line: &str) -> Option<String> {
    let named = ["path = \"", "include!(\""].iter().find_map(|start| line.split_once(start))?.1;
    Some(resolved(path, named.split('"').next()?))
}

/// The package of a source file: the directory above `src`, `tests`, `benches` and so on.
fn package_of(path: &str) -> &str {
    let inner = ["crates/", "benches/"].iter().find_map(|rooms| path.strip_prefix(rooms));
    match inner.and_then(|rest| rest.find('/').map(|len| path.len() - rest.len() + len)) {
        Some(end) => &path[..end],
        None if path.starts_with("fuzz/") => "fuzz",
        None if path.starts_with("harness/") => "harness",
        None if path.starts_with("examples/lookup_service/") => "examples/lookup_service",
        None if path.starts_with("examples/seen_service/") => "examples/seen_service",
        None => "",
    }
}

/// Includes of another package's sources. What tests share is for all.
fn reaches(files: &Files) -> Vec<String> {
    let shared = |path: &str| path.starts_with("fixtures/") || path.contains("tests/support");
    let mut found = Vec::new();
    for (path, text) in files {
        let is_code = |line: &&str| !line.trim_start().starts_with("//");
        for named in text.lines().filter(is_code).filter_map(|line| included(path, line)) {
            if package_of(&named) != package_of(path) && !shared(&named) {
                found.push(format!("{path} includes {named}"));
            }
        }
    }
    found
}

/// Cargo keeps packages from naming private parts of others; `#[path]` and `include!` would bypass that.
#[test]
fn no_package_includes_the_sources_of_another() {
    let mut files = workspace("rs");
    files.remove("tests/layering/packages.rs"); // It has examples.
    assert_eq!(reaches(&files), [""; 0]);
    let planted = [
        ("crates/filter/src/lib.rs", "#[path = \"../../../src/id.rs\"]"),
        ("src/lib.rs", "#[path = \"../crates/filter/src/hash.rs\"]"),
        ("crates/cli/src/lib.rs", "#[path = \"../../filter/src/hash.rs\"]"),
        ("crates/cli/src/lib.rs", "#[cfg_attr(unix, path = \"../../../src/id.rs\")]"),
        ("benches/micro/parts.rs", "include!(\"../../src/id.rs\");"),
    ];
    for (path, line) in planted {
        assert_eq!(reaches(&Files::from([(path.to_owned(), line.to_owned())])).len(), 1, "{path}: {line}");
    }
}

#[test]
fn only_insiders_use_what_docs_rs_does_not_show() {
    let code = |text: &str| text.lines().any(|line| line.trim_start().starts_with("use sidebloom::internal"));
    let users = workspace("rs").into_iter().filter(|(_, text)| code(text));
    let packages: BTreeSet<String> = users.map(|(path, _)| package_of(&path).to_owned()).collect();
    let outsiders: Vec<_> = packages.iter().filter(|package| !INSIDERS.contains(&&***package)).collect();
    assert!(outsiders.is_empty(), "{outsiders:?}");
}

#[test]
fn each_wrong_dependency_is_found() {
    let package = |name: &str, dependency: &str| {
        format!("[package]\nname = \"{name}\"\n[dependencies]\n{dependency}\n")
    };
    let planted = [
        package("sidebloom-filter", "sidebloom.workspace = true"),
        package("sidebloom", "sidebloom-cli = { path = \"crates/cli\" }"),
        package("sidebloom-cli", "sidebloom = { workspace = true, features = [\"bench-support\"] }"),
        package("sidebloom", "clap = \"4\""),
        package("sidebloom", "x = { package = \"sidebloom-cli\", path = \"crates/cli\" }"),
        package("sidebloom", "[dependencies.sidebloom-cli]\npath = \"crates/cli\""),
        package("sidebloom", "[build-dependencies]\nsidebloom-cli.workspace = true"),
        package("sidebloom", "[target.\"cfg(unix)\".dependencies]\nsidebloom-cli.workspace = true"),
        package("newcomer", ""),
    ];
    for manifest in planted {
        let manifests = Files::from([("Cargo.toml".to_owned(), manifest)]);
        assert_eq!(violations(&manifests).len(), 1, "{manifests:?}");
    }
    let fine = package(
        "sidebloom",
        "sidebloom-filter.workspace = true\n[dev-dependencies]\nsidebloom-cli.workspace = true",
    );
    assert_eq!(violations(&Files::from([("Cargo.toml".to_owned(), fine)])), [""; 0]);
}
