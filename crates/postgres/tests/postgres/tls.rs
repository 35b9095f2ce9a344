//! Connections with TLS, to servers with the tests' own certificates.

use crate::support::{Server, check_exact, fine, follow_once};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, PublicKeyData, SigningKey};
use sidebloom_postgres::postgres::Client;
use sidebloom_postgres::{FollowEvent, FollowOptions, PostgresSource};
use std::net::TcpListener;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;
use tempfile::TempDir;

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority(name: &str) -> Authority {
    let mut params = CertificateParams::new([]).unwrap();
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A certificate for a name and its key, as PEM.
fn issue(authority: &Authority, name: &str, common_name: &str) -> (String, String) {
    let mut params = CertificateParams::new([name.to_owned()]).unwrap();
    params.distinguished_name.push(rcgen::DnType::CommonName, common_name);
    let key = KeyPair::generate().unwrap();
    (params.signed_by(&key, authority).unwrap().pem(), key.serialize_pem())
}

/// A key that nobody uses.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn listening(port: u16) -> String {
    format!("-c listen_addresses=127.0.0.1 -c port={port}")
}

struct TlsServer {
    server: Server,
    port: u16,
    /// Client certificates: `ca.crt` trusts the server; `other.crt` and `impostor.crt` do not; `client.crt`
    /// and `client.key` are `carla`'s.
    files: TempDir,
}

/// The server's certificate is for the host `db.example`. `carla` needs a certificate, `sandra` a password.
fn tls_server() -> Option<&'static TlsServer> {
    static SHARED: OnceLock<Option<TlsServer>> = OnceLock::new();
    let start = || {
        let (ca, files, port) = (authority("ca"), tempfile::tempdir().unwrap(), free_port());
        let add = |name: &str, content: &str| std::fs::write(files.path().join(name), content).unwrap();
        let (certificate, key) = issue(&ca, "carla.example", "carla");
        [
            ("ca.crt", ca.pem()),
            ("other.crt", authority("other").pem()),
            ("impostor.crt", authority("ca").pem()),
            ("client.crt", certificate),
            ("client.key", key),
        ]
        .iter()
        .for_each(|(name, content)| add(name, content));
        add("strangers.crt", &issue(&authority("other"), "carla.example", "carla").0);
        let server = Server::start_with(
            &format!("{} -c ssl=on -c ssl_ca_file=root.crt", listening(port)),
            |server| {
                let (certificate, key) = issue(&ca, "db.example", "db");
                [("server.crt", certificate), ("server.key", key), ("root.crt", ca.pem())].iter().for_each(
                    |(name, content)| {
                        server.add(name, content);
                    },
                );
                let rules = "hostssl all carla all cert\nhost all sandra all scram-sha-256\nlocal all all trust\nhost all postgres all trust\n";
                server.add("pg_hba.conf", rules);
            },
        )?;
        server.stop_with_the_tests();
        let roles = "CREATE ROLE carla LOGIN; CREATE ROLE sandra LOGIN PASSWORD 'sesame'";
        sidebloom_postgres::connect(&format!("{} port={port}", server.url("postgres")))
            .unwrap()
            .batch_execute(roles)
            .unwrap();
        Some(TlsServer { server, port, files })
    };
    SHARED.get_or_init(start).as_ref()
}

impl TlsServer {
    fn file(&self, name: &str) -> String {
        self.files.path().join(name).display().to_string()
    }

    /// Connects through TCP; `host` resolves to this machine.
    fn url(&self, host: &str, parameters: &str) -> String {
        let files = self.files.path().display();
        let parameters = parameters.replace("FILES", &files.to_string());
        format!("host={host} hostaddr=127.0.0.1 port={} dbname=postgres {parameters}", self.port)
    }

    /// Connects without TLS.
    fn socket(&self) -> String {
        format!("{} port={}", self.server.url("postgres"), self.port)
    }

    /// Whether the session has TLS, or why there is none.
    fn connect(&self, host: &str, parameters: &str) -> Result<bool, String> {
        sidebloom_postgres::connect(&self.url(host, parameters))
            .map(has_tls)
            .map_err(|error| error.to_string())
    }
}

fn has_tls(mut db: Client) -> bool {
    db.query_one("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()", &[]).unwrap().get(0)
}

fn refused(outcome: Result<bool, String>, why: &str) {
    let error = outcome.unwrap_err();
    assert!(error.contains(why), "{error}");
}

