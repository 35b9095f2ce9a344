//! `sidebloom guard serve`: every command, both versions of the protocol, passwords, durability.

use crate::server::{Client, Server, command, eventually, info, request};
use std::os::unix::fs::PermissionsExt;
use std::process::Output;
use std::thread;

fn fails(dir: &std::path::Path, options: &[&str]) -> String {
    let Output { status, stderr, stdout } = command(dir, options).output().unwrap();
    assert_eq!((status.code(), stdout.as_slice()), (Some(2), &b""[..]));
    String::from_utf8(stderr).unwrap()
}

#[test]
fn every_filter_command_replies_as_redis_bloom_does() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &[]);
    let mut client = server.connect();
    for (ask, reply) in [
        ("BF.EXISTS songs a", ":0"),
        ("BF.ADD songs a", ":1"),
        ("BF.ADD songs a", ":0"),
        ("bf.exists songs a", ":1"),
        ("BF.MADD songs a b b c", "[:0 :1 :0 :1]"),
        ("BF.MEXISTS songs a x b", "[:1 :0 :1]"),
        ("BF.CARD songs", ":3"),
        ("CF.COUNT songs a", ":1"),
        ("CF.ADD songs a", ":1"),
        ("CF.COUNT songs a", ":2"),
        ("CF.ADDNX songs a", ":0"),
        ("CF.ADDNX songs d", ":1"),
        ("CF.DEL songs a", ":1"),
        ("CF.EXISTS songs a", ":1"),
        ("CF.DEL songs a", ":1"),
        ("CF.DEL songs a", ":0"),
        ("CF.EXISTS songs a", ":0"),
        ("CF.MEXISTS songs a d", "[:0 :1]"),
        ("CF.COUNT songs a", ":0"),
        ("BF.CARD songs", ":3"),
        ("BF.INFO songs CAPACITY", "[:3]"),
        ("BF.INFO songs items", "[:3]"),
        ("BF.INFO songs FILTERS", "[:1]"),
        ("BF.INFO songs EXPANSION", "[nil]"),
        ("BF.INFO songs X", "-ERR Invalid information value"),
        ("BF.RESERVE songs 0.01 1000", "-ERR item exists"),
        ("CF.RESERVE songs 1000", "-ERR item exists"),
        ("BF.RESERVE other 0.01 1000", "-ERR could not create filter: this server only has 'songs'"),
        ("BF.EXISTS other a", "-ERR not found"),
        ("BF.ADD other a", "-ERR not found"),
        ("BF.INFO other", "-ERR not found"),
        ("BF.ADD songs", "-ERR wrong number of arguments for 'bf.add' command"),
        ("BF.EXISTS songs a b", "-ERR wrong number of arguments for 'bf.exists' command"),
        ("BF.INFO songs ITEMS x", "-ERR wrong number of arguments for 'bf.info' command"),
    ] {
        assert_eq!(client.ask(ask), reply, "{ask}");
    }
    let info = client.ask("BF.INFO songs");
    assert!(info.starts_with("[+Capacity :3 +Size :") && info.ends_with(" +Expansion rate nil]"), "{info}");
    let info = client.ask("CF.INFO songs");
    assert!(
        info.contains("+Number of items inserted :3 ") && info.contains("+Number of buckets nil"),
        "{info}"
    );
}

