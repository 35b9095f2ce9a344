//! The proxy itself, used with the library's client: what it counts, and what its faults do to the client.

use crate::moto::{Moto, RETRIES, TIMEOUT, client, moto};
use crate::proxy::{Fault, Proxy, Request, Rule, tally};
use bytes::Bytes;
use futures_util::TryStreamExt;
use object_store::aws::AmazonS3;
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode};
use std::time::Instant;

/// A bucket behind a proxy, and a client for it.
struct Proxied {
    proxy: Proxy,
    store: AmazonS3,
    runtime: tokio::runtime::Runtime,
}

impl Proxied {
    fn new(moto: &Moto, bucket: &str) -> Proxied {
        moto.create_bucket(bucket);
        let proxy = Proxy::start(moto.address, bucket, "place");
        let store = client(proxy.address, bucket);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Proxied { proxy, store, runtime }
    }

    fn put(&self, name: &str, body: &str) -> object_store::Result<()> {
        let body = Bytes::copy_from_slice(body.as_bytes());
        self.runtime.block_on(self.store.put(&Path::from(name), body.into())).map(|_| ())
    }

    fn create(&self, name: &str, body: &str) -> object_store::Result<()> {
        let body = Bytes::copy_from_slice(body.as_bytes());
        let name = Path::from(name);
        let created = self.store.put_opts(&name, body.into(), PutMode::Create.into());
        self.runtime.block_on(created).map(|_| ())
    }

    fn get(&self, name: &str) -> object_store::Result<Bytes> {
        self.runtime.block_on(async { self.store.get(&Path::from(name)).await?.bytes().await })
    }
}

#[test]
fn requests_are_told_apart_by_method_object_and_range() {
    let Some(moto) = moto() else { return };
    let at = Proxied::new(moto, "told-apart");
    at.put("place/segment/000001-ab", "0123456789").unwrap();
    at.put("place/latest", "1").unwrap();
    at.create("place/gen/00000000000000000001", "a").unwrap();
    let taken = at.create("place/gen/00000000000000000001", "b");
    assert!(matches!(taken, Err(Error::AlreadyExists { .. })), "{taken:?}");
    assert_eq!(at.get("place/gen/00000000000000000001").unwrap(), "a");
    let missing = at.get("place/gen/00000000000000000002");
    assert!(matches!(missing, Err(Error::NotFound { .. })), "{missing:?}");
    let segment = Path::from("place/segment/000001-ab");
    let part = at.store.get_range(&segment, 3..7);
    assert_eq!(at.runtime.block_on(part).unwrap(), "3456");
    let place = Path::from("place");
    let listed: Vec<_> = at.runtime.block_on(at.store.list(Some(&place)).try_collect()).unwrap();
    assert_eq!(listed.len(), 3);
    assert_eq!(at.runtime.block_on(at.store.head(&segment)).unwrap().size, 10);
    at.put("elsewhere/segment/1", "not of this place").unwrap();

    let requests = at.proxy.take();
    let first = Request {
        method: "PUT".into(),
        kind: "segment".into(),
        name: "segment/000001-ab".into(),
        ranged: false,
        conditional: false,
        status: 200,
        fault: None,
        sent: 10,
        received: 0,
    };
    assert_eq!(requests[0], first);
    assert!(requests[2].conditional && requests[3].conditional);
    assert_eq!(requests[6].received, 4);
    let labels = |requests: &[Request]| requests.iter().map(Request::label).collect::<Vec<_>>();
    let expected = [
        "PUT segment",
        "PUT latest",
        "PUT gen",
        "PUT gen 412",
        "GET gen",
        "GET gen 404",
        "GET segment ranged",
        "GET list",
        "HEAD segment",
        "PUT foreign",
    ];
    assert_eq!(labels(&requests), expected);
    assert_eq!(at.proxy.take_tally(), tally([]));
}

/// Each fault does what its name says, and a client that retries gets past it.
#[test]
fn each_fault_is_what_its_name_says_and_a_repeated_request_passes() {
    let Some(moto) = moto() else { return };
    let at = Proxied::new(moto, "faults");
    at.put("place/segment/1", "0123456789").unwrap();
    at.proxy.take();
    let faults = [
        (Fault::Status(500, "InternalError"), "GET segment 500"),
        (Fault::Status(503, "SlowDown"), "GET segment 503"),
        (Fault::Status(429, "TooManyRequests"), "GET segment 429"),
        (Fault::Late(2 * TIMEOUT), "GET segment late"),
        (Fault::Reset, "GET segment reset"),
        (Fault::Unanswered, "GET segment unanswered"),
    ];
    for (fault, label) in faults {
        at.proxy.inject(Rule::new("GET", "segment", fault).times(2));
        let started = Instant::now();
        assert_eq!(at.get("place/segment/1").unwrap(), "0123456789", "{fault:?}");
        assert_eq!(started.elapsed() > 2 * TIMEOUT, matches!(fault, Fault::Late(_)), "{fault:?}");
        if matches!(fault, Fault::Late(_)) {
            std::thread::sleep(2 * TIMEOUT); // The server answers the late requests now.
        }
        assert_eq!(at.proxy.take_tally(), tally([(label, 2), ("GET segment", 1)]));
        at.proxy.heal();
    }
    // Not for ever, and only what the rule says.
    at.proxy.inject(Rule::new("GET", "segment", Fault::Status(503, "SlowDown")));
    assert!(at.get("place/segment/1").is_err());
    at.put("place/segment/2", "other").unwrap();
    assert_eq!(at.proxy.take_tally(), tally([("GET segment 503", RETRIES + 1), ("PUT segment", 1)]));
}

#[test]
fn a_client_gets_over_one_body_cut_short_and_not_over_all_of_them() {
    let Some(moto) = moto() else { return };
    let at = Proxied::new(moto, "short");
    at.put("place/segment/1", "0123456789").unwrap();
    at.proxy.take();
    at.proxy.inject(Rule::new("GET", "segment", Fault::Short).times(1));
    assert_eq!(at.get("place/segment/1").unwrap(), "0123456789");
    // It asks for the rest.
    assert_eq!(at.proxy.take_tally(), tally([("GET segment short", 1), ("GET segment ranged", 1)]));
    at.proxy.inject(Rule::new("GET", "segment", Fault::Short));
    assert!(at.get("place/segment/1").is_err());
    assert!(at.proxy.take().iter().all(|request| request.fault == Some(Fault::Short)));
}

#[test]
fn a_creation_that_is_not_answered_has_happened_and_is_not_repeated() {
    let Some(moto) = moto() else { return };
    let at = Proxied::new(moto, "unanswered");
    at.proxy.inject(Rule::new("PUT", "", Fault::Unanswered).after(1).times(1));
    at.create("place/gen/1", "a").unwrap();
    let second = at.create("place/gen/2", "b");
    assert!(matches!(second, Err(Error::Generic { .. })), "{second:?}");
    assert_eq!(at.get("place/gen/2").unwrap(), "b");
    at.create("place/gen/3", "c").unwrap();
    let expected = [("PUT gen", 2), ("PUT gen unanswered", 1), ("GET gen", 1)];
    assert_eq!(at.proxy.take_tally(), tally(expected));
}
