//! Places that cannot be read or written; each has its own error.

use crate::bucket::{Bucket, contents, fill};
use crate::moto::client;
use crate::proxy::{Fault, Proxy, Rule};
use object_store::ObjectStoreExt;
use object_store::path::Path;
use sidebloom_remote::{Error, clone};

/// Refused credentials have their own error, and are not retried.
#[test]
fn refused_credentials_have_an_error_of_their_own_and_no_retry() {
    let Some(bucket) = Bucket::new("credentials") else { return };
    let db = bucket.open("store");
    fill(&db, 0..1000, "value");
    let mut publisher = bucket.publisher(&db).unwrap();
    publisher.publish().unwrap();
    let reader = bucket.read().unwrap();
    let before = contents(&db);
    db.put("new", "row").unwrap();
    for code in ["InvalidAccessKeyId", "SignatureDoesNotMatch", "AccessDenied"] {
        bucket.proxy.inject(Rule::new("", "", Fault::Status(403, code)));
        bucket.proxy.take();
        let errors = [
            publisher.publish().err(),
            bucket.publisher(&db).err(),
            reader.refresh().err(),
            bucket.read().err(),
            clone(&bucket.remote(), bucket.path("copy"), &mut |_, _| ()).err(),
        ];
        for error in &errors {
            let Some(Error::AccessDenied { what, .. }) = error else { panic!("{code}: {error:?}") };
            assert!(what.contains(code), "{what}");
        }
        assert_eq!(bucket.proxy.take().len(), errors.len(), "one request each");
        let error = reader.db().get("key00000001").unwrap_err();
        assert!(matches!(Error::behind(&error), Some(Error::AccessDenied { .. })), "{error:?}");
        bucket.proxy.heal();
        assert_eq!(contents(reader.db()), before);
    }
    assert!(!bucket.path("copy").exists());
    // Reading is allowed, writing is not.
    bucket.proxy.inject(Rule::new("PUT", "", Fault::Status(403, "AccessDenied")));
    assert!(matches!(publisher.publish(), Err(Error::AccessDenied { .. })));
    bucket.proxy.heal();
    assert_eq!(publisher.publish().unwrap().generation, 2);
    assert_eq!(bucket.published(), contents(&db));
}

#[test]
fn a_bucket_that_does_not_exist_is_named() {
    let Some(bucket) = Bucket::missing("there-is-none") else { return };
    let db = bucket.open("store");
    db.put("a", "1").unwrap();
    let errors = [
        bucket.publisher(&db).and_then(|mut publisher| publisher.publish()).err(),
        bucket.read().err(),
        clone(&bucket.remote(), bucket.path("copy"), &mut |_, _| ()).err(),
    ];
    for error in errors {
        let error = error.unwrap();
        assert!(error.to_string().contains("there-is-none"), "{error}");
        assert!(!matches!(error, Error::Expired { .. }), "{error:?}");
    }
    db.put("b", "2").unwrap();
}

#[test]
fn a_place_without_a_published_store_is_named() {
    let Some(bucket) = Bucket::new("not-a-store") else { return };
    let refused = || bucket.read().err().unwrap();
    assert!(matches!(refused(), Error::NotPublished { .. }), "{}", refused());
    put(&bucket, "holiday/1.jpg", "a picture");
    assert!(matches!(refused(), Error::NotPublished { .. }), "{}", refused());
    put(&bucket, "latest", "the newest picture");
    let damaged = refused();
    assert!(matches!(&damaged, Error::Damaged { object, .. } if object.ends_with("/latest")), "{damaged}");
    put(&bucket, "latest", "1");
    put(&bucket, "gen/00000000000000000001", "a picture");
    let damaged = refused();
    assert!(
        matches!(&damaged, Error::Damaged { object, offset: 0, .. } if object.contains("gen/")),
        "{damaged}"
    );
    // Writing is refused too.
    let db = bucket.open("store");
    db.put("a", "1").unwrap();
    assert!(matches!(bucket.publisher(&db).err(), Some(Error::Damaged { .. })));
}

#[test]
fn nobody_who_is_not_an_object_store_is_taken_for_one() {
    let Some(bucket) = Bucket::new("no-server") else { return };
    // Nobody listens there any more.
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = clone(&bucket.remote_at(address), bucket.path("copy"), &mut |_, _| ()).unwrap_err();
    assert!(matches!(&error, Error::Bucket { op: "read", .. }), "{error}");
    // A proxy without a server behind it.
    let proxy = Proxy::start(address, "no-server", "songs");
    let error = clone(&bucket.remote_at(proxy.address), bucket.path("copy"), &mut |_, _| ()).unwrap_err();
    assert!(matches!(&error, Error::Bucket { op: "read", .. }), "{error}");
    assert!(!bucket.path("copy").exists());
}

fn put(bucket: &Bucket, name: &str, contents: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (store, name) = (client(bucket.proxy.address, "not-a-store"), Path::from(format!("songs/{name}")));
    runtime.block_on(store.put(&name, contents.to_owned().into())).unwrap();
}