#[test]
fn each_mode_checks_as_much_of_the_servers_certificate_as_libpq_does() {
    let Some(server) = tls_server() else { return };
    let connect = |host, parameters: &str| server.connect(host, &format!("user=postgres {parameters}"));
    let ca = "sslrootcert=FILES/ca.crt";
    assert_eq!(connect("any.example", ""), Ok(true), "prefer is the default, and the server has TLS");
    assert_eq!(connect("any.example", "sslmode=disable"), Ok(false));
    assert_eq!(connect("any.example", "sslmode=require"), Ok(true));
    assert_eq!(connect("any.example", &format!("sslmode=verify-ca {ca}")), Ok(true));
    assert_eq!(connect("db.example", &format!("sslmode=verify-full {ca}")), Ok(true));
    for mode in ["", "sslmode=require", "sslmode=verify-ca", "sslmode=verify-full"] {
        for other in ["other", "impostor"] {
            let wrong = format!("{mode} sslrootcert=FILES/{other}.crt");
            refused(connect("db.example", &wrong), "certificate is not trusted");
        }
    }
    for words in ["sslmode=verify-full", "sslrootcert=system"] {
        let error = connect("db.example", words).unwrap_err();
        assert!(
            error.contains("certificate is not trusted") || error.contains("no root certificates"),
            "{error}"
        );
    }
    let wrong_host = connect("any.example", &format!("sslmode=verify-full {ca}"));
    refused(wrong_host.clone(), "for another host name");
    refused(wrong_host, "any.example");
    refused(connect("127.0.0.1", &format!("sslmode=verify-full {ca}")), "for another host name");
    // The address alone, and the address of a URL.
    let by_address = format!("hostaddr=127.0.0.1 port={} user=postgres sslmode=", server.port);
    assert!(has_tls(sidebloom_postgres::connect(&format!("{by_address}require")).unwrap()));
    let url = format!(
        "postgres://postgres@127.0.0.1:{}/postgres?sslmode=verify-ca&sslrootcert={}",
        server.port,
        server.file("ca.crt").replace('/', "%2F")
    );
    assert!(has_tls(sidebloom_postgres::connect(&url).unwrap()));
}

#[test]
fn bad_parameters_and_files_are_named() {
    let Some(server) = tls_server() else { return };
    let connect = |parameters: &str| server.connect("db.example", &format!("user=postgres {parameters}"));
    refused(connect("sslmode=allow"), "invalid sslmode \"allow\"");
    refused(connect("sslmode=verify-ca"), "sslrootcert");
    refused(connect("sslrootcert=FILES/missing.crt"), "missing.crt");
    refused(connect("sslrootcert=FILES/client.key"), "client.key: it has no certificate");
    refused(connect("sslcert=FILES/client.crt sslkey=FILES/ca.crt"), "ca.crt: it has no private key");
    refused(connect("sslcert=FILES/ca.crt sslkey=FILES/client.key"), "ca.crt");
    refused(connect("sslcert=FILES/client.crt"), "sslkey");
    refused(server.connect("'a host'", "user=postgres"), "\"a host\" is not a host name");
}

/// Clients log in with certificates, and with passwords that are bound to the session.
#[test]
fn clients_log_in_with_certificates_and_session_bound_passwords() {
    let Some(server) = tls_server() else { return };
    let certificate = "user=carla sslcert=FILES/client.crt sslkey=FILES/client.key";
    assert_eq!(server.connect("db.example", certificate), Ok(true));
    refused(server.connect("db.example", "user=carla"), "certificate");
    let of_another = "user=carla sslcert=FILES/strangers.crt sslkey=FILES/client.key";
    refused(server.connect("db.example", of_another), "strangers.crt");
    let bound = "user=sandra password=sesame channel_binding=require";
    assert_eq!(server.connect("db.example", bound), Ok(true));
    refused(server.connect("db.example", &format!("{bound} sslmode=disable")), "channel binding");
}

