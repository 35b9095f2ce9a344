//! `sidebloom serve`: whatever one client asks for, the others have their turn. Counted in replies, not in
//! seconds.

use crate::server::{Client, Server, asks, eventually, info, queue, request};
use std::io::Write;
use std::thread;
use std::time::Duration;

/// How often `other` is done while `client` waits for the reply to a request.
fn times_during(client: &mut Client, request: &[u8], mut other: impl FnMut()) -> usize {
    let stream = client.stream.get_ref();
    let (mut sending, replies) = (stream.try_clone().unwrap(), stream.try_clone().unwrap());
    thread::scope(|scope| {
        scope.spawn(move || sending.write_all(request).unwrap());
        let begun = scope.spawn(move || replies.peek(&mut [0]).unwrap());
        let mut times = 0;
        while !begun.is_finished() {
            other();
            times += 1;
        }
        assert_eq!(begun.join().unwrap(), 1);
        times
    })
}

fn on_one_thread(dir: &std::path::Path) -> (Server, Client) {
    let server = Server::of_filters(dir, &["--threads", "1"]);
    let mut client = server.connect();
    asks(&mut client, &[("BF.ADD f a", ":1"), ("BF.ADD g a", ":1")]);
    (server, client)
}

const MANY: usize = 200_000;

/// A request with many items.
fn many(command: &str) -> Vec<u8> {
    let words = [command, "f"].into_iter().map(str::to_owned);
    request(&words.chain((0..MANY).map(|n| n.to_string())).collect::<Vec<_>>())
}

/// Questions to filters in turn are no batch of one filter. That there is a change makes the replies wait for
/// the end.
#[test]
fn a_transaction_of_questions_to_many_filters_lets_others_have_their_turn() {
    let dir = tempfile::tempdir().unwrap();
    let (server, mut client) = on_one_thread(dir.path());
    let pair = [request(&["BF.EXISTS", "f", "a"]), request(&["BF.EXISTS", "g", "b"])].concat();
    let commands = [pair.repeat(50_000), request(&["BF.ADD", "f", "last"])].concat();
    queue(&mut client, &commands, 100_001);
    let mut other = server.connect();
    let ping = || assert_eq!(other.ask("PING"), "+PONG");
    let pings = times_during(&mut client, &request(&["EXEC"]), ping);
    assert_eq!(client.reply().matches(' ').count(), 100_000);
    assert!(pings > 100, "{pings}");
}

#[test]
fn a_large_question_or_change_lets_others_have_their_turn() {
    let dir = tempfile::tempdir().unwrap();
    let (server, mut client) = on_one_thread(dir.path());
    let mut other = server.connect();
    for command in ["BF.MEXISTS", "BF.MADD"] {
        let ping = || assert_eq!(other.ask("PING"), "+PONG");
        let pings = times_during(&mut client, &many(command), ping);
        assert_eq!(client.reply().matches(' ').count(), MANY - 1);
        assert!(pings > 40, "{command}: {pings}");
    }
    assert_eq!(client.ask("BF.CARD f"), format!(":{}", MANY + 1));
}

/// Others may add items while one adds many, and the one who waits to create or delete a filter waits for a
/// part of them, not for all.
#[test]
fn a_large_change_lets_others_change_filters() {
    let dir = tempfile::tempdir().unwrap();
    let (server, mut client) = on_one_thread(dir.path());
    let mut other = server.connect();
    let change = || asks(&mut other, &[("BF.ADD g b", ":1"), ("CF.ADD new a", ":1"), ("DEL g new", ":2")]);
    let changes = times_during(&mut client, &many("BF.MADD"), change);
    assert_eq!(client.reply().matches(":1").count(), MANY);
    assert!(changes > 5, "{changes}");
}

/// It neither comes back with other parameters, nor keeps its name from others.
#[test]
fn a_filter_that_is_deleted_during_a_large_change_stays_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let (server, mut client) = on_one_thread(dir.path());
    let mut other = server.connect();
    for (deletion, is_there) in
        [("DEL f", false), ("FLUSHALL", false), ("PEXPIRE f 1", false), ("RENAME f g", true)]
    {
        asks(&mut client, &[("FLUSHALL", "+OK"), ("BF.RESERVE f 0.1 1000000 NONSCALING", "+OK")]);
        client.send(many("BF.MADD"));
        eventually("the first part is written", || other.ask("BF.CARD f") != ":0");
        other.ask(deletion);
        let reply = client.reply();
        // What has expired is deleted within half a second, which may be after the last part.
        if !deletion.starts_with("PEXPIRE") {
            assert_eq!(reply.ends_with(" -ERR not found]"), !is_there, "{deletion}: {reply:.50}");
        }
        assert_eq!(other.ask("EXISTS f"), ":0", "{deletion}");
        if is_there {
            assert_eq!(other.ask("BF.CARD g"), format!(":{MANY}"));
        }
        asks(&mut client, &[("CF.ADD f a", ":1")]);
    }
}

