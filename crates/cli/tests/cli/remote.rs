//! publish, clone, and stores at a URL; a directory serves as the bucket.

use crate::sandbox::{Sandbox, files};
use std::fs;

/// A store with some rows in segments, and a place to publish it.
fn with_bucket(rows: usize) -> (Sandbox, String) {
    let sandbox = Sandbox::new();
    let text: String = (0..rows).map(|i| format!("key{i:06}\tvalue {i}\n")).collect();
    assert_eq!(sandbox.run_with(&["load", "--format", "scan", "-"], text.as_bytes()).code, 0);
    fs::create_dir(sandbox.path("bucket")).unwrap();
    let url = format!("file://{}", sandbox.path("bucket").join("songs").display());
    (sandbox, url)
}

/// Arguments for a store at a URL, with its cache in the sandbox.
fn at(sandbox: &Sandbox, url: &str, args: &[&str]) -> Vec<String> {
    let cache = sandbox.path("cache");
    let global = ["--db", url, "--remote-cache", cache.to_str().unwrap()];
    global.iter().chain(args).map(|arg| (*arg).to_owned()).collect()
}

#[cfg(not(feature = "remote"))]
#[test]
fn a_build_without_object_storage_says_so() {
    let (sandbox, url) = with_bucket(1);
    for args in [
        vec!["publish".to_owned(), url.clone()],
        vec!["clone".to_owned(), url.clone(), sandbox.path("copy").display().to_string()],
        at(&sandbox, &url, &["get", "key000000"]),
        at(&sandbox, &url, &["scan"]),
        at(&sandbox, &url, &["stats"]),
        at(&sandbox, &url, &["verify"]),
    ] {
        assert!(sandbox.fails(&args).contains("`--features remote`"), "{args:?}");
    }
    assert!(!sandbox.path("cache").exists() && !sandbox.path("copy").exists());
}

#[test]
fn what_writes_refuses_a_url() {
    let (sandbox, url) = with_bucket(1);
    let copy = sandbox.path("copy");
    let copy = copy.to_str().unwrap();
    for args in [
        &["put", "a", "b"][..],
        &["delete", "key000000"],
        &["load", "--format", "scan", "-"],
        &["repair"],
        &["compact"],
        &["rebuild-filters"],
        &["checkpoint", copy],
        &["bench", "readrandom", "--use-existing"],
        &["bench", "fillseq", "--num", "10"],
    ] {
        let error = sandbox.fails(&[&["--db", &url], args].concat());
        assert!(error.contains("a published store is read-only"), "{args:?}: {error}");
    }
    assert!(files(&sandbox.path("bucket")).is_empty());
}

#[cfg(feature = "remote")]
mod built_in {
    use super::*;
    use crate::sandbox::{number, part};
    use std::path::PathBuf;

    /// The only object of a kind.
    fn object(sandbox: &Sandbox, kind: &str) -> PathBuf {
        let found = files(&sandbox.path("bucket").join("songs").join(kind));
        assert_eq!(found.len(), 1, "{found:?}");
        found[0].clone()
    }

    #[test]
    fn a_published_store_is_read_by_its_url_as_if_it_were_here() {
        let (sandbox, url) = with_bucket(20_000);
        let json = sandbox.ok(&["publish", &url, "--json"]);
        assert_eq!((number(&json, "generation"), number(&json, "files")), (1.0, 3.0), "{json}");
        let remote = |args: &[&str]| sandbox.run(&at(&sandbox, &url, args));

        assert_eq!(remote(&["get", "key012345"]).text(), "value 12345");
        assert_eq!(remote(&["get", "key012345x"]).code, 1);
        let range = ["scan", "--from", "key000990", "--to", "key001010"];
        assert_eq!(remote(&range).text(), sandbox.ok(&range));
        assert_eq!(remote(&["scan", "--prefix", "nothing"]).code, 1);
        let verified = remote(&["verify"]);
        assert!(
            verified.code == 0 && verified.text().starts_with("ok: 1 segments, 20,000 entries"),
            "{}",
            verified.err
        );
        let stats = remote(&["stats", "--json", "--probe", "1000"]).text();
        assert_eq!(number(part(&stats, "total"), "keys"), 20_000.0, "{stats}");
        assert_eq!(number(&stats, "filters_unavailable"), 0.0, "{stats}");

        sandbox.ok(&["put", "key012345", "new"]);
        assert_eq!(remote(&["get", "key012345"]).text(), "value 12345");
        let text = sandbox.ok(&["publish", &url]);
        assert!(text.starts_with("generation 2: 3 files uploaded, "), "{text}");
        assert_eq!(remote(&["get", "key012345"]).text(), "new");
        assert!(sandbox.left_behind().is_empty());
    }

    #[test]
    fn old_generations_are_collected_by_age() {
        let (sandbox, url) = with_bucket(100);
        sandbox.ok(&["publish", &url]);
        sandbox.ok(&["put", "b", "2"]);
        sandbox.ok(&["compact"]);
        let json = sandbox.ok(&["publish", &url, "--collect", "1h", "--json"]);
        assert_eq!(number(&json, "collected"), 0.0, "{json}");
        let text = sandbox.ok(&["publish", &url, "--collect", "0s"]);
        // Two generations, a manifest, and the compacted segment and filter.
        assert!(text.ends_with("5 old objects removed\n"), "{text}");
        assert_eq!(sandbox.run(&at(&sandbox, &url, &["get", "b"])).text(), "2");
        object(&sandbox, "gen");
        object(&sandbox, "segment");
        for age in ["", "7w", "-1h"] {
            assert!(
                sandbox.fails(&["publish", &url, &format!("--collect={age}")]).contains("such as"),
                "{age}"
            );
        }
    }