#[test]
fn version_3_of_the_protocol_has_booleans_and_maps() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &["--name", "titles"]);
    let mut client = server.connect();
    let hello = client.ask("HELLO 3 SETNAME tester");
    assert!(hello.starts_with("{\"server\" \"sidebloom\"") && hello.contains("\"proto\" :3"), "{hello}");
    for (ask, reply) in [
        ("BF.ADD titles a", "#t"),
        ("BF.ADD titles a", "#f"),
        ("BF.MADD titles a b", "[#f #t]"),
        ("BF.MEXISTS titles a x", "[#t #f]"),
        ("CF.ADD titles a", "#t"),
        ("CF.COUNT titles a", ":2"),
        ("CF.DEL titles x", "#f"),
        ("BF.INFO titles ITEMS", "{+Number of items inserted :2}"),
        ("CLIENT GETNAME", "\"tester\""),
        ("CLIENT NO-EVICT ON", "+OK"),
    ] {
        assert_eq!(client.ask(ask), reply, "{ask}");
    }
    let info = client.ask("BF.INFO titles");
    assert!(info.starts_with("{+Capacity :2 ") && info.ends_with("+Expansion rate nil}"), "{info}");
    assert!(client.ask("INFO server").starts_with("=txt:# Server\r\nredis_version:"));
    let hello = client.ask("HELLO 2");
    assert!(hello.starts_with("[\"server\"") && hello.contains("\"proto\" :2"), "{hello}");
    assert_eq!(client.ask("BF.EXISTS titles a"), ":1");
    assert_eq!(client.ask("HELLO 4"), "-NOPROTO unsupported protocol version");
    assert_eq!(client.ask("HELLO x"), "-ERR Protocol version is not an integer or out of range");
    assert_eq!(client.ask("HELLO 2 NONSENSE"), "-ERR Syntax error in HELLO option 'NONSENSE'");
}

#[test]
fn what_client_libraries_send_at_connection_is_understood() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &[]);
    let mut client = server.connect();
    for (ask, reply) in [
        ("PING", "+PONG"),
        ("PING hello", "\"hello\""),
        ("PING a b", "-ERR wrong number of arguments for 'ping' command"),
        ("ECHO hello", "\"hello\""),
        ("SELECT 0", "+OK"),
        ("SELECT 1", "-ERR DB index is out of range"),
        ("SELECT x", "-ERR value is not an integer or out of range"),
        ("CLIENT GETNAME", "nil"),
        ("CLIENT SETNAME tester", "+OK"),
        ("CLIENT GETNAME", "\"tester\""),
        ("CLIENT SETINFO LIB-NAME redis-py", "+OK"),
        ("CLIENT ID", ":1"),
        ("CLIENT NO-TOUCH ON", "+OK"),
        ("CLIENT NONSENSE", "-ERR unknown subcommand 'NONSENSE'."),
        ("CONFIG GET save", "[\"save\" \"\"]"),
        ("CONFIG GET appendfsync nonsense", "[\"appendfsync\" \"always\"]"),
        (
            "CONFIG SET save x",
            "-ERR CONFIG SET failed (possibly related to argument 'save') - can't set immutable config",
        ),
        ("DBSIZE", ":1"),
        ("RESET", "+RESET"),
        ("CLIENT GETNAME", "nil"),
        ("NOPE a b", "-ERR unknown command 'NOPE', with args beginning with: 'a' 'b' "),
        ("COMMAND INFO bf.add nope", "[[\"bf.add\" :-3 [+write +fast] :1 :1 :1 [] [] [] []] nil]"),
    ] {
        assert_eq!(client.ask(ask), reply, "{ask}");
    }
    let count: usize = client.ask("COMMAND COUNT")[1..].parse().unwrap();
    assert_eq!(client.ask("COMMAND LIST").split(' ').count(), count);
    assert_eq!(client.ask("COMMAND").matches("[\"").count(), count);
    assert!(client.ask("COMMAND DOCS bf.add").starts_with("[\"bf.add\" [\"summary\" \"Adds"));
    assert_eq!(info(&mut client, "connected_clients"), 1);
    assert_eq!(info(&mut client, "tcp_port"), u64::from(server.address.port()));
    assert_eq!(client.ask("QUIT"), "+OK");
    assert!(client.is_closed());
}

