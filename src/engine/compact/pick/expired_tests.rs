use crate::error::Error;
use crate::id::FileKind;
use crate::support::fast_dir;
use crate::{Expiry, Options, WallClock};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

#[derive(Debug)]
struct Clock(AtomicU64);

impl WallClock for Clock {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(self.0.load(SeqCst))
    }
}

/// What is in quarantine keeps others that expire only as long as rows of it live.
#[test]
fn i15_expired_segments_wait_for_living_rows_in_quarantine() {
    for (lives, segments_left) in [(60, 1), (600, 2)] {
        let (dir, clock) = (fast_dir(), Arc::new(Clock(AtomicU64::new(1_800_000_000))));
        let path = dir.path().join("store");
        let db = Options::new().clock(Arc::clone(&clock) as _).open(&path).unwrap();
        for life in [lives, 60] {
            let expiry = Expiry::after(Duration::from_secs(life));
            ["a", "z"].iter().for_each(|key| db.put_with(key, "1", expiry).unwrap());
            db.flush().unwrap();
        }
        let live = db.engine().shared.live();
        let oldest = live.segments().last().unwrap().meta.id;
        let file = path.join(oldest.file_name(FileKind::Segment));
        let mut bytes = std::fs::read(&file).unwrap();
        bytes[0] ^= 1; // So that it does not return by itself.
        std::fs::write(&file, bytes).unwrap();
        assert!(db.engine().publisher.quarantine(&Error::corruption(&file, 0, "a flipped bit")));
        clock.0.fetch_add(120, SeqCst);
        db.wait_for_compaction().unwrap();
        assert_eq!(db.engine().shared.live().segments().count(), segments_left, "{lives}");
        assert_eq!(db.stats().segments_quarantined, 1);
    }
}
