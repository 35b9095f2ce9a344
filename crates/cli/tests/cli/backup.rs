//! backup, restore, and checkpoints beside a running writer.

use crate::sandbox::{Sandbox, field, number, part};
use sidebloom::Db;
use std::fs;

fn text(sandbox: &Sandbox, name: &str) -> String {
    sandbox.path(name).to_str().unwrap().to_owned()
}

#[test]
fn a_store_is_backed_up_beside_its_writer_and_restored() {
    let sandbox = Sandbox::new();
    let [target, copy] = ["backups", "copy"].map(|name| text(&sandbox, name));
    let db = Db::open(sandbox.store()).unwrap(); // The writer.
    db.put("a", "1").unwrap();
    let json = sandbox.ok(&["--json", "backup", &target]);
    assert_eq!((number(&json, "number"), field(&json, "kind")), (1.0, "store"), "{json}");
    assert_eq!(number(&json, "bytes"), number(&json, "new_bytes"));
    db.put("a", "2").unwrap();
    db.flush().unwrap();
    let said = sandbox.ok(&["backup", &target, "--keep", "5"]);
    assert!(said.starts_with("backup 2 of 20") && said.contains("removed 0 old backups"), "{said}");
    let listed = sandbox.ok(&["backup", "list", &target]);
    assert_eq!(listed.lines().count(), 2, "{listed}");
    assert!(sandbox.ok(&["backup", "verify", &target]).starts_with("ok: 2 backups"));
    assert!(sandbox.ok(&["backup", "verify", &target, "1"]).starts_with("ok: 1 backups"));
    sandbox.ok(&["restore", &target, &copy]);
    assert_eq!(sandbox.ok(&["--db", &copy, "get", "a"]), "2");
    let first = text(&sandbox, "first");
    sandbox.ok(&["restore", &target, &first, "--number", "1"]);
    assert_eq!(sandbox.ok(&["--db", &first, "get", "a"]), "1");
    let json = sandbox.ok(&["backup", &target, "--keep", "1", "--json"]);
    assert_eq!(number(part(&json, "removed"), "backups"), 2.0, "{json}");
    let said = sandbox.ok(&["backup", "keep", &target, "1"]);
    assert!(said.starts_with("removed 0 old backups and 0 files"), "{said}");
    let checkpoint = text(&sandbox, "checkpoint");
    sandbox.ok(&["checkpoint", &checkpoint]);
    assert_eq!(sandbox.ok(&["--db", &checkpoint, "get", "a"]), "2");
}

/// Somebody has removed the backups and left the files, or the first one has not succeeded yet.
#[test]
fn a_repository_without_a_backup_is_not_reported_as_ok() {
    let sandbox = Sandbox::new();
    let target = text(&sandbox, "backups");
    sandbox.ok(&["put", "a", "1"]);
    sandbox.ok(&["backup", &target]);
    for backup in fs::read_dir(sandbox.path("backups/backups")).unwrap() {
        fs::remove_file(backup.unwrap().path()).unwrap();
    }
    let said = sandbox.run(&["backup", "verify", &target]);
    assert_eq!((said.code, &*said.out), (1, &b"there is no backup\n"[..]), "{}", said.err);
    let json = sandbox.run(&["--json", "backup", "verify", &target]);
    let text = String::from_utf8(json.out).unwrap();
    assert!(json.code == 1 && text.contains("\"ok\":false"), "{text}");
    assert_eq!(sandbox.run(&["backup", "list", &target]).code, 1);
}

