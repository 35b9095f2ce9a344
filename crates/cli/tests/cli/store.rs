//! stats, verify, repair, compact, rebuild-filters, checkpoint, and faulty stores.

use crate::sandbox::{Sandbox, files, number, part};
use sidebloom::{LevelStats, Stats};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// A store with `rows` rows, in a segment.
fn filled(rows: usize) -> Sandbox {
    let sandbox = Sandbox::new();
    let text: String = (0..rows).map(|i| format!("key{i:06}\tvalue {i}\n")).collect();
    assert_eq!(sandbox.run_with(&["load", "--format", "scan", "-"], text.as_bytes()).code, 0);
    sandbox.ok(&["compact"]);
    sandbox
}

fn with_extension(sandbox: &Sandbox, extension: &str) -> PathBuf {
    let found =
        files(&sandbox.store()).into_iter().find(|path| path.extension().is_some_and(|e| e == extension));
    found.unwrap_or_else(|| panic!("no .{extension} file"))
}

#[test]
fn stats_tell_keys_bytes_and_rates() {
    let sandbox = filled(20_000);
    let json = sandbox.ok(&["stats", "--json", "--probe", "5000"]);
    let total = part(&json, "total");
    assert_eq!((number(total, "segments"), number(total, "keys")), (1.0, 20_000.0));
    assert!((9.0..12.0).contains(&number(total, "bits_per_key")), "{json}");
    // 5000 lookups: an observed rate far above the expected one means a wrong filter or a wrong table.
    let expected = number(total, "expected_fpr");
    assert!((1e-6..0.02).contains(&expected), "{json}");
    assert!(number(total, "observed_fpr") < 3.0 * expected + 0.002, "{json}");
    let table = sandbox.ok(&["stats"]);
    for word in ["│ level ┆ runs ┆ segments ┆", "20,000", "bits/key", "FPR expected", "–"] {
        assert!(table.contains(word), "{table}");
    }
}

#[test]
fn stats_probe_asks_as_often_as_it_is_told_and_says_of_how_many_a_rate_is() {
    let sandbox = filled(1000);
    for probes in [300, 1000, 2500] {
        let json = sandbox.ok(&["stats", "--json", "--probe", &probes.to_string()]);
        assert_eq!(number(&json, "probed"), f64::from(probes), "{json}");
        // All but the keys after the last one: they are outside the segment, so its filter is not probed.
        let beyond = f64::from(probes) - number(part(&json, "total"), "observed_answers");
        assert!((0.0..=3.0).contains(&beyond), "{json}");
    }
    let table = sandbox.ok(&["stats", "--probe", "2500"]);
    assert!(table.contains(" of 2,49") && table.contains("looked up 2,500 absent keys"), "{table}");
    let empty = Sandbox::new();
    empty.ok(&["put", "a", "1"]);
    empty.ok(&["delete", "a"]);
    assert!(empty.ok(&["stats", "--json", "--probe", "10"]).contains("\"probed\":0"));
}

#[test]
fn stats_print_every_counter_of_the_library_shortages_too() {
    let sandbox = filled(100);
    let json = sandbox.ok(&["stats", "--json"]);
    // The names of all fields at any depth: a new one must be printed too.
    let names = [format!("{:?}", Stats::default()), format!("{:?}", LevelStats::default())].join(" ");
    let names: Vec<&str> = names.split([' ', '{']).filter_map(|word| word.strip_suffix(':')).collect();
    assert!(names.contains(&"shortages") && names.len() > 30, "{names:?}");
    for name in names {
        assert!(json.contains(&format!("\"{name}\":")), "{name} is missing: {json}");
    }
    let run = part(&json, "since_opening");
    assert_eq!([number(run, "shortages"), number(run, "descriptor_waits")], [0.0, 0.0], "{json}");
    let total = part(&json, "total");
    assert_eq!([number(total, "filters"), number(total, "segments")], [1.0, 1.0], "{json}");
    let text = sandbox.ok(&["stats"]);
    for words in ["shortages: 0 of disk space, 0 of descriptors", "hashed with", "blocks read"] {
        assert!(text.contains(words), "no {words:?}: {text}");
    }
}

#[test]
fn verify_counts_the_rows_of_the_logs() {
    let sandbox = Sandbox::new();
    for key in ["a", "b", "c"] {
        sandbox.ok(&["put", key, "1"]);
    }
    let json = sandbox.ok(&["verify", "--json"]);
    assert_eq!(number(&json, "entries") + number(&json, "log_entries"), 3.0, "{json}");
    assert!(number(&json, "log_entries") > 0.0, "{json}");
    assert!(sandbox.ok(&["verify"]).contains("entries in the logs"));
}

