//! Which packages of the workspace each one may depend on.

use crate::{Files, workspace};

/// In order: a package sees only those above it.
const DEPENDENCIES: [(&str, &[&str]); 9] = [
    ("sidebloom-filter", &[]),
    ("sidebloom", &["sidebloom-filter"]),
    ("sidebloom-sqlite", &["sidebloom"]),
    ("sidebloom-postgres", &["sidebloom-filter", "sidebloom"]),
    ("sidebloom-rocksdb", &["sidebloom"]),
    ("sidebloom-cli", &["sidebloom-filter", "sidebloom", "sidebloom-sqlite", "sidebloom-postgres"]),
    ("micro", &["sidebloom-filter", "sidebloom"]),
    ("versus", &["sidebloom-filter", "sidebloom", "sidebloom-rocksdb"]),
    ("sidebloom-fuzz", &["sidebloom-filter", "sidebloom", "sidebloom-cli"]),
];

/// The lines of a manifest, each with its section.
fn lines(manifest: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut section = "";
    manifest.lines().filter_map(move |line| match line.strip_prefix('[') {
        Some(header) => {
            section = header.trim_end_matches(']');
            None
        }
        None => Some((section, line)),
    })
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
        for (_, line) in lines(manifest).filter(|(section, _)| *section == "dependencies") {
            let dependency = line.split(['.', ' ', '=']).next().unwrap_or_default();
            let is_ours = DEPENDENCIES.iter().any(|(package, _)| *package == dependency);
            if is_ours && !allowed.contains(&dependency) {
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

/// Cargo stops a package from naming what another one keeps private; `#[path]` would get round that.
#[test]
fn no_package_includes_the_sources_of_another() {
    for (path, text) in workspace("rs") {
        for line in text.lines().filter(|line| line.trim_start().starts_with("#[path")) {
            assert!(!line.contains("../src"), "{path}: {line}");
        }
    }
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
