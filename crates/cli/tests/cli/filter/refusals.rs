//! What the filter commands refuse, and which files they leave then.

use super::*;

#[test]
fn a_missing_file_of_lines_is_the_one_that_is_named() {
    let case = Case::new();
    case.lines("in", numbered(0..100));
    for args in ["common in missing", "common missing in", "dedup missing"] {
        case.refused(args, "cannot open missing: No such file");
    }
    for kind in KINDS {
        case.refused(&format!("build --kind {kind} missing -o f"), "cannot open missing: No such file");
    }
    case.refused("common in .", "cannot read .: is a directory");
    assert!(!case.path("f").exists());
}

#[test]
fn a_union_that_holds_more_than_its_rate_allows_is_refused() {
    let case = Case::new();
    for (name, range) in [("a", 0..1000), ("b", 1000..2000), ("half", 0..500), ("rest", 500..1000)] {
        case.lines(name, numbered(range));
        case.ok(&format!("build --kind bloom --keys 1000 --fpp 0.01 {name} -o {name}.filter"));
    }
    case.refused("union a.filter b.filter -o u", "lines, but the filters are sized for 1,0");
    case.refused("union a.filter b.filter -o u", "absent lines would pass instead of 1.00 %");
    assert!(!case.path("u").exists());
    case.ok("union a.filter b.filter -o u --overfull");
    assert_eq!(case.ok("check -c u b").trim(), "1000");
    // A filter full to the last line is not overfull, nor is a filter united with itself.
    case.ok("union half.filter rest.filter -o u");
    case.ok("union a.filter a.filter -o u");
}

#[test]
fn a_disk_that_is_full_leaves_no_part_of_a_filter() {
    let case = Case::new();
    case.lines("in", numbered(0..100_000));
    case.ok("build --kind bloom in -o whole");
    for args in ["build --kind bloom in -o f", "build --kind blocked in -o f", "send whole -o f"] {
        // No file may exceed 16 blocks of 512 or 1024 bytes; the signal is ignored, so writing fails.
        let script = format!("trap '' XFSZ; ulimit -f 16; exec \"$0\" filter {args}");
        let mut command = Command::new("sh");
        command.current_dir(case.dir.path()).env("TMPDIR", case.dir.path());
        let binary = env!("CARGO_BIN_EXE_sidebloom");
        let ran = command.arg("-c").arg(script).arg(binary).output().unwrap();
        let said = String::from_utf8(ran.stderr).unwrap();
        assert_eq!(ran.status.code(), Some(2), "{args}: {said}");
        assert!(said.contains("File too large"), "{args}: {said}");
        let mut left: Vec<_> =
            std::fs::read_dir(case.dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["in", "whole"], "{args}");
    }
}
