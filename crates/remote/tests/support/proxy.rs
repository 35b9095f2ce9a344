//! An HTTP/1.1 proxy in front of an object store: it counts requests, and makes some of them fail.

use rustix::net::sockopt::set_socket_linger;
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Error, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What happens to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The server does not see it, and the client gets this status and this S3 error code.
    Status(u16, &'static str),
    /// The server sees it this much later, after the client has given up.
    Late(Duration),
    /// The client gets half of the body, and the connection ends.
    Short,
    /// The server does not see it, and the connection is reset.
    Reset,
    /// The server executes it, and the connection is reset before the client learns of it.
    Unanswered,
}

/// Which requests fail, and how.
#[derive(Debug, Clone)]
pub struct Rule {
    method: &'static str,
    kind: &'static str,
    fault: Fault,
    after: usize,
    times: usize,
}

impl Rule {
    /// All requests of a method ("" is any) for a kind of object ("" is any).
    pub fn new(method: &'static str, kind: &'static str, fault: Fault) -> Rule {
        Rule { method, kind, fault, after: 0, times: usize::MAX }
    }

    /// Only the first ones of them.
    pub fn times(mut self, times: usize) -> Rule {
        self.times = times;
        self
    }

    /// Only after this many of them.
    pub fn after(mut self, requests: usize) -> Rule {
        self.after = requests;
        self
    }

    fn hits(&mut self, request: &Request) -> bool {
        let matches = |rule: &str, value: &str| rule.is_empty() || rule == value;
        if !matches(self.method, &request.method) || !matches(self.kind, &request.kind) || self.times == 0 {
            return false;
        }
        if self.after > 0 {
            self.after -= 1;
            return false;
        }
        self.times -= 1;
        true
    }
}

/// A request that a client sent, whether the server saw it or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub method: String,
    /// The first part of the object's name; "list" for a listing, "delete" for a bulk deletion.
    pub kind: String,
    /// The object's name below the base.
    pub name: String,
    /// Whether it asks for a part of an object.
    pub ranged: bool,
    /// Whether it creates the object only if there is none.
    pub conditional: bool,
    /// Status of the answer; 0 if there was none.
    pub status: u16,
    pub fault: Option<Fault>,
    /// Bytes of the bodies of the request and of the answer.
    pub sent: usize,
    pub received: usize,
}

impl Request {
    /// For example "GET segment ranged" or "PUT gen 412".
    pub fn label(&self) -> String {
        let mut label = format!("{} {}", self.method, self.kind);
        if self.ranged {
            label += " ranged";
        }
        match (self.fault, self.status) {
            (Some(Fault::Status(..)) | None, 200..=299) => {}
            (Some(Fault::Status(..)) | None, status) => label += &format!(" {status}"),
            (Some(Fault::Late(_)), _) => label += " late",
            (Some(Fault::Short), _) => label += " short",
            (Some(Fault::Reset), _) => label += " reset",
            (Some(Fault::Unanswered), _) => label += " unanswered",
        }
        label
    }
}

/// The number of requests of each kind.
pub type Tally = BTreeMap<String, usize>;

/// A tally to compare with.
pub fn tally<const N: usize>(counts: [(&str, usize); N]) -> Tally {
    counts.into_iter().filter(|(_, n)| *n > 0).map(|(label, n)| (label.to_owned(), n)).collect()
}

/// Counts requests.
pub fn count(requests: &[Request]) -> Tally {
    let mut tally = Tally::new();
    requests.iter().for_each(|request| *tally.entry(request.label()).or_default() += 1);
    tally
}

/// Its threads end with the process.
pub struct Proxy {
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    server: SocketAddr,
    /// The path of the bucket, and of the prefix in it.
    bucket: String,
    base: String,
    rules: Mutex<Vec<Rule>>,
    requests: Mutex<Vec<Request>>,
    /// moto checks for the object and stores it in two steps; S3 does so atomically.
    conditional: Mutex<()>,
}

impl Proxy {
    /// In front of `server`, for the objects below `prefix` in `bucket`.
    pub fn start(server: SocketAddr, bucket: &str, prefix: &str) -> Proxy {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let bucket = format!("/{bucket}");
        let base = if prefix.is_empty() { format!("{bucket}/") } else { format!("{bucket}/{prefix}/") };
        let (rules, requests, conditional) = Default::default();
        let shared = Arc::new(Shared { server, bucket, base, rules, requests, conditional });
        let serve = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming() {
                let (client, shared) = (client.unwrap(), Arc::clone(&serve));
                thread::spawn(move || {
                    // An error means that a client has gone away.
                    let _ = shared.serve(&client);
                });
            }
        });
        Proxy { address, shared }
    }

    /// Adds a rule. If several match a request, the oldest one decides.
    pub fn inject(&self, rule: Rule) {
        self.shared.rules.lock().unwrap().push(rule);
    }

    /// Removes all rules.
    pub fn heal(&self) {
        self.shared.rules.lock().unwrap().clear();
    }

    /// The requests since the last call.
    pub fn take(&self) -> Vec<Request> {
        std::mem::take(&mut self.shared.requests.lock().unwrap())
    }

    /// The requests since the last call, counted.
    pub fn take_tally(&self) -> Tally {
        count(&self.take())
    }
}

