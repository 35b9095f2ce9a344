//! `sidebloom guard serve`: MULTI and EXEC, and INSERT with its options.

use crate::server::{OWN_BYTES, Server, asks, info, request};

#[test]
fn a_transaction_is_queued_and_answered_as_by_redis() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &[]);
    let mut client = server.connect();
    asks(
        &mut client,
        &[
            ("MULTI", "+OK"),
            ("BF.ADD songs a", "+QUEUED"),
            ("BF.EXISTS songs a", "+QUEUED"),
            ("MULTI", "-ERR MULTI calls can not be nested"),
            ("CF.DEL songs a", "+QUEUED"),
            ("BF.EXISTS songs a", "+QUEUED"),
            ("BF.MADD songs b c", "+QUEUED"),
            ("PING", "+QUEUED"),
            ("EXEC", "[:1 :1 :1 :0 [:1 :1] +PONG]"),
            ("BF.MEXISTS songs a b c", "[:0 :1 :1]"),
            ("MULTI", "+OK"),
            ("EXEC", "[]"),
        ],
    );
    // Others see nothing of a queue before EXEC, and never after DISCARD or RESET.
    let mut other = server.connect();
    asks(&mut client, &[("MULTI", "+OK"), ("BF.ADD songs d", "+QUEUED")]);
    assert_eq!(other.ask("BF.EXISTS songs d"), ":0");
    asks(
        &mut client,
        &[("DISCARD", "+OK"), ("MULTI", "+OK"), ("BF.ADD songs d", "+QUEUED"), ("RESET", "+RESET")],
    );
    asks(
        &mut client,
        &[
            ("EXEC", "-ERR EXEC without MULTI"),
            ("DISCARD", "-ERR DISCARD without MULTI"),
            ("BF.EXISTS songs d", ":0"),
        ],
    );
}

/// A malformed command aborts a transaction; a command that fails on execution does not.
#[test]
fn a_malformed_command_aborts_a_transaction_and_a_later_failure_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &[]);
    let mut client = server.connect();
    let aborted = "-EXECABORT Transaction discarded because of previous errors.";
    for malformed in ["NOPE a", "BF.ADD songs"] {
        asks(&mut client, &[("MULTI", "+OK"), ("BF.ADD songs a", "+QUEUED")]);
        assert!(client.ask(malformed).starts_with("-ERR "), "{malformed}");
        asks(
            &mut client,
            &[("BF.ADD songs b", "+QUEUED"), ("EXEC", aborted), ("BF.MEXISTS songs a b", "[:0 :0]")],
        );
    }
    asks(
        &mut client,
        &[
            ("MULTI", "+OK"),
            ("BF.ADD songs a", "+QUEUED"),
            ("BF.ADD other a", "+QUEUED"),
            ("BF.INSERT songs CAPACITY 0 ITEMS x", "+QUEUED"),
            ("BF.ADD songs b", "+QUEUED"),
            ("EXEC", "[:1 -ERR not found -ERR Bad capacity :1]"),
            ("BF.MEXISTS songs a b", "[:1 :1]"),
        ],
    );
}

/// A transaction of many commands takes effect at once, and its memory is bounded.
#[test]
fn a_transaction_of_many_commands_is_whole_and_its_memory_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &[]);
    let mut client = server.connect();
    let adds = |n: usize| (0..n).flat_map(|i| request(&["BF.ADD", "songs", &format!("key {i}")]));
    let mut bytes: Vec<u8> = request(&["MULTI"]);
    bytes.extend(adds(5000).chain(request(&["EXEC"])));
    client.send(&bytes);
    assert_eq!(client.reply(), "+OK");
    (0..5000).for_each(|_| assert_eq!(client.reply(), "+QUEUED"));
    assert_eq!(client.reply(), format!("[{}]", vec![":1"; 5000].join(" ")));
    assert_eq!(info(&mut client, "guard_keys"), 5000);
    assert!(info(&mut client, "client_bytes") < OWN_BYTES);
    // More than a request may have.
    let large = "x".repeat(60_000);
    assert_eq!(client.ask("MULTI"), "+OK");
    let replies: Vec<String> = (0..1200).map(|_| client.ask(&format!("BF.ADD songs {large}"))).collect();
    assert!(replies.contains(&"-ERR the transaction is too large".to_owned()));
    assert!(client.ask("EXEC").starts_with("-EXECABORT"));
    assert_eq!(info(&mut client, "guard_keys"), 5000);
}

#[test]
fn insert_takes_the_options_of_redis_bloom_and_refuses_wrong_ones() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &[]);
    asks(
        &mut server.connect(),
        &[
            ("BF.INSERT songs ITEMS a b a", "[:1 :1 :0]"),
            ("bf.insert songs capacity 1000 error 0.01 expansion 2 nocreate items a c", "[:0 :1]"),
            ("BF.INSERT songs NONSCALING ITEMS ITEMS", "[:1]"),
            ("BF.MEXISTS songs a b c ITEMS capacity", "[:1 :1 :1 :1 :0]"),
            ("BF.INSERT other ITEMS a", "-ERR not found"),
            ("BF.INSERT songs CAPACITY 0 ITEMS a", "-ERR Bad capacity"),
            ("BF.INSERT songs ERROR 1 ITEMS a", "-ERR Bad error rate"),
            ("BF.INSERT songs EXPANSION x ITEMS a", "-ERR Bad expansion"),
            ("BF.INSERT songs EXPANSION 2 NONSCALING ITEMS a", "[:0]"),
            ("BF.INSERT songs NONSENSE ITEMS a", "-ERR Unknown argument received"),
            (
                "BF.INSERT songs NOCREATE ITEMS",
                "-ERR wrong number of arguments: ITEMS and at least one item are missing",
            ),
            ("BF.INSERT songs NOCREATE a", "-ERR Unknown argument received"),
            ("BF.INSERT songs ITEMS", "-ERR wrong number of arguments for 'bf.insert' command"),
            ("CF.INSERT songs CAPACITY 1000 NOCREATE ITEMS a a", "[:1 :1]"),
            ("CF.COUNT songs a", ":3"),
            ("CF.INSERTNX songs ITEMS a d", "[:0 :1]"),
            ("CF.INSERT songs ERROR 0.1 ITEMS a", "-ERR Unknown argument received"),
        ],
    );
}
