//! What helps a user who took one thing for another.

use crate::sandbox::Sandbox;

#[test]
fn a_guard_command_on_a_store_says_that_it_is_a_store() {
    let sandbox = Sandbox::new();
    sandbox.ok(&["put", "a", "1"]);
    let store = sandbox.store().to_str().unwrap().to_owned();
    let said = sandbox.fails(&["guard", "check", &store]);
    assert!(said.contains("it is a store") && !said.contains("delete"), "{said}");
}

#[test]
fn nobody_is_told_to_delete_a_directory_that_is_no_guard() {
    let sandbox = Sandbox::new();
    let dir = sandbox.path("home");
    let stats = ["guard", "stats", dir.to_str().unwrap()];
    assert!(sandbox.fails(&stats).contains("there is nothing at this path"));
    std::fs::create_dir(&dir).unwrap();
    assert!(sandbox.fails(&stats).contains("nor any other: build a guard in it"));
    std::fs::write(dir.join("LOCK"), "").unwrap();
    assert!(sandbox.fails(&stats).contains("its build was interrupted; build it again"));
    let lines = sandbox.file("lines", "a\n");
    sandbox.ok(&["guard", "build", dir.to_str().unwrap(), "--lines", &lines]);
    std::fs::remove_file(dir.join("GUARD")).unwrap();
    std::fs::write(dir.join("letter.txt"), "").unwrap();
    assert!(sandbox.fails(&stats).contains("such as letter.txt: check the path"));
}

#[test]
fn a_build_of_a_guard_that_failed_leaves_only_what_was_there() {
    let sandbox = Sandbox::new();
    let (parent, dir) = (sandbox.path("guards"), sandbox.path("guards/of/songs.guard"));
    let dir_name = dir.to_str().unwrap();
    let long = sandbox.file("long", "x".repeat(70_000));
    for lines in ["no/such/file", &long] {
        sandbox.fails(&["guard", "build", dir_name, "--lines", lines]);
        assert!(!parent.exists());
    }
    std::fs::create_dir_all(&dir).unwrap();
    sandbox.fails(&["guard", "build", dir_name, "--lines", "no/such/file"]);
    assert!(dir.exists(), "it was there before");
    std::fs::write(dir.join("letter.txt"), "").unwrap();
    sandbox.fails(&["guard", "build", dir_name, "--lines", &long]);
    assert!(dir.join("letter.txt").exists());
}

#[test]
fn a_scan_of_a_range_that_no_key_can_be_in_says_so() {
    let sandbox = Sandbox::new();
    sandbox.ok(&["put", "m", "1"]);
    let swapped = "--from is after --to; swap them";
    let none = "no key with --prefix is in it";
    for (args, why) in [
        (&["--from", "z", "--to", "a"][..], swapped),
        (&["--from", "z", "--to", "a", "--reverse", "--prefix", "m"], swapped),
        (&["--prefix", "m", "--from", "n"], none),
        (&["--prefix", "m", "--to", "m"], none),
        (&["--hex", "--prefix", "6d", "--to", "6c"], none),
    ] {
        let outcome = sandbox.run(&[&["scan"], args].concat());
        assert!(outcome.code == 1 && outcome.err.contains(why), "{args:?}: {}", outcome.err);
    }
    for args in [
        &["--from", "z", "--to", "z"][..],
        &["--prefix", "m", "--from", "a"],
        &["--prefix", "m", "--from", "mm", "--to", "mz"],
        &["--prefix", "m", "--to", "n"],
    ] {
        assert_eq!(sandbox.run(&[&["scan"], args].concat()).err, "", "{args:?}");
    }
    assert!(sandbox.fails(&["delete", "--from", "z", "--to", "a"]).contains("runs backwards"));
}

#[test]
fn a_store_that_another_process_has_open_is_named_with_it() {
    let sandbox = Sandbox::new();
    let _db = sidebloom::Options::new().open(sandbox.store()).unwrap();
    let copy = sandbox.path("copy");
    let said = sandbox.fails(&["checkpoint", copy.to_str().unwrap()]);
    assert!(said.contains("--wait"), "{said}");
    let process = format!("process {} (", std::process::id());
    // Sandboxes may show no locks.
    let locks = std::fs::read_to_string("/proc/locks").unwrap_or_default();
    assert!(said.contains(&process) || !locks.contains(&format!(" {} ", std::process::id())), "{said}");
}

#[test]
fn options_are_offered_and_taken_where_they_have_an_effect() {
    let sandbox = Sandbox::new();
    for (command, absent) in [
        (&["filter", "info", "f"][..], &["--db=d", "--prefixes=fixed:1", "--wait=1", "--remote-cache=d"][..]),
        (&["guard", "stats", "g"], &["--db=d", "--prefixes=fixed:1", "--remote-cache=d"]),
        (&["completions", "bash"], &["--db=d", "--prefixes=fixed:1", "--wait=1", "--remote-cache=d"]),
        (&["demo"], &["--db=d", "--prefixes=fixed:1", "--wait=1", "--remote-cache=d"]),
        (&["put", "k", "v"], &["--remote-cache=d"]),
    ] {
        let help = sandbox.ok(&[command, &["--help"]].concat());
        for given in absent {
            let option = given.split('=').next().unwrap();
            assert!(!help.contains(option), "{command:?} offers {option}");
            for args in [[&[*given], command].concat(), [command, &[*given]].concat()] {
                let said = sandbox.fails(&args);
                assert!(said.contains(&format!("{option} has no effect on")), "{said}");
            }
        }
        assert!(help.contains("--json"));
    }
    // A shell does not complete what a command refuses.
    let script = sandbox.ok(&["completions", "bash"]);
    let offered = script
        .split("sidebloom__subcmd__filter__subcmd__info)")
        .nth(1)
        .unwrap()
        .split("opts=")
        .nth(1)
        .unwrap();
    let offered = offered.lines().next().unwrap();
    assert!(offered.contains("--json") && !offered.contains("--db"), "{offered}");
    // The variables are for whatever command wants them.
    let lines = sandbox.file("lines", "a\n");
    let filter = sandbox.path("f").to_str().unwrap().to_owned();
    let mut build = sandbox.command();
    build.args(["filter", "build", "--kind", "bloom", &lines, "-o", &filter]);
    build.env("SIDEBLOOM_REMOTE_CACHE", "d").env("SIDEBLOOM_PREFIXES", "fixed:1").assert().success();
    let other = sandbox.path("other").to_str().unwrap().to_owned();
    sandbox.ok(&["--db", &other, "put", "k", "1"]);
    assert_eq!(sandbox.ok(&["get", "k", "--db", &other]), "1");
    assert_eq!(
        sandbox.ok(&["--db", "nowhere", "get", "--json", "k", "--db", &other]).trim(),
        sandbox.ok(&["--json", "--db", &other, "get", "k"]).trim()
    );
}

#[test]
fn impossible_numbers_are_printed_with_few_digits() {
    let sandbox = Sandbox::new();
    let lines = sandbox.file("lines", "a\n");
    let filter = sandbox.path("f").to_str().unwrap().to_owned();
    let build = |kind: &str, option: &str, number: &str| {
        let said = sandbox.fails(&["filter", "build", "--kind", kind, option, number, &lines, "-o", &filter]);
        assert!(said.len() < 250 && !said.contains("00000"), "{kind}: {said}");
        said
    };
    for kind in ["blocked", "bloom", "counting", "scalable"] {
        assert!(build(kind, "--fpp", "1e-300").contains("1e-300"), "{kind}");
    }
    for kind in ["blocked", "bloom", "counting"] {
        build(kind, "--bits-per-key", "1e300");
    }
}
