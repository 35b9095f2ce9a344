//! A segment uploaded in several parts.

use crate::bucket::{Bucket, contents};
use crate::proxy::{Fault, Rule, tally};
use sidebloom::{Compression, Options};
use sidebloom_remote::{Error, clone};

/// Bytes of the rows' values: three parts of 8 MiB.
const DATA_BYTES: usize = 20 << 20;
const VALUE_BYTES: usize = 1 << 10;

#[test]
fn a_large_segment_arrives_whole_in_parts_of_which_some_fail() {
    let Some(bucket) = Bucket::new("large") else { return };
    let options = Options::new().compression(Compression::None).segment_bytes(64 << 20);
    let db = options.open(bucket.path("store")).unwrap();
    for i in 0..DATA_BYTES / VALUE_BYTES {
        db.put(format!("key{i:08}"), [i as u8; VALUE_BYTES]).unwrap();
    }
    let mut publisher = bucket.publisher(&db).unwrap();
    bucket.proxy.take();
    // A part never arrives: nothing is published, and the next attempt starts over.
    bucket.proxy.inject(Rule::new("PUT", "segment", Fault::Status(503, "SlowDown")).after(1));
    let failed = publisher.publish().unwrap_err();
    assert!(
        matches!(&failed, Error::Bucket { op: "write", object, .. } if object.contains("segment/")),
        "{failed}"
    );
    assert!(matches!(bucket.read().err(), Some(Error::NotPublished { .. })));
    bucket.proxy.heal();
    for (fault, label) in [
        (Fault::Status(500, "InternalError"), "PUT segment 500"),
        (Fault::Reset, "PUT segment reset"),
        (Fault::Unanswered, "PUT segment unanswered"),
    ] {
        bucket.proxy.inject(Rule::new("PUT", "segment", fault).after(1).times(1));
        bucket.proxy.take();
        db.put("key00000000", format!("{fault:?}")).unwrap();
        db.compact().unwrap();
        publisher.publish().unwrap();
        let mut requests = bucket.proxy.take_tally();
        requests.retain(|label, _| label.contains("segment"));
        // Begin and complete, and the parts, one of them twice.
        assert_eq!(requests, tally([("POST segment", 2), ("PUT segment", 3), (label, 1)]));
        bucket.proxy.heal();
        let copy = bucket.path(&format!("copy {label}"));
        clone(&bucket.remote(), &copy, &mut |_, _| ()).unwrap();
        assert!(contents(&Options::new().open(&copy).unwrap()) == contents(&db), "{fault:?}");
    }
}
