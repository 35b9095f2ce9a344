//! Tells the packages that compile the plug-in where its C++ code is.

fn main() {
    println!("cargo::rerun-if-changed=sidebloom");
    let package = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    println!("cargo::metadata=sources={package}/sidebloom");
}