#[test]
fn rebuild_filters_changes_filters_and_nothing_else() {
    let sandbox = filled(20_000);
    let segment = with_extension(&sandbox, "segment");
    let bytes = fs::read(&segment).unwrap();
    let shape = || {
        let json = sandbox.ok(&["stats", "--json"]);
        ["bits_per_key", "expected_fpr"].map(|name| number(part(&json, "total"), name))
    };
    let [bits, rate] = shape();
    // Between two widths, the file number would decide. This is above the widest one.
    assert!(sandbox.ok(&["rebuild-filters", "--bits-per-key", "20"]).contains("20,000 keys"));
    assert_eq!(fs::read(&segment).unwrap(), bytes);
    let [more_bits, lower_rate] = shape();
    assert!(more_bits > bits && more_bits <= 20.0, "{bits} became {more_bits}");
    assert!(lower_rate < rate, "{rate} became {lower_rate}");
    assert!(sandbox.fails(&["rebuild-filters", "--bits-per-key", "0"]).contains("between 2 and 64"));
    assert!(sandbox.ok(&["verify"]).starts_with("ok: 1 segments, 20,000 entries"));
}

#[test]
fn a_missing_filter_is_named_by_verify_and_changes_no_answer() {
    let sandbox = filled(1000);
    fs::remove_file(with_extension(&sandbox, "filter")).unwrap();
    assert_eq!(sandbox.ok(&["get", "key000500"]), "value 500");
    assert_eq!(sandbox.run(&["get", "key000500x"]).code, 1);
    let report = sandbox.ok(&["verify"]);
    assert!(report.contains(".filter") && report.contains("ok:"), "{report}");
}

#[test]
fn verify_names_the_damaged_file_and_exits_2() {
    let sandbox = filled(1000);
    let segment = with_extension(&sandbox, "segment");
    let mut bytes = fs::read(&segment).unwrap();
    let at = bytes.len() / 4; // In a block of rows, behind the symbols.
    bytes[at] ^= 1;
    fs::write(&segment, bytes).unwrap();
    let outcome = sandbox.run(&["verify"]);
    let name = segment.file_name().unwrap().to_str().unwrap().to_owned();
    assert_eq!(outcome.code, 2, "{}", outcome.text());
    assert!(outcome.text().contains(&name) && outcome.text().contains("DAMAGED"), "{}", outcome.text());
    let json = sandbox.run(&["verify", "--json"]).text();
    assert!(json.starts_with("{\"ok\":false,") && json.contains(&name), "{json}");
    assert!(sandbox.fails(&["scan"]).contains(&name));
}

#[test]
fn scan_reaches_rows_behind_a_bad_block_if_it_skips_damage() {
    let sandbox = filled(20_000);
    let segment = with_extension(&sandbox, "segment");
    let sound = sandbox.ok(&["scan", "--skip-damaged"]);
    let mut bytes = fs::read(&segment).unwrap();
    bytes[100] ^= 1;
    fs::write(&segment, bytes).unwrap();
    assert!(sandbox.fails(&["scan"]).lines().count() == 1 && sandbox.run(&["scan"]).out.is_empty());
    let name = segment.file_name().unwrap().to_str().unwrap().to_owned();
    for flags in [&[][..], &["--reverse"], &["--json"]] {
        let outcome = sandbox.run(&[&["scan", "--skip-damaged"], flags].concat());
        let (text, err) = (outcome.text(), &outcome.err);
        let rows = text.lines().count();
        assert!(outcome.code == 2 && (15_000..20_000).contains(&rows), "{rows}: {err}");
        let is_right = |row| flags == ["--json"] || sound.contains(row);
        assert!(text.lines().step_by(1000).all(is_right));
        assert!(
            err.contains(&name) && err.contains("one block with keys from \"key000000\" up to \"key0"),
            "{err}"
        );
        assert!(
            err.ends_with(&format!("is damaged: {rows} rows printed, 1 unreadable part skipped\n")),
            "{err}"
        );
    }
    // A range without damage.
    assert_eq!(sandbox.run(&["scan", "--skip-damaged", "--from", "key019"]).text().lines().count(), 1000);
}

#[test]
fn repair_brings_back_a_store_without_its_manifest() {
    let sandbox = filled(1000);
    fs::remove_file(sandbox.store().join("MANIFEST")).unwrap();
    assert_eq!(sandbox.run(&["get", "key000000"]).code, 2);
    assert!(sandbox.ok(&["repair"]).contains("1,000 entries"));
    assert!(sandbox.ok(&["verify"]).starts_with("ok"));
    assert_eq!(sandbox.ok(&["scan"]).lines().count(), 1000);
}

