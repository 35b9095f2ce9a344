//! The counts of each harness's last long execution, in `harness/records`.

use serde::Serialize;
use serde_json::json;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Writes the counts of a long execution, for the repository.
pub fn write(name: &str, counts: &impl Serialize, took: Duration) -> std::io::Result<()> {
    let record = json!({
        "harness": name,
        "date": output("date", &["-u", "+%F"]),
        "commit": output("git", &["rev-parse", "--short", "HEAD"]),
        "seconds": took.as_secs(),
        "counts": counts,
    });
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("records").join(format!("{name}.json"));
    std::fs::write(path, format!("{record:#}\n"))
}

/// A program's output; empty if it cannot be run.
pub fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
}