#[test]
fn a_person_may_type_requests_as_lines() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &[]);
    let mut client = server.connect();
    client.send("BF.ADD songs \"Gracias a la vida\"\r\n\r\nbf.exists songs 'Gracias a la vida'\nPING\r\n");
    assert_eq!([client.reply(), client.reply(), client.reply()], [":1", ":1", "+PONG"]);
    client.send(request(&["BF.EXISTS", "songs", "Gracias a la vida"]));
    assert_eq!(client.reply(), ":1");
}

#[test]
fn pipelined_commands_are_answered_in_their_order() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &[]);
    let mut client = server.connect();
    let (mut bytes, mut replies) = (Vec::new(), Vec::new());
    let mut add = |args: &[&str], reply: &str| {
        bytes.extend(request(args));
        replies.push(reply.to_owned());
    };
    for n in 0..2000 {
        let (key, other) = (format!("key {n}"), format!("other {n}"));
        add(&["BF.ADD", "songs", &key], ":1");
        if n % 100 == 0 {
            add(&["BF.EXISTS", "songs", &key], ":1");
            add(&["NOPE"], "-ERR unknown command 'NOPE', with args beginning with: ");
            add(&["BF.MADD", "songs", &key, &other], "[:0 :1]");
            add(&["CF.ADD", "songs", &key], ":1");
            add(&["CF.COUNT", "songs", &key], ":2");
            add(&["CF.DEL", "songs", &key], ":1");
            add(&["ECHO", &key], &format!("\"{key}\""));
            add(&["BF.MEXISTS", "songs", &key, &other], "[:1 :1]");
        }
    }
    let mut sender = Client { stream: std::io::BufReader::new(client.stream.get_ref().try_clone().unwrap()) };
    let sending = thread::spawn(move || sender.send(bytes));
    replies.iter().for_each(|reply| assert_eq!(client.reply(), *reply));
    sending.join().unwrap();
    assert_eq!(client.ask("BF.CARD songs"), ":2020");
}

#[test]
fn of_many_clients_that_add_one_key_at_once_one_is_told_that_it_is_new() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &["--threads", "4"]);
    let add = |_| {
        let mut client = server.connect();
        thread::spawn(move || {
            let added = |n| usize::from(client.ask(&format!("BF.ADD songs key{n}")) == ":1");
            (0..50).map(added).collect::<Vec<_>>()
        })
    };
    let threads: Vec<_> = (0..8).map(add).collect();
    let told: Vec<Vec<usize>> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    let mut client = server.connect();
    for n in 0..50 {
        assert_eq!(told.iter().map(|told| told[n]).sum::<usize>(), 1);
        assert_eq!(client.ask(&format!("CF.COUNT songs key{n}")), ":1");
        assert_eq!(client.ask(&format!("CF.DEL songs key{n}")), ":1");
        assert_eq!(client.ask(&format!("BF.EXISTS songs key{n}")), ":0");
    }
}

#[test]
fn a_password_is_asked_for_before_anything_else() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("password");
    std::fs::write(&file, "open sesame\r\n").unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    let server = Server::start(dir.path(), &["--password-file", file.to_str().unwrap()]);
    let mut client = server.connect();
    for (args, reply) in [
        (&["PING"][..], "-NOAUTH Authentication required."),
        (&["BF.ADD", "songs", "a"], "-NOAUTH Authentication required."),
        (&["AUTH", "open"], "-WRONGPASS invalid username-password pair or user is disabled."),
        (&["AUTH", "admin", "open sesame"], "-WRONGPASS invalid username-password pair or user is disabled."),
        (&["AUTH", "a", "b", "c"], "-ERR syntax error"),
        (
            &["HELLO", "3", "AUTH", "default", "no"],
            "-WRONGPASS invalid username-password pair or user is disabled.",
        ),
        (&["BF.EXISTS", "songs", "a"], "-NOAUTH Authentication required."),
        (&["AUTH", "open sesame"], "+OK"),
        (&["BF.EXISTS", "songs", "a"], ":0"),
        (&["RESET"], "+RESET"),
        (&["PING"], "-NOAUTH Authentication required."),
        (&["AUTH", "default", "open sesame"], "+OK"),
        (&["PING"], "+PONG"),
    ] {
        client.send(request(args));
        assert_eq!(client.reply(), reply, "{args:?}");
    }
    let mut other = server.connect();
    assert!(other.ask("HELLO 3").starts_with("-NOAUTH HELLO must be called"));
    other.send(request(&["HELLO", "3", "AUTH", "default", "open sesame"]));
    assert!(other.reply().starts_with('{'));
    assert_eq!(other.ask("BF.ADD songs a"), "#t");
    let mut large = server.connect();
    large.send("*1\r\n$20000\r\n");
    assert_eq!(large.reply(), "-ERR Protocol error: unauthenticated bulk length: at most 16384 bytes");
    assert!(large.is_closed());
}

