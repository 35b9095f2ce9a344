use super::*;
use std::time::Instant;
#[test]
#[ignore]
fn bench() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    const N: u64 = 1_000_000;
    let keys: Vec<[u8; 24]> = (0..N)
        .map(|i| {
            let mut k = [0; 24];
            k.copy_from_slice(format!("user{:020}", i * 7919).as_bytes());
            k
        })
        .collect();
    let mut rnd = vec![0u8; 1 << 20];
    let mut x = 88172645463325252u64;
    for b in rnd.iter_mut() {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        *b = x as u8;
    }
    for compression in [Compression::None] {
        let path = dir.path().join(format!("{}.segment", compression.name()));
        for round in 0..3 {
            let _ = std::fs::remove_file(&path);
            let t = Instant::now();
            let mut w = Writer::create(
                &RealFs,
                &path,
                FileId(1),
                Origin { store_id: 1, hash_seed: 2 },
                WriterOptions { block_bytes: 4096, compression },
            )
            .unwrap();
            for (i, k) in keys.iter().enumerate() {
                let at = (i * 37) % (rnd.len() - 100);
                w.append(k, 1_000_000 + (i as u64 * 31) % N, EntryKind::Put, &rnd[at..at + 100]).unwrap();
            }
            let before = t.elapsed();
            let s = w.finish().unwrap();
            println!(
                "{compression:?} round {round} write {:?}/row (finish {:?}) file {} index {}",
                before / N as u32,
                t.elapsed() - before,
                s.file_bytes,
                s.index_bytes
            );
        }
        let counters = Arc::new(Counters::default());
        let s = Arc::new(
            Segment::open(&RealFs, &path, FileId(1), Arc::new(BlockCache::new(1 << 30)), counters.clone())
                .unwrap(),
        );
        for access in [Access::Scan, Access::Cached, Access::Cached, Access::Scan] {
            for dir in [Direction::Forward, Direction::Reverse] {
                if access == Access::Cached && dir == Direction::Reverse {
                    continue;
                }
                let t = Instant::now();
                let mut c = s.cursor(dir, Bound::Unbounded, access).unwrap();
                let (mut n, mut sum) = (0u64, 0usize);
                while c.advance().unwrap() {
                    n += 1;
                    sum += c.key().len() + c.value().len() + c.seq() as usize % 3;
                }
                let d = t.elapsed();
                println!(
                    "{access:?} {dir:?}: {n} rows {:.1} M/s ({sum}) reads {:?}",
                    n as f64 / d.as_secs_f64() / 1e6,
                    counters.block_reads
                );
            }
        }
        s.warm_index().unwrap();
        let mut sought = Vec::new();
        {
            let mut j = 1u64;
            for _ in 0..1_000_000 {
                j = j.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                sought.push(keys[((j >> 33) % N) as usize]);
            }
        }
        for _ in 0..4 {
            let t = Instant::now();
            let mut sum = 0;
            for k in &sought {
                sum += s.get(k).unwrap().unwrap().value[0] as usize;
            }
            println!("get cached, key hot {:?} ({sum})", t.elapsed() / 1_000_000);
            let t = Instant::now();
            let mut sum = 0;
            for k in &sought {
                sum += s.get(k).unwrap().unwrap().value.len();
            }
            println!("get cached, key hot, value not read {:?} ({sum})", t.elapsed() / 1_000_000);
        }
        for round in 0..3 {
            let t = Instant::now();
            let mut j = 1u64;
            let mut sum = 0;
            for _ in 0..1_000_000 {
                j = j.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let e = s.get(&keys[((j >> 33) % N) as usize]).unwrap().unwrap();
                sum += e.value[0] as usize;
            }
            println!("get cached round {round}: {:?} ({sum})", t.elapsed() / 1_000_000);
            let t = Instant::now();
            let mut sum = 0;
            for _ in 0..1_000_000 {
                j = j.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let e = s.get(&keys[((j >> 33) % 20_000) as usize]).unwrap().unwrap();
                sum += e.value[0] as usize;
            }
            println!("get hot 20k round {round}: {:?} ({sum})", t.elapsed() / 1_000_000);
        }
        let mut order: Vec<usize> = Vec::new();
        {
            let mut j = 1u64;
            for _ in 0..1_000_000 {
                j = j.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                order.push(((j >> 33) % N) as usize);
            }
        }
        {
            let n = 128usize << 20 >> 3;
            let mut v: Vec<u64> = (0..n as u64).collect();
            let mut j = 7u64;
            for i in (1..n).rev() {
                j = j.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let k = (j >> 33) as usize % i;
                v.swap(i, k);
            }
            let t = Instant::now();
            let mut at = 0;
            for _ in 0..1_000_000 {
                at = v[at as usize];
            }
            println!("chase {:?} {at}", t.elapsed() / 1_000_000);
        }
        let t = Instant::now();
        let mut sum = 0;
        for &i in &order {
            sum += crate::hash::hash_key(&keys[i], sum);
        }
        println!("keys dependent {:?} {sum}", t.elapsed() / 1_000_000);
        let t = Instant::now();
        let mut sum = 0;
        for &i in &order {
            sum += s.top.seek(&keys[i]);
        }
        println!("top {:?} {sum}", t.elapsed() / 1_000_000);
        let t = Instant::now();
        let mut sum = 0;
        for &i in &order {
            sum += s.partition(s.top.seek(&keys[i]), Access::Cached).unwrap().seek(&keys[i]);
        }
        println!("top+partition {:?} {sum}", t.elapsed() / 1_000_000);
        let t = Instant::now();
        let mut sum = 0;
        for &i in &order {
            let p = s.partition(s.top.seek(&keys[i]), Access::Cached).unwrap();
            let h = p.handle(p.seek(&keys[i]));
            sum += s.data_block(h).unwrap().intervals();
        }
        println!("top+partition+block {:?} {sum}", t.elapsed() / 1_000_000);
        let cold = Arc::new(
            Segment::open(&RealFs, &path, FileId(1), Arc::new(BlockCache::new(0)), counters.clone()).unwrap(),
        );
        let t = Instant::now();
        let mut j = 1u64;
        for _ in 0..100_000 {
            j = j.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            assert!(cold.get(&keys[((j >> 33) % N) as usize]).unwrap().is_some());
        }
        println!("get without cache (page cache): {:?}", t.elapsed() / 100_000);
        let t = Instant::now();
        s.verify(&mut |_, _, _| Ok(())).unwrap();
        println!("verify {:?}/row", t.elapsed() / N as u32);
    }
}