/// The first line and the headers of a message, and its body.
struct Message {
    first: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Message {
    /// `None` at the end of the connection. A body without a length extends to the end if `to_end`.
    fn read(from: &mut impl BufRead, to_end: bool) -> io::Result<Option<Message>> {
        let mut message = Message { first: String::new(), headers: Vec::new(), body: Vec::new() };
        if from.read_line(&mut message.first)? == 0 {
            return Ok(None);
        }
        loop {
            let mut line = String::new();
            from.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            message.headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        assert!(message.header("transfer-encoding").is_none(), "the proxy knows lengths only");
        if to_end {
            from.read_to_end(&mut message.body)?;
        } else if let Some(length) = message.header("content-length") {
            message.body.resize(length.parse().map_err(Error::other)?, 0);
            from.read_exact(&mut message.body)?;
        }
        Ok(Some(message))
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }

    /// Its head with other values for some headers.
    fn head(&self, first: &str, replaced: &[(&str, String)]) -> String {
        let mut head = format!("{first}\r\n");
        let kept = self.headers.iter().map(|(name, value)| (name.as_str(), value));
        let kept = kept.filter(|(name, _)| replaced.iter().all(|(other, _)| other != name));
        let replaced =
            replaced.iter().map(|(name, value)| (*name, value)).filter(|(_, value)| !value.is_empty());
        kept.chain(replaced).for_each(|(name, value)| head += &format!("{name}: {value}\r\n"));
        head + "\r\n"
    }
}

impl Shared {
    /// Serves the requests of a connection.
    fn serve(&self, client: &TcpStream) -> io::Result<()> {
        let mut from = BufReader::new(client);
        while let Some(message) = Message::read(&mut from, false)? {
            let mut request = self.understand(&message);
            request.fault = self
                .rules
                .lock()
                .unwrap()
                .iter_mut()
                .find_map(|rule| rule.hits(&request).then_some(rule.fault));
            let answer = self.answer(&message, &request)?;
            if let Some(answer) = &answer {
                request.status =
                    answer.first.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
                request.received = answer.body.len();
            }
            let (is_head, fault) = (request.method == "HEAD", request.fault);
            self.requests.lock().unwrap().push(request);
            let Some(answer) = answer.filter(|_| fault != Some(Fault::Unanswered)) else {
                return Ok(set_socket_linger(client, Some(Duration::ZERO))?);
            };
            let length = match answer.header("content-length") {
                Some(length) if is_head => length.to_owned(),
                _ => answer.body.len().to_string(),
            };
            let mut to = client;
            let first = answer.first.trim_end().replace("HTTP/1.0", "HTTP/1.1");
            to.write_all(
                answer.head(&first, &[("content-length", length), ("connection", String::new())]).as_bytes(),
            )?;
            if fault == Some(Fault::Short) {
                return to.write_all(&answer.body[..answer.body.len() / 2]);
            }
            to.write_all(&answer.body)?;
        }
        Ok(())
    }

    fn understand(&self, message: &Message) -> Request {
        let mut words = message.first.split(' ');
        let [method, target] = [(); 2].map(|()| words.next().unwrap_or_default());
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let name = path.strip_prefix(&self.base).unwrap_or_default();
        let kind = match name.split('/').next().unwrap_or_default() {
            "" if path.trim_end_matches('/') != self.bucket => "foreign",
            "" if query.contains("list-type=2") => "list",
            "" => "delete",
            kind => kind,
        };
        Request {
            method: method.to_owned(),
            kind: kind.to_owned(),
            name: name.to_owned(),
            ranged: message.header("range").is_some(),
            conditional: message.header("if-none-match").is_some(),
            status: 0,
            fault: None,
            sent: message.body.len(),
            received: 0,
        }
    }

    /// The answer of the server, or of a fault; `None` if there is none.
    fn answer(&self, message: &Message, request: &Request) -> io::Result<Option<Message>> {
        match request.fault {
            Some(Fault::Reset) => return Ok(None),
            Some(Fault::Late(delay)) => thread::sleep(delay),
            Some(Fault::Status(status, code)) => {
                let body = format!(
                    "<?xml version=\"1.0\"?>\n<Error><Code>{code}</Code><Message>injected</Message></Error>"
                );
                let headers = vec![("content-type".to_owned(), "application/xml".to_owned())];
                return Ok(Some(Message {
                    first: format!("HTTP/1.1 {status} {code}"),
                    headers,
                    body: body.into(),
                }));
            }
            _ => {}
        }
        let _one_at_a_time = request.conditional.then(|| self.conditional.lock().unwrap());
        let mut server = TcpStream::connect(self.server)?;
        // A server must not answer a version 1.0 request in chunks.
        let first = message.first.trim_end().replace("HTTP/1.1", "HTTP/1.0");
        server.write_all(message.head(&first, &[("connection", "close".to_owned())]).as_bytes())?;
        server.write_all(&message.body)?;
        Message::read(&mut BufReader::new(server), true)
    }
}