#[test]
fn the_password_may_come_from_the_environment_and_lets_it_listen_anywhere() {
    let dir = tempfile::tempdir().unwrap();
    let guard = dir.path().join("songs.guard");
    let mut command = command(&guard, &["--create", "--listen", "0.0.0.0:0"]);
    command.env("SIDEBLOOM_GUARD_PASSWORD", "secret");
    let server = Server::spawn(command);
    let mut client = Client::new(([127, 0, 0, 1], server.address.port()).into());
    assert_eq!(client.ask("PING"), "-NOAUTH Authentication required.");
    assert_eq!(client.ask("AUTH secret"), "+OK");
}

#[test]
fn what_cannot_be_served_is_refused_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let guard = dir.path().join("songs.guard");
    let open = fails(&guard, &["--create", "--listen", "0.0.0.0:0"]);
    assert!(open.contains("0.0.0.0") && open.contains("--password-file"), "{open}");
    assert!(!guard.exists(), "refused before anything is made");
    assert!(fails(&guard, &["--listen", "nonsense"]).contains("ADDRESS:PORT"));
    let missing = fails(&guard, &["--listen", "127.0.0.1:0"]);
    assert!(missing.contains("songs.guard"), "{missing}");
    let empty = dir.path().join("empty");
    std::fs::write(&empty, "\n").unwrap();
    std::fs::set_permissions(&empty, PermissionsExt::from_mode(0o600)).unwrap();
    let options = ["--create", "--listen", "127.0.0.1:0", "--password-file", empty.to_str().unwrap()];
    assert!(fails(&guard, &options).contains("the password is empty"));
    let server = Server::start(dir.path(), &[]);
    assert!(fails(&guard, &["--listen", "127.0.0.1:0"]).contains("already open"), "locked");
    let taken = fails(&dir.path().join("other"), &["--create", "--listen", &server.address.to_string()]);
    assert!(taken.contains("cannot listen on") && taken.contains("--listen"), "{taken}");
}

#[test]
fn a_busy_port_leaves_no_guard_behind() {
    let dir = tempfile::tempdir().unwrap();
    let busy = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = busy.local_addr().unwrap().to_string();
    let guard = dir.path().join("new.guard");
    let said = fails(&guard, &["--create", "--listen", &address]);
    assert!(said.contains("cannot listen on") && said.contains(&address), "{said}");
    assert!(!guard.exists());
}

#[test]
fn what_was_answered_is_there_after_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    for round in 0..5 {
        let server = Server::start(dir.path(), &[]);
        let mut client = server.connect();
        for earlier in 0..round * 40 {
            assert_eq!(client.ask(&format!("CF.COUNT songs key{earlier}")), ":1");
        }
        for n in round * 40..(round + 1) * 40 {
            assert_eq!(client.ask(&format!("BF.ADD songs key{n}")), ":1");
        }
        client.send(request(&["BF.ADD", "songs", "in flight"]));
        server.kill();
    }
}

