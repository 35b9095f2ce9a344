//! A store that is removed while a command writes to it.

use crate::sandbox::{Sandbox, files};
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn a_load_whose_store_is_removed_under_it_fails_and_says_why() {
    let sandbox = Sandbox::new();
    let store = sandbox.store();
    let mut load = Command::new(env!("CARGO_BIN_EXE_sidebloom"))
        .args(["load", "-", "--blind", "--db"])
        .arg(&store)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut rows = load.stdin.take().unwrap();
    let write = |rows: &mut dyn Write, first: u32| {
        (first..first + 100_000).try_for_each(|i| writeln!(rows, "row {i:010}")).unwrap();
    };
    write(&mut rows, 0);
    let has_rows = || {
        let logs = files(&store).into_iter().filter(|path| path.extension().is_some_and(|e| e == "wal"));
        logs.into_iter().any(|log| log.metadata().is_ok_and(|log| log.len() > 100_000))
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    while !store.exists() || !has_rows() {
        assert!(Instant::now() < deadline, "no row was written");
        std::thread::sleep(Duration::from_millis(5));
    }
    files(&store).iter().for_each(|file| std::fs::remove_file(file).unwrap());
    write(&mut rows, 100_000);
    drop(rows);
    let output = load.wait_with_output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(2), "{out}{err}");
    assert!(err.contains("LOCK was removed or replaced") && !out.contains("loaded"), "{out}{err}");
    assert_eq!(files(&store).len(), 0);
}