#[test]
fn a_checkpoint_is_a_store_of_its_own() {
    let sandbox = filled(1000);
    let copy = sandbox.path("copy").to_str().unwrap().to_owned();
    assert!(sandbox.ok(&["checkpoint", &copy]).contains(&copy));
    sandbox.ok(&["put", "key000000", "changed"]);
    assert_eq!(sandbox.ok(&["--db", &copy, "get", "key000000"]), "value 0");
    assert_eq!(sandbox.ok(&["--db", &copy, "scan"]).lines().count(), 1000);
    assert!(sandbox.fails(&["checkpoint", &copy]).contains(&copy), "it exists");
}

#[test]
fn compact_drops_what_was_deleted() {
    let sandbox = filled(1000);
    let keys: Vec<String> = (0..900).map(|i| format!("key{i:06}")).collect();
    sandbox.ok(&[&["delete".to_owned()][..], &keys].concat());
    let json = sandbox.ok(&["compact", "--json"]);
    assert!(number(&json, "data_bytes_after") < number(&json, "data_bytes_before"), "{json}");
    assert_eq!(number(part(&sandbox.ok(&["stats", "--json"]), "total"), "keys"), 100.0);
}

#[test]
fn compact_takes_keys_from_the_first_on_and_before_the_last() {
    // Two segments on level 0 that do not overlap: keys b to d, and keys m to o. The older one is larger, so
    // they stay when idle.
    let sandbox = Sandbox::new();
    let db = sidebloom::Db::open(sandbox.store()).unwrap();
    for (keys, value_bytes) in [(["b", "c", "d"], 1000), (["m", "n", "o"], 10)] {
        keys.iter().for_each(|key| db.put(key, vec![7; value_bytes]).unwrap());
        db.flush().unwrap();
    }
    drop(db);
    let at_level0 = || number(&sandbox.ok(&["stats", "--json"]), "segments");
    assert_eq!(at_level0(), 2.0);
    for beside in [
        &["--to", "b"][..],                 // excluded
        &["--from", "d\u{1}", "--to", "m"], // after the last key of one, before the first of the other
        &["--from", "p"],
        &["--hex", "--from", "6401", "--to", "6d"],
    ] {
        sandbox.ok(&[&["compact"], beside].concat());
        assert_eq!(at_level0(), 2.0, "{beside:?}");
    }
    sandbox.ok(&["compact", "--hex", "--from", "64", "--to", "6D"]); // from d on: included
    assert_eq!(at_level0(), 1.0, "only the first one was taken");
    sandbox.ok(&["compact", "--from", "e", "--to", "m\u{1}"]);
    assert_eq!(at_level0(), 0.0);
    assert_eq!(sandbox.ok(&["scan", "--keys-only"]), "b\nc\nd\nm\nn\no\n");
}

#[test]
fn compact_refuses_a_range_without_keys_and_hex_that_is_none() {
    let sandbox = filled(10);
    for (from, to) in [("key000005", "key000003"), ("key000005", "key000005")] {
        let said = sandbox.fails(&["compact", "--from", from, "--to", to]);
        assert!(said.contains(&format!("--from {from} is not before --to {to}")), "{said}");
    }
    assert!(sandbox.fails(&["compact", "--hex", "--from", "6b6"]).contains("--from 6b6"));
    assert!(sandbox.fails(&["compact", "--hex", "--to", "zz"]).contains("--to zz"));
}

#[test]
fn a_path_that_is_not_a_store_is_named() {
    let sandbox = Sandbox::new();
    let missing = sandbox.path("missing").to_str().unwrap().to_owned();
    for command in
        [&["get", "a"][..], &["scan"], &["stats"], &["verify"], &["repair"], &["compact"], &["delete", "a"]]
    {
        let said = sandbox.fails(&[&["--db", &missing], command].concat());
        assert!(said.contains(&missing), "{command:?}: {said}");
        assert!(!sandbox.path("missing").exists(), "{command:?} created it");
    }
    let file = sandbox.file("file", "this is a file");
    assert!(sandbox.fails(&["--db", &file, "put", "a", "1"]).contains(&file));
    fs::create_dir(sandbox.path("photos")).unwrap();
    sandbox.file("photos/cat.jpg", "");
    let photos = sandbox.path("photos").to_str().unwrap().to_owned();
    assert!(sandbox.fails(&["--db", &photos, "get", "a"]).contains(&photos));
}