/// A guard is built and follows through TLS, and on reconnecting trusts no other server.
#[test]
fn a_guard_follows_through_tls_and_trusts_no_other_server() {
    let Some(server) = tls_server() else { return };
    let url = server.url("db.example", "user=postgres sslmode=verify-full sslrootcert=FILES/followed.crt");
    let root = server.files.path().join("followed.crt");
    let trust = |authority: &str| _ = std::fs::copy(server.file(authority), &root).unwrap();
    trust("ca.crt");
    let mut db = sidebloom_postgres::connect(&server.socket()).unwrap();
    db.batch_execute("CREATE TABLE songs (title text); INSERT INTO songs VALUES ('Zombie')").unwrap();
    let dir = tempfile::tempdir().unwrap();
    let mut source = PostgresSource::connect(&url, "songs", "title").unwrap();
    let guard = fine().build_from(dir.path().join("guard"), &mut source).unwrap();
    source.install_trigger().unwrap();
    follow_once(&mut source, &guard).unwrap();
    let others = "FROM pg_stat_activity WHERE usename = 'postgres' AND pid <> pg_backend_pid()
                  AND datname = 'postgres' AND query LIKE '%sidebloom%'";
    let encrypted = format!(
        "SELECT count(*), count(*) FILTER (WHERE ssl) FROM pg_stat_ssl WHERE pid IN (SELECT pid {others})"
    );
    let (mut step, mut lost) = (0, 0);
    let options = FollowOptions::new().poll(Duration::from_millis(5)).retry_max(Duration::from_millis(100));
    source
        .follow(&guard, options, &mut |event| {
            match (step, event) {
                (0, FollowEvent::CaughtUp) => {
                    let row = db.query_one(&encrypted, &[]).unwrap();
                    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (1, 1));
                    trust("other.crt");
                    db.batch_execute(&format!(
                        "SELECT pg_terminate_backend(pid) {others}; INSERT INTO songs VALUES ('Freebird')"
                    ))
                    .unwrap();
                    step = 1;
                }
                (1, FollowEvent::Disconnected { error, .. }) => {
                    lost += 1;
                    if error.to_string().contains("certificate is not trusted") {
                        assert!(lost > 1, "first the connection is lost");
                        trust("ca.crt");
                        step = 2;
                    }
                    assert!(lost < 100, "{error}");
                }
                (2, FollowEvent::CaughtUp) => return ControlFlow::Break(()),
                _ => {}
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    check_exact(&guard, &mut db);
    assert!(PostgresSource::remove_triggers_at(&url, "songs", "title").unwrap());
}

#[test]
fn a_server_without_tls_and_one_with_a_certificate_of_version_1() {
    let port = free_port();
    let Some(mut server) = Server::start_with(&listening(port), |_| ()) else { return };
    let connect = |parameters: &str| {
        let url = format!("host=127.0.0.1 port={port} user=postgres {parameters}");
        sidebloom_postgres::connect(&url).map(has_tls).map_err(|error| error.to_string())
    };
    let root = server.add("root.crt", &authority("ca").pem());
    let verified = format!("sslmode=verify-ca sslrootcert={}", root.display());
    assert_eq!((connect(""), connect("sslmode=disable")), (Ok(false), Ok(false)));
    for demanding in ["sslmode=require", &verified] {
        refused(connect(demanding), "server does not support TLS");
    }
    let socket = format!("{} port={port} sslmode=require", server.url("postgres"));
    assert!(!has_tls(sidebloom_postgres::connect(&socket).unwrap()), "no mode changes Unix sockets");

    server.stop();
    let key = KeyPair::generate().unwrap();
    server.add("server.crt", &version_1(&key));
    server.add("server.key", &key.serialize_pem());
    server.options = format!("{} -c ssl=on", listening(port));
    server.run();
    assert_eq!((connect(""), connect("sslmode=require")), (Ok(true), Ok(true)));
    refused(connect(&verified), "certificate is not trusted");
    assert_openssl_agrees(&server.add("server.crt", &version_1(&key)));
}

/// The certificate is readable by other implementations.
fn assert_openssl_agrees(certificate: &Path) {
    let Ok(read) = std::process::Command::new("openssl")
        .args(["x509", "-noout", "-text", "-in"])
        .arg(certificate)
        .output()
    else {
        return;
    };
    assert!(String::from_utf8_lossy(&read.stdout).contains("Version: 1"), "{read:?}");
}

/// A certificate without extensions, as OpenSSL made them by default, signed with its own key.
fn version_1(key: &KeyPair) -> String {
    let element = |tag: u8, parts: &[&[u8]]| {
        let content = parts.concat();
        let length = u16::try_from(content.len()).unwrap().to_be_bytes();
        [&[tag, 0x82], &length[..], &content].concat()
    };
    let sequence = |parts: &[&[u8]]| element(0x30, parts);
    let algorithm = sequence(&[b"\x06\x08\x2a\x86\x48\xce\x3d\x04\x03\x02"]);
    let name = sequence(&[&element(0x31, &[&sequence(&[b"\x06\x03\x55\x04\x03\x0c\x02db"])])]);
    let validity = sequence(&[b"\x17\x0d200101000000Z\x17\x0d490101000000Z"]);
    let public_key = key.subject_public_key_info();
    let signed = sequence(&[b"\x02\x01\x07", &algorithm, &name, &validity, &name, &public_key]);
    let signature = element(0x03, &[b"\0", &key.sign(&signed).unwrap()]);
    pem("CERTIFICATE", &sequence(&[&signed, &algorithm, &signature]))
}

fn pem(label: &str, der: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in der.chunks(3) {
        let bits =
            three.iter().enumerate().fold(0, |bits, (at, byte)| bits | u32::from(*byte) << (16 - 8 * at));
        let digit = |at: usize| char::from(DIGITS[(bits >> (18 - 6 * at)) as usize & 63]);
        text.extend((0..4).map(|at| if at <= three.len() { digit(at) } else { '=' }));
    }
    let lines: Vec<&str> = (0..text.len()).step_by(64).map(|at| &text[at..text.len().min(at + 64)]).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}
