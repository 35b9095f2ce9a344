//! The header is what the sources say, and its version is the package's.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

use std::path::Path;

/// How to write the header again.
const COMMAND: &str = "SIDEBLOOM_WRITE_HEADER=1 cargo test -p sidebloom-capi --test header";

fn package(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn generated() -> String {
    let config = cbindgen::Config::from_file(package("cbindgen.toml")).unwrap();
    let mut header = Vec::new();
    cbindgen::generate_with_config(package(""), config).unwrap().write(&mut header);
    for_c(&String::from_utf8(header).unwrap())
}

/// Without what only Rust programs need: sections on safety, and `sb_code` in the names of codes.
fn for_c(header: &str) -> String {
    let (mut lines, mut is_safety) = (Vec::<&str>::new(), false);
    for line in header.lines() {
        is_safety = line.starts_with("//") && (is_safety || line == "// # Safety");
        if is_safety {
            // The empty line above it.
            lines.pop_if(|last| *last == "//");
        } else {
            lines.push(line);
        }
    }
    (lines.join("\n") + "\n").replace("SB_CODE_", "SB_")
}

#[test]
fn the_committed_header_is_the_generated_one() {
    let (path, generated) = (package("include/sidebloom.h"), generated());
    if std::env::var_os("SIDEBLOOM_WRITE_HEADER").is_some() {
        std::fs::write(&path, &generated).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = committed.lines().zip(generated.lines()).find(|(a, b)| a != b);
    assert!(committed == generated, "{} is outdated: run {COMMAND}\n{differs:?}", path.display());
}

#[test]
fn every_function_is_declared_and_documented() {
    let header = generated();
    let mut functions = 0;
    for file in std::fs::read_dir(package("src")).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        let names = text.lines().filter_map(|line| line.split_once("extern \"C\" fn ")?.1.split('(').next());
        for name in names {
            let at = header.find(&format!(" {name}(")).or_else(|| header.find(&format!("*{name}(")));
            let before = header[..at.unwrap_or_else(|| panic!("{name} is not declared"))].lines();
            assert!(before.rev().nth(1).unwrap().starts_with("//"), "{name} has no documentation");
            functions += 1;
        }
    }
    assert!(functions > 80, "{functions} functions");
}

/// The name of the shared library changes with the interface.
#[test]
fn the_package_s_library_version_is_the_interface() {
    let manifest = std::fs::read_to_string(package("Cargo.toml")).unwrap();
    let library = manifest.split("[package.metadata.capi.library]").nth(1).unwrap();
    let version = library.lines().find_map(|line| line.strip_prefix("version = \"")).unwrap();
    let first = version.split('.').next().unwrap();
    assert_eq!(first.parse(), Ok(sidebloom_capi::version::SB_INTERFACE));
    assert!(generated().contains(&format!("\n#define SB_INTERFACE {first}\n")));
}