/// Also if that is where a part ends.
#[test]
fn a_large_change_ends_where_the_filter_is_full() {
    let dir = tempfile::tempdir().unwrap();
    let (_server, mut client) = on_one_thread(dir.path());
    for capacity in [4000, 4095, 4096, 8191] {
        let name = format!("f{capacity}");
        client.ask(&format!("BF.RESERVE {name} 0.1 {capacity} NONSCALING"));
        let items = (0..10_000).map(|n| n.to_string()).collect::<Vec<_>>().join(" ");
        let reply = client.ask(&format!("BF.MADD {name} {items}"));
        assert_eq!(reply.matches(":1 ").count(), capacity);
        assert!(reply.ends_with(":1 -ERR non scaling filter is full]"), "{capacity}");
        client.ask(&format!("CF.RESERVE c{name} {capacity} EXPANSION 0"));
        let reply = client.ask(&format!("CF.INSERT c{name} ITEMS {items}"));
        assert_eq!(reply.split(' ').count(), 10_000, "a cuckoo filter tells it of each item");
    }
}

/// The runtime serves nobody once all of its threads wait.
#[test]
fn clients_that_wait_to_delete_take_no_threads() {
    let dir = tempfile::tempdir().unwrap();
    let (server, mut client) = on_one_thread(dir.path());
    let mut waiting: Vec<Client> = (0..100).map(|_| server.connect()).collect();
    client.send(many("BF.MADD"));
    waiting.iter_mut().for_each(|client| client.send(request(&["DEL", "nothing"]).repeat(20)));
    let threads = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("Threads:")).unwrap();
        line.trim().parse::<usize>().unwrap()
    };
    for client in &mut waiting {
        (0..20).for_each(|_| assert_eq!(client.reply(), ":0"));
    }
    // Those that were started are kept for a while.
    let threads = threads();
    assert!(threads < 200, "{threads}");
}

/// A pattern of stars took seconds for long names.
#[test]
fn a_scan_ends_after_so_much_work_and_patterns_have_a_limit() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::of_filters(dir.path(), &[]);
    let mut client = server.connect();
    for n in 0..3 {
        let name = format!("{n}{}", "a".repeat(60_000));
        client.send(request(&["BF.ADD", &name, "x"]));
        assert_eq!(client.reply(), ":1");
    }
    asks(&mut client, &[("BF.ADD short x", ":1")]);
    let pattern = format!("*{}b", "a*".repeat(511));
    let (mut cursor, mut parts) = ("0".to_owned(), 0);
    loop {
        client.send(request(&["SCAN", &cursor, "MATCH", &pattern, "COUNT", "10000"]));
        let reply = client.reply();
        let (next, found) = reply[1..].split_once(' ').unwrap();
        assert_eq!(found, "[]]", "nothing matches");
        (cursor, parts) = (next.trim_matches('"').to_owned(), parts + 1);
        if cursor == "0" {
            break;
        }
    }
    assert_eq!(parts, 4);
    let long = "*".repeat(1025);
    for command in [&["KEYS", &long][..], &["SCAN", "0", "MATCH", &long], &["CONFIG", "GET", &long]] {
        client.send(request(command));
        assert_eq!(client.reply(), "-ERR the pattern is longer than 1024 bytes");
    }
    asks(&mut client, &[("KEYS s*t", "[\"short\"]")]);
}

/// More than half a thousand a second.
#[test]
fn filters_that_live_shortly_do_not_fill_the_memory() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::of_filters(dir.path(), &["--max-memory", "64"]);
    let mut client = server.connect();
    // Names may take 8 MiB: 27,000 filters.
    for n in 0..100 {
        let lives = (0..400).flat_map(|m| {
            let name = format!("f{n}-{m}");
            [request(&["BF.RESERVE", &name, "0.1", "10"]), request(&["PEXPIRE", &name, "1"])].concat()
        });
        client.send(lives.collect::<Vec<u8>>());
        (0..400).for_each(|_| assert_eq!((client.reply(), client.reply()), ("+OK".into(), ":1".into())));
        // What has expired is looked for twice a second: so many cannot come in between.
        thread::sleep(Duration::from_millis(20));
    }
    eventually("all are gone", || info(&mut client, "filters") == 0);
}

#[test]
fn what_is_watched_and_queued_counts_as_memory() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::of_filters(dir.path(), &[]);
    let (mut client, mut other) = (server.connect(), server.connect());
    let grown = |client: &mut Client, other: &mut Client, commands: Vec<u8>, count: usize| {
        let before = info(other, "client_bytes");
        client.send(commands);
        (0..count).for_each(|_| drop(client.reply()));
        info(other, "client_bytes") - before
    };
    let names: Vec<u8> = (0..1000).flat_map(|n| request(&["WATCH", &format!("name{n:056}")])).collect();
    let watched = grown(&mut client, &mut other, names, 1000);
    assert!((160_000..250_000).contains(&watched), "{watched}");
    let same = grown(&mut client, &mut other, request(&["WATCH", &format!("name{:056}", 1)]).repeat(50), 50);
    assert!(same < 1000, "{same}");
    client.send(request(&["WATCH", &"x".repeat(6000)]));
    assert_eq!(client.reply(), "-ERR too many names are watched");
    asks(&mut client, &[("UNWATCH", "+OK"), ("MULTI", "+OK")]);
    let pings = grown(&mut client, &mut other, request(&["PING"]).repeat(10_000), 10_000);
    assert!((360_000..1_000_000).contains(&pings), "{pings}: 36 bytes each, and room to grow");
}
