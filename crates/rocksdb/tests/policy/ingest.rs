//! Files written outside of the database.

use crate::support::{PARITY, Store, key, options_of};
use rocksdb::{BlockBasedOptions, SstFileWriter};

#[test]
fn files_for_ingestion_have_filters() {
    let dir = tempfile::tempdir().unwrap();
    for policy in [PARITY, "sidebloom.parity:auto:10", "bloomfilter:10"] {
        let path = dir.path().join("rows.sst");
        let options = options_of(&BlockBasedOptions::default(), policy);
        let mut writer = SstFileWriter::create(&options);
        writer.open(&path).unwrap();
        for number in (0..20_000u32).step_by(2) {
            writer.put(key(number), number.to_be_bytes()).unwrap();
        }
        writer.finish().unwrap();
        let store = Store::open(&dir.path().join(policy), PARITY);
        store.db.ingest_external_file(vec![&path]).unwrap();
        store.check(0..20_000);
        let (asked, maybe) = store.misses(0..20_000);
        match policy {
            "bloomfilter:10" => assert_eq!(asked, 0, "another policy's filter is none"),
            _ => assert!(asked >= 9_999 && maybe < 100, "{policy}: {maybe} of {asked}"),
        }
    }
}
