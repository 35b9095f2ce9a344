//! `sidebloom serve`: the commands of Bloom and cuckoo filters, and what survives.

use crate::server::{Client, Server, asks, request};
use std::process::Command;

#[test]
fn bloom_filters_reply_as_those_of_redis_bloom() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::of_filters(dir.path(), &[]);
    asks(
        &mut server.connect(),
        &[
            ("BF.EXISTS songs a", ":0"),
            ("BF.MEXISTS songs a b c", "[:0 :0 :0]"),
            ("BF.CARD songs", ":0"),
            ("BF.INFO songs", "-ERR not found"),
            ("BF.RESERVE songs 0.001 100", "+OK"),
            ("BF.RESERVE songs 0.001 100", "-ERR item exists"),
            ("BF.ADD songs a", ":1"),
            ("BF.ADD songs a", ":0"),
            ("BF.MADD songs a b c", "[:0 :1 :1]"),
            ("BF.MEXISTS songs a x b", "[:1 :0 :1]"),
            ("BF.CARD songs", ":3"),
            (
                "BF.INFO songs",
                "[+Capacity :100 +Size :296 +Number of filters :1 +Number of items inserted :3 +Expansion rate :2]",
            ),
            ("BF.INFO songs size", "[:296]"),
            ("BF.INFO songs nonsense", "-ERR Invalid information value"),
            ("BF.INFO songs ITEMS SIZE", "-ERR wrong number of arguments for 'bf.info' command"),
            ("BF.ADD other a", ":1"),
            ("BF.INFO other CAPACITY", "[:100]"),
            (
                "BF.ADD other a EX 10",
                "-ERR items of this filter do not expire: let the filter expire, with EXPIRE",
            ),
            (
                "BF.ADD new a PX 10",
                "-ERR items of this filter do not expire: let the filter expire, with EXPIRE",
            ),
            ("EXISTS new", ":0"),
            ("BF.INSERT third NOCREATE ITEMS a", "-ERR not found"),
            ("BF.INSERT third CAPACITY 3 NONSCALING ITEMS a b c", "[:1 :1 :1]"),
            ("BF.INSERT third ITEMS a b c d d", "[:0 :0 :0 -ERR non scaling filter is full]"),
            ("BF.ADD third e", "-ERR non scaling filter is full"),
            ("BF.INFO third expansion", "[nil]"),
            ("CF.ADD songs a", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
            ("CF.INFO songs", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
            ("CF.RESERVE songs 1000", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
            ("CF.EXISTS songs a", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ],
    );
}

#[test]
fn cuckoo_filters_reply_as_those_of_redis_bloom() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::of_filters(dir.path(), &[]);
    let mut client = server.connect();
    asks(
        &mut client,
        &[
            ("CF.EXISTS f a", ":0"),
            ("CF.COUNT f a", ":0"),
            ("CF.DEL f a", "-ERR Not found"),
            ("CF.INFO f", "-ERR not found"),
            ("CF.COMPACT f", "-ERR Cuckoo filter was not found"),
            ("CF.RESERVE f 1000", "+OK"),
            ("CF.RESERVE f 1000", "-ERR item exists"),
            ("CF.ADD f a", ":1"),
            ("CF.ADD f a", ":1"),
            ("CF.COUNT f a", ":2"),
            ("CF.ADDNX f a", ":0"),
            ("CF.DEL f a", ":1"),
            ("CF.DEL f a", ":1"),
            ("CF.DEL f a", ":0"),
            ("CF.INSERT f ITEMS x y x", "[:1 :1 :1]"),
            ("CF.INSERTNX f ITEMS x z", "[:0 :1]"),
            ("CF.MEXISTS f x y q", "[:1 :1 :0]"),
            (
                "CF.INFO f",
                "[+Size :1080 +Number of buckets :512 +Number of filters :1 +Number of items inserted :4 \
                 +Number of items deleted :2 +Bucket size :2 +Expansion rate :1 +Max iterations :20]",
            ),
            ("CF.COMPACT f", "+OK"),
            ("CF.RESERVE full 4 EXPANSION 0", "+OK"),
            ("CF.INSERT full ITEMS 1 2 3 4", "[:1 :1 :1 :1]"),
            ("CF.INSERT full ITEMS 5 6", "[:-1 :-1]"),
            ("CF.INSERTNX full ITEMS 1 6", "[:0 :-1]"),
            ("CF.ADD full 5", "-ERR Filter is full"),
            ("CF.INSERT g NOCREATE ITEMS a", "-ERR not found"),
            ("CF.ADD g a", ":1"),
            ("BF.ADD g a", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ],
    );
    for (ask, error) in [
        ("CF.RESERVE x 1", "-ERR Capacity must be in the range [2 * BUCKETSIZE, 1073741824]"),
        ("CF.RESERVE x 100 BUCKETSIZE 0", "-ERR BUCKETSIZE: value must be in the range [1, 255]"),
        ("CF.RESERVE x 100 MAXITERATIONS string", "-ERR Couldn't parse MAXITERATIONS"),
        ("CF.RESERVE x 100 EXPANSION 32769", "-ERR EXPANSION: value must be in the range [0, 32768]"),
        ("CF.RESERVE x 100 EXPANSION", "-ERR wrong number of arguments for 'cf.reserve' command"),
        ("BF.RESERVE x 0 100", "-ERR error rate must be in the range (0.000000, 1.000000)"),
        ("BF.RESERVE x big 100", "-ERR bad error rate"),
        ("BF.RESERVE x 0.01 0", "-ERR capacity must be in the range [1, 1073741824]"),
        ("BF.RESERVE x 0.01 18446744073709551616", "-ERR bad capacity"),
        ("BF.RESERVE x 0.01 1 EXPANSION -1", "-ERR expansion must be in the range [0, 32768]"),
        ("BF.RESERVE x 0.01 1 EXPANSION", "-ERR no expansion"),
        ("BF.RESERVE x 0.01 1 NONSCALING EXPANSION 2", "-ERR Nonscaling filters cannot expand"),
    ] {
        assert_eq!(client.ask(ask), error, "{ask}");
        assert_eq!(client.ask("EXISTS x"), ":0");
    }
}

#[test]
fn version_3_has_booleans_but_numbers_for_cf_insertnx() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::of_filters(dir.path(), &[]);
    let mut client = server.connect();
    assert!(client.ask("HELLO 3").starts_with('{'));
    asks(
        &mut client,
        &[
            ("BF.ADD b a", "#t"),
            ("BF.MEXISTS b a x", "[#t #f]"),
            (
                "BF.INFO b",
                "{+Capacity :100 +Size :240 +Number of filters :1 +Number of items inserted :1 +Expansion rate :2}",
            ),
            ("CF.RESERVE a 9 EXPANSION 0", "+OK"),
            ("CF.INSERT a ITEMS 3 4", "[#t #t]"),
            ("CF.INSERTNX a ITEMS 4 6", "[:0 :1]"),
            ("CF.DEL a 3", "#t"),
            ("CF.COUNT a 4", ":1"),
            ("CF.INSERT a ITEMS 1 2 3 4 5 6 7", "[#t #t #t #t #t #t #f]"),
            ("EXISTS a", ":1"),
        ],
    );
}

/// SCANDUMP on one server, LOADCHUNK on another, while both serve others.
#[test]
fn filters_move_between_servers() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (from, to) = (Server::of_filters(dir.path(), &[]), Server::of_filters(other.path(), &[]));
    let (mut from, mut to) = (from.connect(), to.connect());
    let mut add = vec!["BF.MADD".to_owned(), "songs".to_owned()];
    add.extend((0..50_000).map(|n| format!("item {n}")));
    from.send(request(&add));
    from.reply();
    from.ask("CF.INSERT counted ITEMS a a b");
    for (kind, name) in [("BF", "songs"), ("CF", "counted")] {
        let mut position = b"0".to_vec();
        loop {
            from.send(request(&[format!("{kind}.SCANDUMP").as_bytes(), name.as_bytes(), &position]));
            let Some((next, chunk)) = dumped(&mut from) else { break };
            position = next;
            to.send(request(&[format!("{kind}.LOADCHUNK").as_bytes(), name.as_bytes(), &position, &chunk]));
            assert_eq!(to.reply(), "+OK");
        }
    }
    asks(&mut to, &[("BF.CARD songs", ":50000"), ("CF.COUNT counted a", ":2"), ("BF.EXISTS songs x", ":0")]);
    let mut ask = vec!["BF.MEXISTS".to_owned(), "songs".to_owned()];
    ask.extend((0..50_000).map(|n| format!("item {n}")));
    to.send(request(&ask));
    assert_eq!(to.reply(), format!("[{}]", vec![":1"; 50_000].join(" ")));
    asks(
        &mut to,
        &[
            ("BF.SCANDUMP none 0", "-ERR not found"),
            ("BF.SCANDUMP songs x", "-ERR Second argument must be numeric"),
            ("CF.SCANDUMP counted -1", "-ERR Invalid position"),
            ("CF.RESERVE empty 100", "+OK"),
            ("CF.SCANDUMP empty 0", "[:0 nil]"),
            (
                "BF.LOADCHUNK new 1 nonsense",
                "-ERR received bad data (not a chunk of sidebloom, whose form is not RedisBloom's)",
            ),
            ("BF.LOADCHUNK new 2 SBLDUMP1", "-ERR not found"),
            ("BF.LOADCHUNK songs 2 SBLDUMP1", "-ERR received bad data"),
            ("CF.LOADCHUNK new 1 SBLDUMP1", "-ERR Couldn't create filter!"),
            ("CF.LOADCHUNK new 0 SBLDUMP1", "-ERR Invalid position"),
            ("EXISTS new", ":0"),
        ],
    );
}

/// The next position, and the chunk; `None` after the last.
fn dumped(client: &mut Client) -> Option<(Vec<u8>, Vec<u8>)> {
    use std::io::{BufRead, Read};
    let mut line = || {
        let mut line = String::new();
        client.stream.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    };
    assert_eq!(line(), "*2");
    let next = line().strip_prefix(':').unwrap().to_owned();
    let len = line().strip_prefix('$').unwrap().to_owned();
    let mut chunk = Vec::new();
    if let Ok(len) = len.parse::<usize>() {
        chunk = vec![0; len + 2];
        client.stream.read_exact(&mut chunk).unwrap();
        chunk.truncate(len);
    }
    (next != "0").then(|| (next.into_bytes(), chunk))
}

#[test]
fn what_was_acknowledged_survives_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let mut expected = Vec::new();
    for round in 0..4 {
        let server =
            Server::of_filters(dir.path(), if round % 2 == 0 { &[] } else { &["--durability", "sync"] });
        let mut client = server.connect();
        for (name, items) in &expected {
            assert_eq!(client.ask(&format!("BF.CARD {name}")), format!(":{items}"));
            assert_eq!(client.ask(&format!("BF.MEXISTS {name} item0 other")), "[:1 :0]");
        }
        if round > 0 {
            assert_eq!(client.ask("CF.COUNT counted a"), format!(":{round}"));
            assert_eq!(client.ask("EXISTS gone renamed0"), ":1");
            assert_eq!(client.ask("BF.INFO renamed0 CAPACITY"), "[:7]");
        }
        asks(&mut client, &[("CF.ADD counted a", ":1"), ("BF.ADD gone a", ":1"), ("DEL gone", ":1")]);
        client.ask(&format!("BF.RESERVE temporary{round} 0.01 7"));
        assert_eq!(client.ask(&format!("RENAME temporary{round} renamed{round}")), "+OK");
        let name = format!("f{round}");
        for n in 0..100 * (round + 1) {
            client.ask(&format!("BF.ADD {name} item{n}"));
        }
        expected.push((name, 100 * (round + 1)));
        server.kill();
    }
}

