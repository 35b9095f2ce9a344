//! What messages show: no secrets, and no terminal control characters.

use crate::sandbox::{Outcome, Sandbox};

const SECRET: &str = "hunter2";

#[test]
fn keys_in_urls_are_shown_nowhere() {
    let sandbox = Sandbox::new();
    sandbox.ok(&["put", "a", "1"]);
    let copy = sandbox.path("copy").display().to_string();
    let guard = sandbox.path("songs.guard").display().to_string();
    sandbox.ok(&["guard", "build", &guard, "--lines", &sandbox.file("titles", "Zombie\n")]);
    for url in [
        format!("nothing://AKIA:{SECRET}@bucket/songs"),
        format!("nothing://{SECRET}@bucket/songs?sig={SECRET}"),
        format!("s3://AKIA:hun/{SECRET}@/songs#{SECRET}"),
        format!("ftp://host/place?token={SECRET}"),
    ] {
        for args in [
            &["--db", &url, "get", "a"][..],
            &["--db", &url, "put", "a", "1"],
            &["--db", &url, "verify"],
            &["--db", &url, "stats"],
            &["publish", &url],
            &["clone", &url, &copy],
            &["guard", "publish", &guard, &url],
            &["guard", "check", &url],
            &["export", "--slatedb", &url],
        ] {
            let shown = sandbox.run(args);
            assert_eq!(shown.code, 2, "{args:?}: {}", shown.err);
            assert!(!shown.err.contains(SECRET) && !shown.text().contains(SECRET), "{args:?}: {}", shown.err);
        }
    }
}

#[cfg(feature = "remote")]
#[test]
fn keys_in_urls_are_not_kept_beside_the_store() {
    let sandbox = Sandbox::new();
    sandbox.ok(&["put", "a", "1"]);
    std::fs::create_dir(sandbox.path("bucket")).unwrap();
    let url = format!("file://{}/songs?sig={SECRET}", sandbox.path("bucket").display());
    sandbox.ok(&["publish", &url]);
    let published = std::fs::read(sandbox.store().join("PUBLISHED")).unwrap();
    assert!(!published.windows(SECRET.len()).any(|part| part == SECRET.as_bytes()));
    // Another key is the same place.
    sandbox.ok(&["publish", &url.replace(SECRET, "hunter3")]);
}

#[test]
fn names_and_keys_in_messages_drive_no_terminal() {
    let sandbox = Sandbox::new();
    let hostile = "songs\x1b]0;title\x07\x1b[2J";
    let place = sandbox.path(hostile).display().to_string();
    let list = sandbox.file("rows\x1b[2J", "{\"key\": \"a\x1b[2J\"\n");
    let outcomes = [
        sandbox.run(&["load", "--format", "jsonl", &list]),
        sandbox.run(&["--db", &place, "get", "a"]),
        sandbox.run(&["--db", "s3://bucket/\x1b[2J", "put", "a", "1"]),
        sandbox.run(&["load", &place]),
        sandbox.run(&["--verbose", "--verbose", "--db", &place, "put", "a", "1"]),
        sandbox.run(&["--db", &place, "checkpoint", &format!("{place}.copy\x1b[2J")]),
        sandbox.run(&["--db", &place, "verify"]),
    ];
    for Outcome { err, out, .. } in &outcomes {
        let shown = format!("{err}{}", String::from_utf8_lossy(out));
        assert!(!shown.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t')), "{shown:?}");
    }
    // A pipe gets the bytes.
    sandbox.ok(&["put", "key", "\x1b[2J"]);
    assert_eq!(sandbox.ok(&["get", "key"]), "\x1b[2J");
    assert_eq!(sandbox.ok(&["scan"]), "key\t\\x1b[2J\n");
}