/// A write that the disk refuses gets an error reply, and every acknowledged write stays.
#[test]
#[cfg(target_os = "linux")]
fn i5_a_refused_write_is_an_error_reply_and_what_was_answered_stays() {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    let dir = tempfile::tempdir().unwrap();
    let plain = command(
        &dir.path().join("songs.guard"),
        &["--create", "--listen", "127.0.0.1:0", "--durability", "os"],
    );
    // A write above the file size limit fails, because its signal is ignored.
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]).arg(plain.get_program()).args(plain.get_args());
    shell.stderr(std::fs::File::create("/dev/full").unwrap()); // A log on a full disk stops nothing.
    let server = Server::spawn(shell);
    let limit = Rlimit { current: Some(64 << 10), maximum: None };
    prlimit(Pid::from_raw(server.pid() as i32), Resource::Fsize, limit).unwrap();

    let mut client = server.connect();
    let mut answered = 0;
    let refused = loop {
        let reply = client.ask(&format!("BF.ADD songs key{answered}"));
        if reply != ":1" {
            break reply;
        }
        answered += 1;
        assert!(answered < 100_000, "no write has failed");
    };
    assert!(answered > 0 && refused.starts_with('-'), "{answered} {refused}");
    let again = client.ask("BF.ADD songs more");
    assert!(again.starts_with('-') && again.contains("read-only"), "{again}");
    let all_are_there =
        |client: &mut Client| (0..answered).all(|n| client.ask(&format!("BF.EXISTS songs key{n}")) == ":1");
    assert!(all_are_there(&mut client), "it goes on answering");
    drop(client);
    server.kill();
    let server = Server::start(dir.path(), &[]);
    let mut client = server.connect();
    assert!(all_are_there(&mut client), "and after it was opened again");
    assert_eq!(client.ask("BF.ADD songs more"), ":1");
}

#[test]
fn it_ends_on_a_signal_with_everything_answered_on_disk() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &["--durability", "os"]);
    let mut idle = server.connect();
    assert_eq!(idle.ask("PING"), "+PONG");
    let mut client = server.connect();
    let adds: Vec<u8> = (0..500).flat_map(|n| request(&["BF.ADD", "songs", &format!("key{n}")])).collect();
    client.send(adds);
    assert_eq!(client.reply(), ":1"); // It finishes what it has received.
    server.signal();
    let answered =
        1 + std::iter::from_fn(|| client.try_reply()).inspect(|reply| assert_eq!(reply, ":1")).count();
    assert!(idle.is_closed());
    let status = server.stop();
    assert_eq!(status.code(), Some(0));
    let server = Server::start(dir.path(), &[]);
    let mut client = server.connect();
    let card: usize = client.ask("BF.CARD songs")[1..].parse().unwrap();
    assert!(card >= answered, "{card} of {answered}");
    (0..answered).for_each(|n| assert_eq!(client.ask(&format!("BF.EXISTS songs key{n}")), ":1"));
}

#[test]
fn a_guard_that_folds_case_refuses_what_it_cannot_fold() {
    use sidebloom::guard::{Canonical, GuardOptions};
    let dir = tempfile::tempdir().unwrap();
    let options = GuardOptions::new().canonical(Canonical::EXACT.fold_case());
    drop(options.build(dir.path().join("songs.guard"), ["Sinnerman"]).unwrap());
    let server = Server::start(dir.path(), &[]);
    let mut client = server.connect();
    assert_eq!(client.ask("BF.EXISTS songs SINNERMAN"), ":1");
    assert_eq!(client.ask("BF.ADD songs sinnerman"), ":0");
    for command in ["BF.ADD", "CF.COUNT"] {
        client.send(request(&[command.as_bytes(), b"songs", b"caf\xe9"]));
        let error = client.reply();
        assert!(error.starts_with("-ERR ") && error.contains("not UTF-8"), "{error}");
    }
    client.send(request(&[&b"BF.EXISTS"[..], b"songs", b"caf\xe9"]));
    assert_eq!(client.reply(), ":1", "perhaps: the database has the last word");
    eventually("counted", || info(&mut client, "guard_keys") == 1);
}
