//! `sidebloom filter …` as a user runs it: the binary, its output, its exit codes.

mod noisy;
mod refusals;
mod small;
mod windows;

use assert_cmd::Command;
use sidebloom::filter::{CountingBloom, Plan, Verdict};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

struct Case {
    dir: TempDir,
}

/// What a command printed and returned.
struct Ran {
    code: i32,
    out: String,
    err: String,
}

impl Case {
    fn new() -> Self {
        Case { dir: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn lines(&self, name: &str, lines: impl IntoIterator<Item = String>) -> PathBuf {
        let text: String = lines.into_iter().map(|line| line + "\n").collect();
        std::fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    /// Runs `sidebloom filter ARGS` in the case's directory.
    fn run_with(&self, args: &str, stdin: &str) -> Ran {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sidebloom"));
        command.current_dir(self.dir.path()).env("TMPDIR", self.dir.path());
        command.arg("filter").args(args.split_whitespace()).write_stdin(stdin);
        let output = command.output().unwrap();
        Ran {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    fn run(&self, args: &str) -> Ran {
        self.run_with(args, "")
    }

    /// Expects success.
    fn ok(&self, args: &str) -> String {
        let ran = self.run(args);
        assert_eq!(ran.code, 0, "{args}: {}", ran.err);
        assert_eq!(ran.err, "", "{args}");
        ran.out
    }

    /// Expects exit code 2 and a message.
    fn refused(&self, args: &str, why: &str) {
        let ran = self.run(args);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{args}: {}", ran.err);
        assert!(ran.err.contains(why), "{args}: {}", ran.err);
    }
}

fn numbered(range: std::ops::Range<u32>) -> impl Iterator<Item = String> {
    range.map(|i| format!("line {i}"))
}

fn sorted(text: &str) -> BTreeSet<&str> {
    text.lines().collect()
}

const KINDS: [&str; 6] = ["parity", "blocked", "bloom", "counting", "scalable", "small"];

#[test]
fn check_prints_every_line_of_every_kind_and_the_surely_absent_with_v() {
    let case = Case::new();
    case.lines("in", numbered(0..3000));
    case.lines("all", numbered(0..6000));
    for kind in KINDS {
        case.ok(&format!("build --kind {kind} --fpp 1% in -o f"));
        assert_eq!(case.ok("check f in"), std::fs::read_to_string(case.path("in")).unwrap(), "{kind}");
        let maybe = case.ok("check f all");
        let absent = case.ok("check -v f all");
        assert_eq!(maybe.lines().count() + absent.lines().count(), 6000, "{kind}");
        assert!((3000..3070).contains(&maybe.lines().count()), "{kind}: {}", maybe.lines().count());
        assert!(sorted(&maybe).is_disjoint(&sorted(&absent)));
        assert_eq!(case.ok("check -c f all").trim(), maybe.lines().count().to_string());
    }
}

#[test]
fn long_lines_and_empty_ones_are_asked_for_in_their_order() {
    let case = Case::new();
    let line =
        |i: usize| if i.is_multiple_of(3) { String::new() } else { format!("{i}{}", "x".repeat(i * 100)) };
    case.lines("in", (0..600).map(line));
    case.ok("build --kind blocked --fpp 1% in -o f");
    assert_eq!(case.ok("check f in"), std::fs::read_to_string(case.path("in")).unwrap());
    let ran = case.run_with("check f", &format!("1{}\n{}\n", "x".repeat(100), "x".repeat(70_000)));
    assert_eq!(
        (ran.code, ran.out),
        (2, format!("1{}\n", "x".repeat(100))),
        "what came before the fault is answered"
    );
    assert!(ran.err.contains("line 2 is longer than 65536 bytes"), "{}", ran.err);
}

#[test]
fn exit_codes_are_grep_s() {
    let case = Case::new();
    case.lines("in", numbered(0..100));
    case.ok("build --kind parity --fpp 0.0001 in -o f");
    assert_eq!(case.run_with("check f", "line 7\n").code, 0);
    assert_eq!(case.run_with("check f -", "no such line\n").code, 1);
    assert_eq!(case.run_with("check -c f -", "no such line\n").out, "0\n");
    assert_eq!(case.run_with("check -v f", "line 7\n").code, 1);
    assert_eq!(case.run_with("check missing", "").code, 2);
    // JSON has a key for each line, and hex for bytes that are not text.
    assert_eq!(case.run_with("check f --json", "line 7\n").out, "{\"key\":\"line 7\"}\n");
}

#[test]
fn a_filter_never_has_a_worse_rate_than_requested() {
    let case = Case::new();
    // With so few lines, parity filters have worse rates than large ones of the same width.
    for (lines, fpp) in [(61, 0.0028), (116, 0.000_128), (139, 0.00596), (3000, 0.005955)] {
        case.lines("in", (1..=lines).map(|i| i.to_string()));
        for kind in ["parity", "blocked", "bloom", "scalable", "small"] {
            let info = case.ok(&format!("build --kind {kind} --fpp {fpp} in -o f --json"));
            let info: serde_json::Value = serde_json::from_str(&info).unwrap();
            assert!(info["fpr"].as_f64().unwrap() <= fpp, "{lines} lines, {fpp}: {info}");
        }
    }
    case.lines("in", (1..=56).map(|i| i.to_string()));
    case.refused(
        "build --kind parity --fpp 0.00000578 in -o g",
        "has a false-positive rate of 5.78e-6: the least is 6.08e-6; ask for that or more",
    );
    assert!(!case.path("g").exists());
}

#[test]
fn lines_are_bytes_up_to_lf_and_the_last_needs_none() {
    let case = Case::new();
    std::fs::write(case.path("in"), "a\r\n\n  b").unwrap();
    case.ok("build --kind bloom --fpp 0.00001 in -o f");
    assert_eq!(case.run_with("check f", "a\r\n\n  b\n").out, "a\r\n\n  b\n");
    assert_eq!(case.run_with("check f", "a\nb\n").code, 1);
}

/// `add` and `remove` change the file. They leave full and static filters unchanged.
#[test]
fn add_and_remove_change_the_file_but_no_full_or_static_filter() {
    let case = Case::new();
    case.lines("in", numbered(0..100));
    case.lines("more", numbered(100..150));
    case.lines("many", numbered(0..5000));
    for kind in ["blocked", "bloom", "counting", "scalable"] {
        case.ok(&format!("build --kind {kind} --keys 150 --fpp 0.001 in -o f"));
        case.ok("add f more");
        assert_eq!(case.ok("check -c f more").trim(), "50", "{kind}");
        if kind != "scalable" {
            let before = std::fs::read(case.path("f")).unwrap();
            case.refused("add f many", "the filter is full");
            assert_eq!(std::fs::read(case.path("f")).unwrap(), before, "{kind}");
        }
    }
    case.ok("add f many -o g");
    assert_eq!(case.ok("check -c g many").trim(), "5000");

    case.ok("build --kind counting --keys 200 --fpp 0.0001 in -o f");
    case.ok("remove f in -o g");
    assert_eq!((case.ok("check -c f in").trim(), case.run("check -c g in").code), ("100", 1));
    let ran = case.run_with("remove g", "not there\n");
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("not in the filter: not there"), "{}", ran.err);

    case.ok("build --kind parity in -o f");
    case.refused("add f more", "build it again from all keys");
    case.refused("remove f in", "only a counting filter");
    case.refused("build --kind bloom --keys 10 in -o h", "the filter is full");
    assert!(!case.path("h").exists());
}

#[test]
fn set_algebra_and_folding_work_on_files() {
    let case = Case::new();
    case.lines("a", numbered(0..2000));
    case.lines("b", numbered(1500..3500));
    for name in ["a", "b"] {
        case.ok(&format!("build --kind bloom --keys 4000 --fpp 0.001 {name} -o {name}.filter"));
    }
    case.ok("union a.filter b.filter -o u");
    assert_eq!((case.ok("check -c u a").trim(), case.ok("check -c u b").trim()), ("2000", "2000"));
    case.ok("intersect a.filter b.filter -o i");
    case.lines("both", numbered(1500..2000));
    assert_eq!(case.ok("check -c i both").trim(), "500");
    let passed: u32 = case.ok("check -c i a").trim().parse().unwrap();
    assert!((500..550).contains(&passed), "{passed}");

    let overlap: serde_json::Value =
        serde_json::from_str(&case.ok("overlap a.filter b.filter --json")).unwrap();
    let near = |field: &str, truth: f64| (overlap[field].as_f64().unwrap() / truth - 1.0).abs() < 0.1;
    assert!(near("a", 2000.0) && near("union", 3500.0) && near("intersection", 500.0), "{overlap}");
    assert!(near("jaccard", 500.0 / 3500.0), "{overlap}");

    case.lines("few", numbered(0..100));
    case.ok("build --kind counting --keys 20000 --fpp 0.01 few -o large");
    case.ok("fold large --fpp 0.01 -o small");
    assert_eq!(case.ok("check -c small few").trim(), "100");
    let bytes = |name: &str| std::fs::metadata(case.path(name)).unwrap().len() - 4096;
    assert!(bytes("small") * 30 < bytes("large"), "{} of {}", bytes("small"), bytes("large"));
}

/// Lines chosen without knowing the key pass a counting filter no more often than others.
#[test]
fn lines_chosen_without_the_key_pass_a_counting_filter_as_others_do() {
    let case = Case::new();
    case.lines("in", numbered(0..3000));
    case.ok("build --kind counting --keys 3000 --fpp 1% in -o f");
    // What anybody can compute: a filter of the same lines with the hash of the other kinds.
    let mut public = CountingBloom::with_plan(Plan::new(3000, 0.01).unwrap()).unwrap();
    numbered(0..3000).for_each(|line| assert!(public.insert(line).is_ok()));
    let passes = |line: &String| public.contains(line) == Verdict::Maybe;
    case.lines("chosen", numbered(3000..u32::MAX).filter(passes).take(500));
    let passed: u32 = case.run("check -c f chosen").out.trim().parse().unwrap();
    assert!(passed < 25, "{passed} of 500 lines pass at a rate of 1 %");
    assert!(case.ok("info f").contains("hash   siphash-1-3-128, a secret key"));
    case.ok("build --kind counting --seed 0 --keys 3000 --fpp 1% in -o f");
    assert_eq!(case.ok("check -c f chosen"), "500\n", "what --seed is for");
}

/// Filters with secret keys can be combined when one was built with the same hash as the other.
#[test]
fn filters_with_secret_keys_combine_when_built_with_the_same_hash() {
    let case = Case::new();
    case.lines("a", numbered(0..2000));
    case.lines("b", numbered(1500..3500));
    let build = |args: &str| case.ok(&format!("build --keys 4000 --fpp 0.001 {args}"));
    build("--kind counting a -o fa");
    build("--kind counting b -o alone");
    for combine in ["union fa alone -o f", "intersect fa alone -o f", "overlap fa alone"] {
        case.refused(combine, "with a secret key, but the keys differ");
    }
    case.ok("send fa -o wire");
    case.ok("receive wire -o received");
    for (kind, like) in [("counting", "fa"), ("bloom", "fa"), ("bloom", "received")] {
        build(&format!("--kind {kind} --same-hash-as {like} b -o fb"));
        case.ok("union fa fb -o u");
        assert_eq!((case.ok("check -c u a").trim(), case.ok("check -c u b").trim()), ("2000", "2000"));
        case.ok("intersect fa fb -o i");
        case.lines("both", numbered(1500..2000));
        assert_eq!(case.ok("check -c i both").trim(), "500");
        assert!(case.ok("overlap fa fb").contains("both"));
        case.ok("union received fb -o v");
        assert!(std::fs::read(case.path("u")).unwrap() == std::fs::read(case.path("v")).unwrap());
    }
    for kind in ["bloom", "scalable"] {
        case.ok(&format!("build --kind {kind} --hash siphash a -o f"));
        assert!(case.ok("info f").contains("a secret key"));
        assert_eq!(case.ok("check -c f a").trim(), "2000");
    }
    case.refused("build --kind counting --hash siphash --seed 1 a -o f", "--same-hash-as");
    case.refused("build --kind bloom --same-hash-as fa --seed 1 a -o f", "cannot be used with");
    case.refused("build --kind parity --same-hash-as fa a -o f", "do not apply");
    case.ok("build --kind parity a -o p");
    case.refused(
        "build --kind counting --same-hash-as p a -o f",
        "a parity filter does not share its hash function",
    );
}

#[test]
fn send_and_receive_give_the_same_file_and_the_limit_is_kept() {
    let case = Case::new();
    case.lines("in", numbered(0..500));
    for kind in KINDS {
        case.ok(&format!("build --kind {kind} in -o f"));
        case.ok("send f -o wire");
        case.ok("receive wire -o g");
        assert!(std::fs::read(case.path("f")).unwrap() == std::fs::read(case.path("g")).unwrap(), "{kind}");
    }
    case.refused("receive wire -o h --limit 100", "the limit is 100");
    let wire = std::fs::read(case.path("wire")).unwrap();
    std::fs::write(case.path("cut"), &wire[..wire.len() - 1]).unwrap();
    case.refused("receive cut -o h", "the filter ends too early");
    std::fs::write(case.path("long"), [&wire[..], b"x"].concat()).unwrap();
    case.refused("receive long -o h", "trailing data");
    std::fs::write(case.path("short"), "hello").unwrap();
    case.refused("receive short -o h", "at offset 0: not a filter");
    case.refused("receive in -o h", "at offset 0: not a filter");
    assert!(!case.path("h").exists());
}

#[test]
fn bad_input_is_refused_with_exit_code_2() {
    let case = Case::new();
    case.lines("in", numbered(0..100));
    for fpp in ["0", "1", "-1", "nan", "2"] {
        case.refused(&format!("build --kind bloom --fpp={fpp} in -o f"), "between 0 and 1");
    }
    case.refused("build --kind bloom --keys 0 in -o f", "--keys must be at least 1");
    case.refused("build --kind bloom --keys 99999999999999999 in -o f", "too many for one filter");
    case.refused("build --kind blocked --bits-per-key 1e9 in -o f", "bits per key");
    case.refused("build --kind parity --bits-per-key 3 in -o f", "no such parity filter");
    case.refused("build --kind parity --hash murmur3 in -o f", "do not apply to kinds parity");
    case.refused("build --kind bloom - -o f", "--keys");
    case.refused("info in", "at offset 0: not a filter file; build the filter again");
    assert!(!case.path("f").exists());

    case.ok("build --kind bloom --seed 1 in -o one");
    case.ok("build --kind bloom --seed 2 in -o two");
    case.ok("build --kind parity in -o three");
    case.refused("union one two -o f", "cannot be combined");
    case.refused("intersect one two -o f", "cannot be combined");
    case.refused("overlap one two", "cannot be combined");
    case.refused("union one three -o f", "only bloom and counting filters");
    let mut bytes = std::fs::read(case.path("one")).unwrap();
    bytes[4100] ^= 1;
    std::fs::write(case.path("damaged"), bytes).unwrap();
    case.refused("check damaged in", "checksum mismatch in the group of lines that starts at line 0");
    std::fs::write(case.path("in"), "x".repeat(70_000)).unwrap();
    case.refused("build --kind bloom --keys 1 in -o f", "line 1 is longer than 65536 bytes");
}

#[test]
fn common_is_exact_and_leaves_no_file_behind() {
    let case = Case::new();
    let (a, b) = (
        case.lines("a", numbered(0..20_000)),
        case.lines("b", numbered(15_000..40_000).chain(numbered(15_000..15_010))),
    );
    let read = |path: &Path| std::fs::read_to_string(path).unwrap();
    let (a, b) = (read(&a), read(&b));
    let shared: BTreeSet<&str> = sorted(&a).intersection(&sorted(&b)).copied().collect();
    for args in ["common a b", "common b a --memory 16MiB"] {
        let out = case.ok(args);
        assert_eq!(out.lines().count(), shared.len(), "each once");
        assert_eq!(sorted(&out), shared);
    }
    case.lines("c", numbered(50_000..50_100));
    assert_eq!((case.run("common a c").code, case.run("common a c").out.as_str()), (1, ""));
    case.refused("common a -", "- can be read only once");
    case.refused("common a b --memory 1M", "at least 16M");
    let left: Vec<_> = std::fs::read_dir(case.dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 3, "{left:?}");
}

#[test]
fn dedup_keeps_first_occurrences_in_order() {
    let case = Case::new();
    let text = "b\na\nb\n\nc\n\na\nd";
    let ran = case.run_with("dedup", text);
    assert_eq!((ran.code, ran.out.as_str()), (0, "b\na\n\nc\nd\n"));
    case.lines("in", numbered(0..30_000).chain(numbered(10_000..40_000)));
    let out = case.ok("dedup in --memory 64M");
    assert!(out.lines().eq(numbered(0..40_000).collect::<Vec<_>>().iter().map(String::as_str)));
    case.refused("dedup in --memory 63M", "at least 64M");
}

#[test]
fn tables_have_a_row_for_each_size_and_kind() {
    let case = Case::new();
    let sizes = case.ok("table --sizes --json");
    let rows: Vec<serde_json::Value> = sizes.lines().map(|row| serde_json::from_str(row).unwrap()).collect();
    assert_eq!(rows.len(), 20);
    assert_eq!((&rows[3]["bits"], &rows[3]["k"]), (&9_585_059.into(), &7.into()));
    let measured = |args: &str| -> Vec<serde_json::Value> {
        case.ok(args).lines().map(|row| serde_json::from_str(row).unwrap()).collect()
    };
    let rows = measured("table --keys 2000 --kind parity-8 --kind counting --of urls --json");
    assert_eq!(rows.len(), 2);
    for row in rows {
        let rate = |field: &str| row[field].as_f64().unwrap();
        let times = row["probe_ns"].as_array().unwrap();
        assert!(!times.is_empty() && times.iter().all(|time| time["ns"].as_f64().unwrap() > 0.0), "{row}");
        assert!(rate("lines_per_probe") >= 1.0, "{row}");
        assert!(rate("measured_fpr") < 1.5 * rate("expected_fpr"), "{row}");
    }
    let table = case.ok("table --keys 100 --kind bloom");
    assert_eq!(table.lines().count(), 3, "a head and two rates: {table}");
    case.refused("table --keys 100 --kind nonsense", "parity-12");
}