#[test]
fn guards_are_served_beside_filters_and_keep_their_names() {
    let dir = tempfile::tempdir().unwrap();
    let guard = dir.path().join("songs.guard");
    let server = Server::start(dir.path(), &[]);
    server.connect().ask("BF.MADD songs a b");
    assert!(server.stop().success());
    let option = format!("titles={}", guard.display());
    let server = Server::of_filters(dir.path(), &["--guard", &option]);
    let mut client = server.connect();
    asks(
        &mut client,
        &[
            ("BF.MEXISTS titles a x", "[:1 :0]"),
            ("BF.ADD titles c", ":1"),
            ("CF.DEL titles c", ":1"),
            ("BF.ADD mine a", ":1"),
            ("EXISTS titles mine", ":2"),
            ("DBSIZE", ":2"),
            ("BF.RESERVE titles 0.1 10", "-ERR item exists"),
            ("BF.INFO titles items", "[:2]"),
            ("TTL titles", ":-1"),
            ("SELECT 1", "+OK"),
            ("BF.EXISTS titles a", ":0"),
            ("SELECT 0", "+OK"),
            ("FLUSHALL", "+OK"),
            ("KEYS *", "[\"titles\"]"),
        ],
    );
    for command in ["DEL titles", "RENAME titles x", "RENAME x titles", "EXPIRE titles 10", "PERSIST titles"]
    {
        assert!(client.ask(command).starts_with("-READONLY "), "{command}");
    }
    assert!(client.ask("WATCH titles").starts_with("-ERR a guard cannot be watched"));
    assert!(client.ask("BF.SCANDUMP titles 0").starts_with("-ERR a guard cannot be dumped"));
    let output = Command::new(env!("CARGO_BIN_EXE_sidebloom"))
        .args(["serve", "x", "--listen", "127.0.0.1:0", "--guard", "nonsense"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("expected NAME=DIR"));
}

#[test]
fn a_directory_of_something_else_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("filters");
    let sidebloom = || Command::new(env!("CARGO_BIN_EXE_sidebloom"));
    assert!(sidebloom().args(["put", "a", "b", "--db"]).arg(&store).status().unwrap().success());
    let output = sidebloom().arg("serve").arg(&store).args(["--listen", "127.0.0.1:0"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("is not a store of filters"), "{error}");
    assert_eq!(sidebloom().args(["get", "a", "--db"]).arg(&store).output().unwrap().stdout, b"b");
}

#[test]
fn a_checkpoint_of_all_filters_can_be_served() {
    let dir = tempfile::tempdir().unwrap();
    let saved = dir.path().join("saved");
    std::fs::create_dir(&saved).unwrap();
    let server = Server::of_filters(dir.path(), &["--checkpoints", saved.to_str().unwrap()]);
    let mut client = server.connect();
    let before: u64 = client.ask("LASTSAVE")[1..].parse().unwrap();
    asks(&mut client, &[("BF.MADD f a b", "[:1 :1]"), ("SAVE", "+OK"), ("BF.ADD f c", ":1")]);
    assert!(client.ask("LASTSAVE")[1..].parse::<u64>().unwrap() >= before);
    assert_eq!(client.ask("BGSAVE"), "+Background saving started");
    crate::server::eventually("there are two", || std::fs::read_dir(&saved).unwrap().count() == 2);
    drop(server);
    let mut checkpoints: Vec<_> =
        std::fs::read_dir(&saved).unwrap().map(|entry| entry.unwrap().path()).collect();
    checkpoints.sort();
    let other = dir.path().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::rename(&checkpoints[0], other.join("filters")).unwrap();
    let server = Server::of_filters(&other, &[]);
    asks(&mut server.connect(), &[("BF.MEXISTS f a b c", "[:1 :1 :0]"), ("BF.CARD f", ":2")]);
    let mut client = server.connect();
    assert!(client.ask("SAVE").starts_with("-ERR no directory for backups"));
}

#[test]
fn backups_of_all_filters_are_made_kept_and_restored() {
    let dir = tempfile::tempdir().unwrap();
    let [saved, restored] = ["saved", "restored"].map(|name| dir.path().join(name));
    let server = Server::of_filters(dir.path(), &["--backups", saved.to_str().unwrap(), "--keep", "2"]);
    let mut client = server.connect();
    let info = client.ask("INFO persistence");
    for field in ["rdb_bgsave_in_progress:0", "rdb_last_bgsave_status:ok", "rdb_last_bgsave_time_sec:-1"] {
        assert!(info.contains(field), "{info}");
    }
    let before: u64 = client.ask("LASTSAVE")[1..].parse().unwrap();
    asks(
        &mut client,
        &[("BF.MADD f a b", "[:1 :1]"), ("SAVE", "+OK"), ("BF.ADD f c", ":1"), ("SAVE", "+OK")],
    );
    assert_eq!(client.ask("BGSAVE"), "+Background saving started");
    let repository = sidebloom::backup::Repository::in_dir(&saved).unwrap();
    let numbers =
        || -> Vec<u64> { repository.list().unwrap().backups.iter().map(|backup| backup.number).collect() };
    crate::server::eventually("the third is there, and the first is gone", || numbers() == [2, 3]);
    crate::server::eventually("it is over", || client.ask("INFO").contains("rdb_bgsave_in_progress:0"));
    assert!(client.ask("LASTSAVE")[1..].parse::<u64>().unwrap() >= before);
    assert!(client.ask("INFO").contains("rdb_last_bgsave_status:ok"));
    // A directory that cannot be a repository any more.
    std::fs::remove_dir_all(&saved).unwrap();
    std::fs::write(&saved, "").unwrap();
    assert!(client.ask("SAVE").contains("cannot be used as a backup repository"));
    assert!(client.ask("INFO").contains("rdb_last_bgsave_status:err"));
    std::fs::remove_file(&saved).unwrap();
    asks(&mut client, &[("SAVE", "+OK")]);
    assert!(client.ask("INFO").contains("rdb_last_bgsave_status:ok"));
    drop(server);
    std::fs::create_dir(&restored).unwrap();
    repository.restore(None, restored.join("filters")).unwrap();
    let server = Server::of_filters(&restored, &[]);
    asks(&mut server.connect(), &[("BF.MEXISTS f a b c d", "[:1 :1 :1 :0]")]);
}
