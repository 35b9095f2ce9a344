//! `sidebloom serve` on a network: users, passwords, Unix sockets, and sockets that a service manager passes.

use crate::server::{Server, asks, request};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn secret(path: &Path, text: &str) -> String {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
    path.to_str().unwrap().to_owned()
}

fn fails(dir: &Path, options: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sidebloom"));
    command.arg("serve").arg(dir.join("filters")).args(options).env_remove("SIDEBLOOM_GUARD_PASSWORD");
    let Output { status, stderr, stdout } = command.output().unwrap();
    assert_eq!((status.code(), stdout.as_slice()), (Some(2), &b""[..]));
    assert!(!dir.join("filters").exists(), "nothing is created");
    String::from_utf8(stderr).unwrap()
}

#[test]
fn users_may_do_what_their_rules_say() {
    let dir = tempfile::tempdir().unwrap();
    let users = secret(
        &dir.path().join("users"),
        "# two of them\nuser admin on >open +@all ~*\nuser reader on >secret +@read +@connection %R~songs:*\n\
         user writer on >secret +@all %W~drop:* ~mine:*\n",
    );
    let server = Server::of_filters(dir.path(), &["--users", &users]);
    let (mut admin, mut reader) = (server.connect(), server.connect());
    asks(&mut admin, &[("BF.ADD songs:1 a", "-NOAUTH Authentication required."), ("AUTH admin open", "+OK")]);
    asks(&mut admin, &[("BF.ADD songs:1 a", ":1"), ("BF.ADD other a", ":1"), ("ACL WHOAMI", "\"admin\"")]);
    asks(
        &mut reader,
        &[
            ("AUTH reader wrong", "-WRONGPASS invalid username-password pair or user is disabled."),
            ("AUTH reader secret", "+OK"),
            ("BF.EXISTS songs:1 a", ":1"),
            ("MEMORY USAGE other", "-NOPERM No permissions to access a key"),
            ("BF.EXISTS other a", "-NOPERM No permissions to access a key"),
            ("BF.ADD songs:1 b", "-NOPERM User reader has no permissions to run the 'bf.add' command"),
            ("FLUSHALL", "-NOPERM User reader has no permissions to run the 'flushall' command"),
            ("ACL LIST", "-NOPERM User reader has no permissions to run the 'acl' command"),
            ("MULTI", "-NOPERM User reader has no permissions to run the 'multi' command"),
            ("PING", "+PONG"),
            ("RESET", "+RESET"),
            ("BF.EXISTS songs:1 a", "-NOAUTH Authentication required."),
        ],
    );
    // Whoever may only write a filter cannot read it under another name.
    let mut writer = server.connect();
    asks(
        &mut writer,
        &[
            ("AUTH writer secret", "+OK"),
            ("BF.ADD drop:1 a", ":1"),
            ("RENAME drop:1 mine:1", "-NOPERM No permissions to access a key"),
            ("BF.ADD mine:1 a", ":1"),
            ("RENAMENX mine:1 drop:2", ":1"),
            ("RESET", "+RESET"),
        ],
    );
    assert!(!admin.ask("CLIENT LIST").contains("user=writer"));
    assert_eq!(admin.ask("ACL USERS"), "[\"admin\" \"reader\" \"writer\"]");
    let list = admin.ask("ACL LIST");
    assert!(list.contains("user reader on %R~songs:* -@all") && !list.contains("secret"), "{list}");
    assert!(admin.ask("ACL CAT dangerous").contains("\"flushall\""));
    let wrong = secret(&dir.path().join("wrong"), "user a on >x\nuser b on");
    let other = tempfile::tempdir().unwrap();
    assert!(
        fails(other.path(), &["--users", &wrong])
            .contains("wrong, line 2: the user b is on but has no password")
    );
}

