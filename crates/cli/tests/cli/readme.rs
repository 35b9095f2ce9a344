//! The README's commands, as a reader types them in a clean clone.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::sandbox::Sandbox;

/// The commands after `$ ` in the README, each with the output shown below it, if any, except Cargo commands.
fn commands(readme: &str) -> Vec<(&str, String)> {
    let mut found: Vec<(&str, String)> = Vec::new();
    let mut in_console = false;
    for line in readme.lines() {
        if line.starts_with("```") {
            in_console = line == "```console";
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| in_console) {
            found.push((command, String::new()));
        } else if let Some((_, output)) = found.last_mut().filter(|_| in_console) {
            *output += &format!("{line}\n");
        }
    }
    found.retain(|(command, _)| !command.starts_with("cargo "));
    found
}

#[test]
fn each_command_of_the_readme_works_and_prints_what_is_shown() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let sandbox = Sandbox::new();
    symlink(root.join("fixtures"), sandbox.path("fixtures")).unwrap();
    let binaries = Path::new(env!("CARGO_BIN_EXE_sidebloom")).parent().unwrap().to_str().unwrap();
    let path = format!("{binaries}:{}", std::env::var("PATH").unwrap());

    let commands = commands(&readme);
    assert!(commands.len() > 10, "{commands:?}");
    for (command, shown) in commands {
        let mut shell = Command::new("sh");
        let output =
            shell.args(["-c", command]).current_dir(sandbox.path("")).env("PATH", &path).output().unwrap();
        assert!(output.status.success(), "{command}\n{}", String::from_utf8_lossy(&output.stderr));
        assert!(
            shown.is_empty() || output.stdout == shown.as_bytes(),
            "{command}\nprints other than\n{shown}"
        );
    }
}
