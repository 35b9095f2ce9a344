//! Hints for a user who mistook one thing for another.

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
    let said = sandbox.fails(&["compact"]);
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
    // Shells do not complete what a command refuses.
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
    // The variables apply to any command that uses them.
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

#[test]
fn get_reads_keys_from_standard_input() {
    let sandbox = Sandbox::new();
    sandbox.ok(&["put", "a\nb", "1"]);
    sandbox.ok(&["put", "c", "2"]);
    sandbox.ok(&["put", "-5", "cold"]);
    let asked = sandbox.run_with(&["get", "-"], b"c\nmissing\nc\n");
    assert_eq!((asked.code, asked.text()), (1, "c\t2\nc\t2\n".to_owned()));
    for null in ["-0", "--null"] {
        for args in [["get", null, "-"], ["get", "-", null]] {
            let asked = sandbox.run_with(&args, b"a\nb\0c\0");
            assert_eq!((asked.code, asked.text()), (0, "a\\nb\t1\nc\t2\n".to_owned()), "{}", asked.err);
        }
    }
    assert_eq!(sandbox.run_with(&["get", "--hex", "-"], b"63\n").text(), "63\t32\n");
    let asked = sandbox.run_with(&["get", "--hex", "-"], b"63\n6\n63\n");
    assert_eq!((asked.code, asked.text()), (2, "63\t32\n".to_owned()), "those before it are answered");
    assert!(asked.err.contains("key 6: "), "{}", asked.err);
    let json = sandbox.run_with(&["get", "--json", "-"], b"c\nd\n").text();
    assert_eq!(json, "{\"key\":\"c\",\"value\":\"2\",\"found\":true}\n{\"key\":\"d\",\"found\":false}\n");
    let many: String = (0..3000).map(|i| format!("{}\n", if i == 2999 { "c" } else { "no" })).collect();
    assert_eq!(sandbox.run_with(&["get", "-"], many.as_bytes()).text(), "c\t2\n");
    // Keys that begin with a hyphen are still keys.
    assert_eq!(sandbox.ok(&["get", "-5"]), "cold");
    let asked = sandbox.run(&["get", "-0", "c"]);
    assert!(asked.code == 1 && asked.text() == "c\t2\n" && asked.err.contains("`get -0 -`"), "{}", asked.err);
    sandbox.ok(&["put", "-0", "zero"]);
    assert_eq!(sandbox.ok(&["get", "-0"]), "zero");
    assert!(sandbox.fails(&["get", "--null", "c"]).contains("standard input"));
    sandbox.ok(&["put", "--", "-", "hyphen"]);
    assert_eq!(sandbox.ok(&["get", "--hex", "2d"]), "68797068656e\n");
}

#[test]
fn lines_end_in_nul_wherever_lines_are_read() {
    let sandbox = Sandbox::new();
    let path = |name: &str| sandbox.path(name).to_str().unwrap().to_owned();
    let (filter, guard) = (path("f"), path("g"));
    let lines = sandbox.file("lines", b"a\nb\0c\0");
    let more = sandbox.file("more", b"c\0a\nb\0d\nd\0c\0");
    let asked = b"a\nb\0a\0c\0";
    let text = |args: &[&str], input: &[u8]| {
        let outcome = sandbox.run_with(args, input);
        assert_eq!(outcome.code, 0, "{args:?}: {}", outcome.err);
        outcome.text()
    };

    for kind in ["blocked", "parity", "small", "counting"] {
        text(&["filter", "build", "-0", "--kind", kind, "--fpp", "0.01%", &lines, "-o", &filter], b"");
        let info = text(&["filter", "info", "--json", &filter], b"");
        assert_eq!(crate::sandbox::number(&info, "keys"), 2.0, "{kind}: {info}");
        assert!(text(&["filter", "check", "-0", &filter], asked).starts_with("a\nb\0"), "{kind}");
    }
    text(&["filter", "add", "-0", &filter], b"e\ne\0");
    assert_eq!(text(&["filter", "check", "-0", "--count", &filter], b"e\ne\0"), "1\n");
    text(&["filter", "remove", &filter, "--null"], b"e\ne\0a\nb\0");
    assert_eq!(text(&["filter", "check", "-0v", &filter], b"e\ne\0a\nb\0"), "e\ne\0a\nb\0");
    assert_eq!(text(&["filter", "dedup", "-0"], b"a\nb\0a\0a\nb\0a\n\0"), "a\nb\0a\0a\n\0");
    assert_eq!(text(&["filter", "dedup", "-0", &more], b""), "c\0a\nb\0d\nd\0");
    let common = text(&["filter", "common", "-0", &lines, &more], b"");
    let mut common: Vec<_> = common.split_terminator('\0').collect();
    common.sort_unstable();
    assert_eq!(common, ["a\nb", "c"]);
    let json = text(&["filter", "check", "-0", "--json", &filter], b"c\0");
    assert_eq!(json, "{\"key\":\"c\"}\n");

    text(&["guard", "build", &guard, "-0", "--lines", &lines], b"");
    let check = ["guard", "check", "--exact", "-0", &guard];
    assert_eq!(text(&check, asked), "a\nb\0c\0");
    text(&["guard", "insert", &guard, "-0", "--lines", "-"], b"e\ne\0");
    assert_eq!(text(&check, b"e\ne\0e\0"), "e\ne\0");
    text(&["guard", "remove", "--lines", "-", "--null", &guard], b"a\nb\0");
    assert_eq!(text(&check, asked), "c\0");
    text(&["guard", "refresh", &guard, "--lines", &more, "-0"], b"");
    assert_eq!(text(&check, b"a\nb\0d\nd\0e\ne\0"), "a\nb\0d\nd\0");
    text(&["guard", "reconcile", &guard, "--lines", &more, "-0"], b"");
    // A key that looks like the option is still a key.
    text(&["guard", "insert", &guard, "-0", "-7"], b"");
    assert_eq!(text(&check, b"-0\0-7\0"), "-0\0-7\0");
    let database = ["guard", "build", "h", "-0", "--sqlite", "f", "--table", "t", "--column", "c"];
    for args in [&["guard", "insert", &guard, "--null", "k"][..], &database] {
        assert!(sandbox.fails(args).contains("--lines"), "{args:?}");
    }
}