#[test]
fn what_cannot_be_a_backup_is_refused_by_name() {
    let sandbox = Sandbox::new();
    let [target, copy, other, none] = ["backups", "copy", "other", "none"].map(|name| text(&sandbox, name));
    sandbox.ok(&["put", "a", "1"]);
    sandbox.ok(&["backup", &target]);
    sandbox.ok(&["--db", &other, "put", "a", "1"]);
    let inside = sandbox.store().join("backups").to_str().unwrap().to_owned();
    fs::create_dir(sandbox.path("full")).unwrap();
    let full = sandbox.file("full/letter.txt", "mine");
    let full = full.strip_suffix("/letter.txt").unwrap();
    for (args, why) in [
        (&["backup", &inside][..], "inside of a store's directory"),
        (&["backup", full], "holds other files (letter.txt)"),
        (&["--db", &other, "backup", &target], "backups of another store"),
        (&["--db", &none, "backup", &target], "is not a sidebloom store"),
        (&["backup", &target, "--keep", "0"], "0 is not in 1.."),
        (&["backup", "list", &none], "make a backup first"),
        (&["backup", "verify", &target, "7"], "has no backup 7"),
        (&["restore", &target, &other], "already exists"),
        (&["restore", &target, &copy, "--number", "7"], "has no backup 7"),
        (&["backup", "list", &target, "--db", "x"], "--db has no effect on `backup list`"),
        (&["backup"], "required"),
        #[cfg(not(feature = "remote"))]
        (&["backup", "s3://bucket/path"], "--features remote"),
        #[cfg(feature = "remote")]
        (&["backup", "gopher://bucket/path"], "is not the URL of an object store"),
    ] {
        let said = sandbox.fails(args);
        assert!(said.contains(why), "{args:?}: {said}");
    }
    assert!(!sandbox.path("copy").exists() && !sandbox.path("none").exists());
}

#[test]
fn a_damaged_backup_is_named_and_not_restored() {
    let sandbox = Sandbox::new();
    let [target, copy] = ["backups", "copy"].map(|name| text(&sandbox, name));
    sandbox.ok(&["put", "a", "1"]);
    sandbox.ok(&["backup", &target]);
    let record = sandbox.path("backups").join("backups").join(format!("{:020}", 1));
    let whole = fs::read(&record).unwrap();
    fs::write(&record, &whole[..whole.len() - 1]).unwrap();
    for args in [&["backup", "verify", &target][..], &["restore", &target, &copy]] {
        let outcome = sandbox.run(args);
        assert!(outcome.code == 2 && outcome.err.contains("damaged"), "{args:?}: {}", outcome.err);
    }
    fs::write(&record, &whole[..50]).unwrap();
    assert!(sandbox.fails(&["backup", "list", &target]).contains("00000000000000000001"));
    // The next one is whole.
    sandbox.ok(&["put", "a", "2"]);
    assert_eq!(number(&sandbox.ok(&["--json", "backup", &target]), "number"), 2.0);
    sandbox.ok(&["restore", &target, &copy]);
    assert_eq!(sandbox.ok(&["--db", &copy, "get", "a"]), "2");
}

#[test]
fn a_guard_is_backed_up_beside_its_owner_and_restored() {
    let sandbox = Sandbox::new();
    let [target, guard, copy] = ["backups", "guard", "copy"].map(|name| text(&sandbox, name));
    let keys = sandbox.file("keys", "a\nb\n");
    sandbox.ok(&["guard", "build", &guard, "--lines", &keys]);
    let owner = sidebloom::guard::Guard::open(&guard).unwrap();
    owner.insert("c").unwrap();
    let json = sandbox.ok(&["--json", "guard", "backup", &guard, &target]);
    assert_eq!(field(&json, "kind"), "guard", "{json}");
    sandbox.ok(&["restore", &target, &copy]);
    let asked = sandbox.file("asked", "a\nb\nc\nd\n");
    assert_eq!(sandbox.ok(&["guard", "check", &copy, &asked]), "a\nb\nc\n");
    assert!(sandbox.fails(&["backup", &target]).contains("not a sidebloom store"));
    sandbox.ok(&["put", "a", "1"]);
    assert!(sandbox.fails(&["backup", &target]).contains("backups of a guard, not of a store"));
}

/// file:// is an object store without the others' conditions.
#[cfg(feature = "remote")]
#[test]
fn a_url_holds_backups_as_a_directory_does() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("bucket")).unwrap();
    let (url, copy) = (format!("file://{}/songs", text(&sandbox, "bucket")), text(&sandbox, "copy"));
    sandbox.ok(&["put", "a", "1"]);
    sandbox.ok(&["backup", &url]);
    sandbox.ok(&["put", "a", "2"]);
    sandbox.ok(&["backup", &url, "--keep", "1"]);
    assert_eq!(sandbox.ok(&["backup", "list", &url]).lines().count(), 1);
    assert!(sandbox.ok(&["backup", "verify", &url]).starts_with("ok"));
    sandbox.ok(&["restore", &url, &copy]);
    assert_eq!(sandbox.ok(&["--db", &copy, "get", "a"]), "2");
}
