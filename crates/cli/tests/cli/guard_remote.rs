//! `sidebloom guard publish`, and checks of a published guard.

use crate::sandbox::Sandbox;
#[cfg(feature = "remote")]
use crate::sandbox::number;

/// A guard, a directory that serves as an object store, and its URL.
fn published(sandbox: &Sandbox) -> (String, String) {
    let guard = sandbox.path("songs.guard").to_str().unwrap().to_owned();
    let titles = sandbox.file("titles", "Zombie\nSinnerman\n");
    sandbox.ok(&["guard", "build", &guard, "--lines", &titles, "--bits-per-key", "19"]);
    std::fs::create_dir(sandbox.path("bucket")).unwrap();
    (guard, format!("file://{}/songs", sandbox.path("bucket").display()))
}

#[cfg(feature = "remote")]
#[test]
fn a_published_guard_is_checked_by_its_url_and_another_copy_is_refused() {
    let sandbox = Sandbox::new();
    let (guard, url) = published(&sandbox);
    let cache = sandbox.path("cache").to_str().unwrap().to_owned();
    let check = |title: &str, more: &[&str]| {
        let args = [&["guard", "check", &url, "--cache", &cache][..], more].concat();
        sandbox.run_with(&args, title.as_bytes())
    };
    assert!(check("Zombie", &[]).err.contains("no published"));
    let first = sandbox.ok(&["guard", "publish", &guard, &url, "--json"]);
    assert_eq!((number(&first, "state"), number(&first, "filters_uploaded")), (1.0, 2.0));
    assert_eq!((check("Zombie", &[]).code, check("Freebird", &[]).code), (0, 1));
    let late = ["--max-staleness", "3600"];
    assert_eq!((check("Freebird", &late).code, check("Freebird", &["--max-staleness", "0"]).code), (1, 0));
    assert!(check("Zombie", &["--exact"]).err.contains("has no keys"));

    sandbox.ok(&["guard", "insert", &guard, "Freebird"]);
    let second = sandbox.ok(&["guard", "publish", &guard, &url, "--collect", "0s"]);
    assert!(
        // With its manifest.
        second.starts_with("state 2: 1 filters uploaded") && second.contains("removed 2 old"),
        "{second}"
    );
    assert_eq!((check("Freebird", &[]).code, check("Zombie", &[]).code), (0, 0));

    let other = sandbox.path("other.guard").to_str().unwrap().to_owned();
    sandbox.ok(&["guard", "build", &other, "--lines", &sandbox.file("none", "")]);
    assert!(sandbox.fails(&["guard", "publish", &other, &url]).contains("another guard"));
    for entry in std::fs::read_dir(&guard).unwrap().map(Result::unwrap) {
        if entry.file_name().to_str().unwrap().starts_with("PUBLISHED") {
            std::fs::remove_file(entry.path()).unwrap();
        }
    }
    assert!(sandbox.fails(&["guard", "publish", &guard, &url]).contains("does not descend"));
    assert!(sandbox.ok(&["guard", "publish", &guard, &url, "--take-over"]).starts_with("state 3"));
    assert!(sandbox.fails(&["guard", "check", &guard, "--cache", &cache]).contains("for the URL"));
}

#[cfg(not(feature = "remote"))]
#[test]
fn a_build_without_object_storage_says_so() {
    let sandbox = Sandbox::new();
    let (guard, url) = published(&sandbox);
    for args in [&["guard", "publish", &guard, &url][..], &["guard", "check", &url]] {
        let error = sandbox.fails(args);
        assert!(error.contains("--features remote"), "{error}");
    }
}

#[cfg(all(feature = "remote", feature = "postgres"))]
#[test]
fn a_follower_publishes_what_it_has_applied() {
    let Some(server) = crate::postgres_support::server() else { return };
    let mut db = server.songs("publishes");
    let sandbox = Sandbox::new();
    let (guard, url) = published(&sandbox);
    let (cache, source) = (sandbox.path("cache"), server.url("publishes"));
    let check = |title: &str| {
        sandbox.run_with(&["guard", "check", &url, "--cache", cache.to_str().unwrap()], title.as_bytes()).code
    };
    let table = ["--postgres", &source, "--table", "songs", "--column", "title", "--publish", &url, "--once"];
    let follow = [&["guard", "follow", &guard][..], &table].concat();
    sandbox.ok(&follow);
    assert_eq!((check("Zombie"), check("Freebird")), (1, 1), "the table is empty");
    db.batch_execute("INSERT INTO songs (title) VALUES ('Freebird')").unwrap();
    assert_eq!(check("Freebird"), 1, "as of the published state");
    sandbox.ok(&follow);
    assert_eq!((check("Zombie"), check("Freebird")), (1, 0));
}