#[test]
fn a_second_writer_is_refused_and_readers_work_beside_the_first() {
    let sandbox = filled(10);
    let holder = sidebloom::Db::open(sandbox.store()).unwrap();
    for command in [&["put", "a", "1"][..], &["compact"], &["repair"]] {
        assert!(sandbox.fails(command).contains("locked"), "{command:?}");
    }
    holder.put("a", "new").unwrap();
    holder.delete("key000001").unwrap();
    assert_eq!(sandbox.ok(&["get", "a"]), "new");
    assert_eq!(sandbox.run(&["get", "key000001"]).code, 1);
    assert!(sandbox.ok(&["scan", "--limit", "1"]).starts_with("a\tnew"));
    assert!(sandbox.ok(&["verify"]).starts_with("ok"));
    assert!(sandbox.ok(&["stats", "--json"]).contains("\"levels\""));
    holder.compact().unwrap();
    assert_eq!(sandbox.ok(&["get", "a"]), "new");
    drop(holder);
    assert_eq!(sandbox.ok(&["get", "key000002"]), "value 2");
}

#[test]
fn a_store_in_a_read_only_directory_can_be_read() {
    let sandbox = filled(10);
    fs::set_permissions(sandbox.store(), fs::Permissions::from_mode(0o555)).unwrap();
    assert_eq!(sandbox.ok(&["get", "key000001"]), "value 1");
    assert!(sandbox.ok(&["verify"]).starts_with("ok"));
    // The superuser may write even there.
    if fs::write(sandbox.store().join("probe"), "").is_err() {
        assert!(sandbox.fails(&["put", "a", "1"]).contains("Permission denied"));
    }
    fs::set_permissions(sandbox.store(), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_place_where_no_directory_can_be_made_is_named() {
    let sandbox = Sandbox::new();
    assert!(sandbox.fails(&["--db", "/proc/nowhere/store", "put", "a", "1"]).contains("/proc/nowhere"));
}

#[test]
fn usage_errors_exit_2() {
    let sandbox = Sandbox::new();
    for args in [
        &["get"][..],
        &["frobnicate"],
        &["scan", "--limit", "-1"],
        &["scan", "--sideways"],
        &["put", "only-a-key"],
    ] {
        sandbox.fails(args);
    }
    assert!(sandbox.run::<&str>(&[]).err.contains("Usage"));
}

#[test]
fn completions_and_manual_pages_name_the_commands() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(sandbox.ok(&["completions", shell]).contains("rebuild-filters"), "{shell}");
    }
    assert!(sandbox.ok(&["man"]).contains(".TH sidebloom"));
    let pages = sandbox.path("man").to_str().unwrap().to_owned();
    sandbox.ok(&["man", &pages]);
    let names: Vec<String> = files(&sandbox.path("man"))
        .iter()
        .map(|p| p.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    for page in ["sidebloom.1", "sidebloom-get.1", "sidebloom-bench.1"] {
        assert!(names.iter().any(|name| name == page), "{names:?}");
    }
    assert!(sandbox.fails(&["--json", "man"]).contains("--json"));
    assert!(sandbox.ok(&["--version"]).contains(env!("CARGO_PKG_VERSION")));
    for command in [
        "get",
        "put",
        "delete",
        "scan",
        "load",
        "seen",
        "stats",
        "verify",
        "repair",
        "compact",
        "rebuild-filters",
    ] {
        assert!(sandbox.ok(&["--help"]).contains(command));
        assert!(sandbox.ok(&[command, "--help"]).len() > 200, "{command}");
    }
}

#[test]
fn prefixes_are_a_matter_of_the_option_and_rebuild_filters_brings_them() {
    let sandbox = filled(2_000); // key000000 to key001999: two prefixes of six bytes.
    let prefixes = || number(part(&sandbox.ok(&["stats", "--json"]), "total"), "filter_prefixes");
    assert_eq!(prefixes(), 0.0);
    sandbox.ok(&["rebuild-filters", "--prefixes", "fixed:6,delimited:y:1"]);
    assert_eq!(prefixes(), 3.0, "key000, key001 and key");
    assert_eq!(sandbox.ok(&["scan", "--prefixes", "fixed:6", "--prefix", "key0019"]).lines().count(), 100);
    let absent = sandbox.run(&["scan", "--prefixes", "fixed:6", "--prefix", "key002"]);
    assert_eq!((absent.code, absent.out.as_slice()), (1, &b""[..]));
    sandbox.ok(&["rebuild-filters"]);
    assert_eq!(prefixes(), 0.0, "not stored");
    for wrong in ["fixed:0", "fixed:6,fixed:6", "delimited:/"] {
        assert_eq!(sandbox.run(&["stats", "--prefixes", wrong]).code, 2, "{wrong}");
    }
}
