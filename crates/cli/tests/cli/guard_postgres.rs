//! `sidebloom guard … --postgres` on a real server; `guard_postgres.rs` tests it without one.

use crate::postgres_support::server;
use crate::sandbox::{Sandbox, number};
use crate::server::{Server, command, eventually};

#[test]
fn a_table_is_guarded_and_followed_from_the_command_line() {
    let Some(server) = server() else { return };
    let mut db = server.songs("cli");
    db.batch_execute("INSERT INTO songs (title) VALUES ('Zombie'), ('Zombie'), ('Sinnerman'), (NULL)")
        .unwrap();
    let sandbox = Sandbox::new();
    let guard = sandbox.path("guard").to_str().unwrap().to_owned();
    let url = server.url("cli");
    let with = |command: &str, more: &[&str]| {
        let mut args = vec!["guard".to_owned(), command.to_owned(), guard.clone()];
        args.extend(["--postgres", &url, "--table", "songs", "--column", "title"].map(str::to_owned));
        args.extend(more.iter().map(|word| (*word).to_owned()));
        args
    };
    let check = |title: &str| sandbox.run_with(&["guard", "check", &guard], title.as_bytes()).code;
    let built = sandbox.ok(&with("build", &["--json"]));
    assert_eq!((number(&built, "rows"), number(&built, "keys")), (3.0, 2.0));
    assert_eq!((check("Zombie"), check("Freebird")), (0, 1));

    let first = sandbox.ok(&with("follow", &["--once"]));
    assert!(first.starts_with("refreshed: 3 rows, 2 keys"), "{first}");
    db.batch_execute(
        "INSERT INTO songs (title) VALUES ('Freebird'); DELETE FROM songs WHERE title = 'Zombie'",
    )
    .unwrap();
    let followed = sandbox.ok(&with("follow", &["--once", "--json"]));
    assert_eq!((number(&followed, "inserted"), number(&followed, "removed")), (1.0, 2.0));
    assert!(number(&followed, "lag_seconds") > 0.0, "{followed}");
    assert_eq!((check("Zombie"), check("Freebird")), (1, 0));
    let refused = sandbox.fails(&["guard", "insert", &guard, "One"]);
    assert!(refused.contains("follows a database"), "{refused}");

    assert_eq!(number(&sandbox.ok(&with("reconcile", &["--json"])), "surplus"), 0.0);
    sandbox.ok(&["guard", "insert", &guard, "One"]); // It has no position to follow from any more.
    assert_eq!(number(&sandbox.ok(&with("reconcile", &["--json"])), "surplus"), 1.0);
    let again = sandbox.ok(&with("follow", &["--once", "--refresh"]));
    assert!(again.starts_with("refreshed: 2 rows"), "{again}");
    assert!(sandbox.fails(&with("follow", &["--remove-trigger", "--once"])).contains("cannot be used"));
    sandbox.ok(&with("follow", &["--remove-trigger"]));
    let left = db.query("SELECT 1 FROM pg_class WHERE relname LIKE 'sidebloom%'", &[]).unwrap();
    assert!(left.is_empty(), "everything that was made is removed");
    let missing: Vec<String> = with("refresh", &[])
        .into_iter()
        .map(|word| if word == "title" { "name".to_owned() } else { word })
        .collect();
    assert!(sandbox.fails(&missing).contains("no column \"name\""));
}

/// A server answers while it follows a table, and refuses changes from clients.
#[test]
fn a_server_that_follows_a_table_answers_and_refuses_changes() {
    let Some(server) = server() else { return };
    let mut db = server.songs("serve");
    db.batch_execute("INSERT INTO songs (title) VALUES ('Zombie')").unwrap();
    let sandbox = Sandbox::new();
    let guard = sandbox.path("songs.guard");
    let url = server.url("serve");
    let table = ["--postgres", &url, "--table", "songs", "--column", "title"];
    let build = ["guard", "build", guard.to_str().unwrap(), "--bits-per-key", "19"];
    sandbox.ok(&[&build[..], &table].concat());
    // Inserted before the server follows, so not through an outbox.
    db.batch_execute("INSERT INTO songs (title) VALUES ('Sinnerman')").unwrap();

    let serving = Server::spawn(command(&guard, &[&["--listen", "127.0.0.1:0"][..], &table].concat()));
    let mut client = serving.connect();
    for (title, there) in [("Zombie", ":1"), ("Sinnerman", ":1"), ("Freebird", ":0")] {
        assert_eq!(client.ask(&format!("BF.EXISTS songs {title}")), there, "{title}");
    }
    db.batch_execute(
        "INSERT INTO songs (title) VALUES ('Freebird'); DELETE FROM songs WHERE title = 'Zombie'",
    )
    .unwrap();
    eventually("the insertion arrives", || client.ask("BF.EXISTS songs Freebird") == ":1");
    eventually("the removal arrives", || client.ask("CF.COUNT songs Zombie") == ":0");
    db.batch_execute("ALTER TABLE songs DISABLE TRIGGER ALL").unwrap();
    eventually("every answer is maybe", || client.ask("BF.EXISTS songs Never") == ":1");
    assert_eq!(client.ask("CF.COUNT songs Never"), ":1", "what is not known is not denied");
    for change in ["BF.ADD songs One", "CF.ADD songs One", "CF.DEL songs Sinnerman"] {
        let refused = client.ask(change);
        assert!(refused.contains("follows a database"), "{change}: {refused}");
    }
    assert_eq!(serving.stop().code(), Some(0));

    // Without the table it answers from what it has, and still refuses changes.
    let serving = Server::spawn(command(&guard, &["--listen", "127.0.0.1:0"]));
    let mut client = serving.connect();
    assert_eq!(client.ask("BF.EXISTS songs Freebird"), ":1");
    assert!(client.ask("BF.ADD songs One").contains("follows a database"));
    assert_eq!(serving.stop().code(), Some(0));
}