#[test]
fn passwords_rotate_and_files_that_all_can_read_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let passwords = secret(&dir.path().join("passwords"), "old\nnew one\n");
    let server = Server::of_filters(dir.path(), &["--password-file", &passwords, "--listen", "0.0.0.0:0"]);
    for password in ["old", "new one"] {
        let mut client = server.connect();
        client.send(request(&["AUTH", password]));
        assert_eq!(client.reply(), "+OK");
    }
    std::fs::set_permissions(&passwords, std::fs::Permissions::from_mode(0o644)).unwrap();
    let other = tempfile::tempdir().unwrap();
    for option in ["--password-file", "--users"] {
        let error = fails(other.path(), &[option, &passwords]);
        assert!(error.contains("everybody can read it: chmod o-r"), "{error}");
    }
    let error = fails(other.path(), &["--listen", "0.0.0.0:0"]);
    assert!(error.contains("is reachable from other machines"), "{error}");
}

#[test]
fn a_unix_socket_serves_and_is_removed_at_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("socket");
    let start = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sidebloom"));
        command
            .arg("serve")
            .arg(dir.path().join("filters"))
            .args(["--no-listen", "--unix-socket"])
            .arg(&path);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, format!("listening on unix:{}\n", path.display()));
        child
    };
    let ask = |request: &[u8], reply: &[u8]| {
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.write_all(request).unwrap();
        let mut got = vec![0; reply.len()];
        stream.read_exact(&mut got).unwrap();
        assert_eq!(got, reply);
    };
    let mut first = start();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    ask(b"BF.ADD f a\r\nCLIENT GETNAME\r\n", b":1\r\n$-1\r\n");
    // The socket of a server that was killed is left over, and replaced.
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(path.exists());
    let mut second = start();
    ask(b"BF.EXISTS f a\r\n", b":1\r\n");
    let pid = rustix::process::Pid::from_raw(second.id() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(second.wait().unwrap().success());
    assert!(!path.exists());
    // What is no left-over socket stays.
    std::fs::write(&path, "mine").unwrap();
    let other = tempfile::tempdir().unwrap();
    let error = fails(other.path(), &["--no-listen", "--unix-socket", path.to_str().unwrap()]);
    assert!(error.contains("cannot listen on"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), b"mine");
    std::fs::remove_file(&path).unwrap();
    let _in_use = UnixListener::bind(&path).unwrap();
    let error = fails(other.path(), &["--no-listen", "--unix-socket", path.to_str().unwrap()]);
    assert!(error.contains("cannot listen on"), "{error}");
}

/// As systemd does: descriptors from 3 on, told by LISTEN_FDS, and a socket that is told "READY=1".
#[test]
fn sockets_of_a_service_manager_are_taken_over() {
    let dir = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let notify = std::os::unix::net::UnixDatagram::bind(dir.path().join("notify")).unwrap();
    notify.set_read_timeout(Some(std::time::Duration::from_secs(30))).unwrap();
    let fd = std::os::fd::AsRawFd::as_raw_fd(&listener);
    // The shell moves the descriptor, and has the process id that the server will have.
    let script = format!("exec {fd}<&{fd} 3<&{fd}; export LISTEN_PID=$$ LISTEN_FDS=1; exec \"$0\" \"$@\"");
    rustix::io::fcntl_setfd(&listener, rustix::io::FdFlags::empty()).unwrap();
    let mut child = Command::new("sh")
        .args(["-c", &script, env!("CARGO_BIN_EXE_sidebloom"), "serve"])
        .arg(dir.path().join("filters"))
        .env("NOTIFY_SOCKET", dir.path().join("notify"))
        .env_remove("SIDEBLOOM_GUARD_PASSWORD")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = [0; 100];
    let len = notify.recv(&mut told).unwrap();
    assert!(told[..len].starts_with(b"READY=1"));
    asks(&mut crate::server::Client::new(address), &[("BF.ADD f a", ":1")]);
    child.kill().unwrap();
    child.wait().unwrap();
}
