//! `report`: enough to help, and nothing that is private.

use crate::sandbox::{Sandbox, field, part};
use sidebloom::Db;
use std::fs;

#[test]
fn a_report_has_figures_and_no_keys_values_or_names() {
    let sandbox = Sandbox::new();
    let db = Db::open(sandbox.store()).unwrap(); // It is written meanwhile.
    db.put("a secret key", "a secret value").unwrap();
    let users = db.create_keyspace("secret users", sidebloom::KeyspaceOptions::new()).unwrap();
    users.put("ann", "1").unwrap();
    db.flush().unwrap();
    let report = sandbox.ok(&["report", "--verify"]);
    for there in ["\"version\"", "\"kernel\"", "\"segment\"", "\"memtable_bytes\"", "\"problems\": []"] {
        assert!(report.contains(there), "{there}: {report}");
    }
    let dir = sandbox.store().to_str().unwrap().to_owned();
    for private in ["secret", "ann", &*dir] {
        assert!(!report.contains(private), "{private}: {report}");
    }
}

#[test]
fn a_report_of_a_store_that_does_not_open_says_why() {
    let sandbox = Sandbox::new();
    sandbox.ok(&["put", "a", "1"]);
    fs::write(sandbox.store().join("MANIFEST"), "nonsense").unwrap();
    let report = sandbox.ok(&["--json", "report"]);
    assert!(field(&report, "error").contains("STORE/MANIFEST"), "{report}");
    assert!(part(&report, "files").contains("wal"), "{report}");
    let missing = sandbox.fails(&["--db", "nowhere.db", "report"]);
    assert!(missing.contains("nowhere.db"), "{missing}");
}
