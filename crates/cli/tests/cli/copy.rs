//! export and import.

use crate::sandbox::Sandbox;

#[cfg(not(feature = "slatedb"))]
#[test]
fn without_the_feature_the_error_names_it() {
    let sandbox = Sandbox::new();
    for command in ["export", "import"] {
        let error = sandbox.fails(&[command, "--slatedb", "memory:///"]);
        assert!(error.contains("without SlateDB support") && error.contains("--features slatedb"), "{error}");
    }
    assert!(!sandbox.store().exists());
}

#[cfg(feature = "slatedb")]
mod with_slatedb {
    use super::Sandbox;
    use crate::sandbox::number;

    /// A SlateDB in the sandbox.
    fn url(sandbox: &Sandbox) -> String {
        std::fs::create_dir_all(sandbox.path("bucket")).unwrap();
        format!("file://{}", sandbox.path("bucket").display())
    }

    fn with_rows() -> Sandbox {
        let sandbox = Sandbox::new();
        let lines: String = (0..3000).map(|n| format!("key {n:05}\tvalue {n}\n")).collect();
        let file = sandbox.file("rows.tsv", lines);
        sandbox.ok(&["load", &file]);
        sandbox.ok(&["delete", "key 00007"]);
        sandbox
    }

    #[test]
    fn a_store_comes_back_from_a_slatedb() {
        let sandbox = with_rows();
        let url = url(&sandbox);
        let to = ["--slatedb", &url, "--path", "songs"];
        let report = sandbox.ok(&[&["export", "--json"], &to[..]].concat());
        assert_eq!(number(&report, "rows"), 2999.0);
        assert!(number(&report, "bytes") > 2999.0 * 15.0 && number(&report, "seconds") > 0.0, "{report}");
        assert!(sandbox.path("bucket/songs/manifest").exists());

        let back = sandbox.path("back").display().to_string();
        let text = sandbox.ok(&[&["--db", &back, "import"], &to[..]].concat());
        assert!(text.starts_with("imported 2,999 rows, "), "{text}");
        let [before, after] = [sandbox.ok(&["scan"]), sandbox.ok(&["--db", &back, "scan"])];
        assert!(before.len() > 2999 * 15 && before == after);

        let error = sandbox.fails(&[&["export"], &to[..]].concat());
        assert!(error.contains("the SlateDB already has rows"), "{error}");
        let error = sandbox.fails(&[&["import"], &to[..]].concat());
        assert!(error.contains("the store already has rows"), "{error}");
    }

    #[test]
    fn a_keyspace_comes_back_from_a_slatedb_as_another_one() {
        let sandbox = with_rows();
        for name in ["from", "to"] {
            sandbox.ok(&["keyspaces", "create", name]);
        }
        sandbox.ok(&["put", "--keyspace", "from", "a", "1"]);
        let slate = ["--slatedb", &url(&sandbox)];
        sandbox.ok(&[&["export", "--keyspace", "from"], &slate[..]].concat());
        sandbox.ok(&[&["import", "--keyspace", "to"], &slate[..]].concat());
        assert_eq!(sandbox.ok(&["scan", "--keyspace", "to"]), "a\t1\n");
        let error = sandbox.fails(&[&["import", "--keyspace", "from"], &slate[..]].concat());
        assert!(error.contains("already has rows"), "{error}");
    }

    #[test]
    fn the_path_may_be_part_of_the_url() {
        let sandbox = with_rows();
        let url = format!("{}/a/b", url(&sandbox));
        sandbox.ok(&["export", "--slatedb", &url, "--bits-per-key", "20"]);
        assert!(sandbox.path("bucket/a/b/manifest").exists());
    }

    #[test]
    fn what_is_missing_is_named_and_nothing_is_created() {
        let sandbox = Sandbox::new();
        let url = url(&sandbox);
        let error = sandbox.fails(&["import", "--slatedb", &url]);
        assert!(error.contains("SlateDB"), "{error}");
        assert!(!sandbox.store().exists());
        let error = sandbox.fails(&["export", "--slatedb", &url]);
        assert!(error.contains("store"), "{error}");
        assert_eq!(std::fs::read_dir(sandbox.path("bucket")).unwrap().count(), 0);
    }

    #[test]
    fn bad_arguments_are_named() {
        let sandbox = with_rows();
        for (args, expected) in [
            (vec!["export", "--slatedb", "songs"], "--slatedb songs: not a URL"),
            (vec!["import", "--slatedb", "ftp://host/songs"], "--slatedb ftp://host/songs: "),
            (vec!["export", "--slatedb", "memory:///", "--path", "a//b"], "--path a//b: "),
            (
                vec!["export", "--slatedb", "memory:///", "--bits-per-key", "3"],
                "--bits-per-key: 3 bits per key",
            ),
        ] {
            let error = sandbox.fails(&args);
            assert!(error.contains(expected), "{error}");
        }
    }

    /// Options of the cloud stores come from the environment, under their full names only.
    #[test]
    fn options_come_from_the_environment() {
        let sandbox = with_rows();
        for (name, expected) in [
            ("AWS_ALLOW_HTTP", "--slatedb s3://bucket: "),
            ("ALLOW_HTTP", "--slatedb s3://bucket: --path a//b: "),
        ] {
            let mut command = sandbox.command();
            command.env(name, "neither yes nor no").env("AWS_REGION", "r");
            let output =
                command.args(["export", "--slatedb", "s3://bucket", "--path", "a//b"]).output().unwrap();
            let error = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2));
            assert!(
                error.contains(expected) && error.contains("--path") == expected.contains("--path"),
                "{error}"
            );
        }
    }
}