    #[test]
    fn of_a_store_and_its_clone_one_goes_on_publishing() {
        let (sandbox, url) = with_bucket(1000);
        sandbox.ok(&["publish", &url]);
        let copy = sandbox.path("copy");
        let copy = copy.to_str().unwrap();
        assert_eq!(sandbox.ok(&["clone", &url, copy]), format!("generation 1 at {copy}\n"));
        assert!(sandbox.fails(&["clone", &url, copy]).contains("exists"));
        assert_eq!(sandbox.ok(&["--db", copy, "scan"]), sandbox.ok(&["scan"]));

        sandbox.ok(&["--db", copy, "put", "from", "the copy"]);
        sandbox.ok(&["--db", copy, "publish", &url]);
        sandbox.ok(&["put", "from", "the original"]);
        let refused = sandbox.fails(&["publish", &url]);
        assert!(refused.contains("does not descend"), "{refused}");
        let get = at(&sandbox, &url, &["get", "from"]);
        assert_eq!(sandbox.ok(&get), "the copy");
        sandbox.ok(&["publish", &url, "--take-over"]);
        assert_eq!(sandbox.ok(&get), "the original");
        assert!(sandbox.fails(&["--db", copy, "publish", &url]).contains("does not descend"));
        assert_eq!(sandbox.ok(&get), "the original");
    }

    #[test]
    fn the_cache_is_below_the_users_cache_directory_one_for_each_url() {
        let (sandbox, url) = with_bucket(1000);
        sandbox.ok(&["publish", &url]);
        let other = format!("{url}-2");
        sandbox.ok(&["publish", &other]);
        let (caches, home) = (sandbox.path("caches"), sandbox.path("home"));
        let get = |url: &str, variable: &str, dir: &PathBuf| {
            let mut command = sandbox.command();
            command.env_remove("XDG_CACHE_HOME").env_remove("HOME").env(variable, dir);
            command.args(["--db", url, "get", "key000001"]).output().unwrap()
        };
        for url in [&url, &format!("{url}/"), &other] {
            assert_eq!(get(url, "XDG_CACHE_HOME", &caches).stdout, b"value 1", "{url}");
        }
        assert_eq!(files(&caches.join("sidebloom")).len(), 2);
        assert_eq!(get(&url, "HOME", &home).stdout, b"value 1");
        assert_eq!(files(&home.join(".cache/sidebloom")).len(), 1);
    }

    #[test]
    fn places_that_hold_no_published_store_are_refused_by_name() {
        let (sandbox, url) = with_bucket(1);
        let get = |url: &str| sandbox.fails(&at(&sandbox, url, &["get", "key000000"]));
        assert!(get(&url).contains("no published store"), "{}", get(&url));
        assert!(get("ftp://host/place").contains("ftp://host/place"), "{}", get("ftp://host/place"));
        assert!(get("s3://").contains("s3://"), "{}", get("s3://"));
        let copy = sandbox.path("copy").display().to_string();
        assert!(sandbox.fails(&["clone", &url, &copy]).contains("no published store"));
        assert!(!sandbox.path("copy").exists());

        // Another store.
        sandbox.ok(&["publish", &url]);
        let second = sandbox.path("second").display().to_string();
        sandbox.ok(&["--db", &second, "put", "a", "b"]);
        for take_over in [&[][..], &["--take-over"]] {
            let publish = [&["--db", &second, "publish", &url][..], take_over].concat();
            assert!(sandbox.fails(&publish).contains("another store"));
        }
        assert_eq!(sandbox.ok(&at(&sandbox, &url, &["get", "key000000"])), "value 0");
    }

    #[test]
    fn i6_damage_in_the_bucket_is_named_and_no_clone_has_it() {
        let (sandbox, url) = with_bucket(5000);
        sandbox.ok(&["publish", &url]);
        let segment = object(&sandbox, "segment");
        let intact = fs::read(&segment).unwrap();
        let mut damaged = intact.clone();
        damaged[1000] ^= 1;
        fs::write(&segment, damaged).unwrap();
        let verified = sandbox.run(&at(&sandbox, &url, &["verify"]));
        assert!(verified.code == 2 && verified.text().contains("DAMAGED"), "{}", verified.text());
        let copy = sandbox.path("copy").display().to_string();
        let error = sandbox.fails(&["clone", &url, &copy]);
        assert!(
            error.contains(segment.file_name().unwrap().to_str().unwrap()) && error.contains("damaged"),
            "{error}"
        );
        assert_eq!(sandbox.run(&["--db", &copy, "get", "key000000"]).code, 2);
        fs::write(&segment, intact).unwrap();
        let generation = object(&sandbox, "gen");
        let whole = fs::read(&generation).unwrap();
        fs::write(&generation, &whole[..whole.len() / 2]).unwrap();
        let error = sandbox.fails(&at(&sandbox, &url, &["get", "key000000"]));
        assert!(error.contains("00000000000000000001 is damaged") && error.contains("cut short"), "{error}");
    }
}
