//! Rows that expire, by the system's clock.

use crate::sandbox::{Sandbox, number};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Longer than the rows of a test live.
const LATER: Duration = Duration::from_millis(2100);

#[test]
fn rows_expire_as_put_load_seen_and_keyspaces_say() {
    let sandbox = Sandbox::new();
    let rows = sandbox.file("rows", "d\t1\ne\t2\n");
    let begun = Instant::now();
    sandbox.ok(&["put", "--for", "2s", "a", "1"]);
    sandbox.ok(&["put", "--for=2s", "--if-absent", "b", "1"]);
    assert_eq!(sandbox.run(&["put", "--for", "9d", "--if-absent", "b", "2"]).code, 1);
    sandbox.ok(&["load", "--for", "2s", "--format", "scan", &rows]);
    assert_eq!(sandbox.run_with(&["seen", "--for", "2s"], b"a\nf\n").text(), "f\n");
    sandbox.ok(&["keyspaces", "create", "carts", "--expire-after", "2s"]);
    sandbox.ok(&["put", "--keyspace", "carts", "a", "1"]);
    sandbox.ok(&["put", "--for", "1d", "stays", "1"]);
    let all = sandbox.ok(&["scan"]);
    // Unless the machine was too slow.
    let is_early = begun.elapsed() < Duration::from_secs(2);
    assert!(!is_early || all == "a\t1\nb\t1\nd\t1\ne\t2\nf\t\nstays\t1\n", "{all}");
    sleep(LATER);
    assert_eq!(sandbox.ok(&["scan"]), "stays\t1\n");
    assert_eq!(sandbox.run(&["get", "a"]).code, 1);
    assert_eq!(sandbox.run(&["get", "--keyspace", "carts", "a"]).code, 1);
    assert_eq!(sandbox.run_with(&["seen", "--for", "2s"], b"a\nf\n").text(), "a\nf\n", "new again");
    assert_eq!(sandbox.ok(&["keyspaces"]), "carts\trows expire after 2s\n");
    sandbox.ok(&["compact"]);
    sandbox.ok(&["verify"]);
}

#[test]
fn a_keyspace_may_be_a_window() {
    let sandbox = Sandbox::new();
    sandbox.ok(&["keyspaces", "create", "recent", "--window", "2s"]);
    assert_eq!(sandbox.run_with(&["seen", "--keyspace", "recent"], b"a\nb\na\n").text(), "a\nb\n");
    sleep(LATER);
    assert_eq!(sandbox.run_with(&["seen", "--keyspace", "recent"], b"a\n").text(), "a\n", "new again");
    assert_eq!(sandbox.ok(&["keyspaces"]), "recent\ta window of 2s\n");
    sandbox.ok(&["keyspaces", "set", "recent", "--expire-after", "1d"]);
    assert_eq!(sandbox.ok(&["keyspaces"]), "recent\trows expire after 86400s\n");
    sandbox.ok(&["verify"]);
    let refused = sandbox.run(&["keyspaces", "create", "a", "--window=999ms"]);
    assert!(refused.code == 2 && refused.err.contains("--window"), "{}", refused.err);
    assert_eq!(sandbox.run(&["keyspaces", "create", "a", "--window=1d", "--expire-after=1d"]).code, 2);
}

#[test]
fn stats_say_when_the_next_rows_expire_in_the_store_and_in_a_keyspace() {
    let sandbox = Sandbox::new();
    sandbox.ok(&["keyspaces", "create", "carts"]);
    // Several times the size from which on a keyspace has segments of its own.
    let rows = (0..150_000).map(|n| format!("key{n}\tvalue {n} of a table\n")).collect::<String>();
    sandbox.ok(&["load", "--keyspace", "carts", "--for", "2h", &sandbox.file("rows.tsv", rows)]);
    let next = "keys that expire: 150,000; of all keys, about 0 % have expired; the next do in about 7";
    let due = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64() + 7200.0;
    sandbox.ok(&["compact"]);
    for keyspace in [&["--keyspace", "carts"][..], &[]] {
        let shown = sandbox.ok(&[&["stats"], keyspace].concat());
        assert!(shown.contains(next), "{shown}");
        let json = sandbox.ok(&[&["stats", "--json"], keyspace].concat());
        // In JSON, the levels come before their total.
        let total = json.find("\"total\"").map_or(&json[..], |at| &json[at..]);
        assert!((number(total, "next_expiry") - due).abs() < 300.0, "{json}");
    }
}

#[test]
fn times_that_are_none_are_refused_by_name() {
    let sandbox = Sandbox::new();
    for time in ["0s", "-1s", "30 d", "30D", "1w", "P30D", "1.5h", "soon", "d", "+5s", "5"] {
        let time = format!("--for={time}");
        for command in [&["put", &time, "a", "1"][..], &["seen", &time], &["load", &time, "rows"]] {
            let refused = sandbox.run(command);
            assert_eq!(refused.code, 2, "{command:?}");
            assert!(refused.err.contains("--for"), "{}", refused.err);
        }
    }
    let refused = sandbox.run(&["put", "--for=1w", "a", "1"]);
    assert!(refused.err.contains("expected a number and a unit (s, m, h or d)"), "{}", refused.err);
    let refused = sandbox.run(&["put", "--for=9000000d", "a", "1"]);
    assert!(refused.code == 2 && refused.err.contains("after the year 9999"), "{}", refused.err);
    assert_eq!(sandbox.run(&["put", "--for=1d", "--if=x", "a", "1"]).code, 2);
    assert_eq!(sandbox.run(&["load", "--for=1d", "--bulk", "rows"]).code, 2);
    assert_eq!(sandbox.run(&["keyspaces", "create", "a", "--expire-after=0s"]).code, 2);
}
