//! The compared stores.

use serde::{Deserialize, Serialize};

/// A store to compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum StoreKind {
    /// sidebloom's windowed keyspace.
    #[value(name = "sidebloom")]
    Ours,
    /// sidebloom's rows that expire, without a window.
    #[value(name = "sidebloom-expiring")]
    OursExpiring,
    /// sidebloom without expiry: it forgets nothing.
    #[value(name = "sidebloom-forever")]
    OursForever,
    /// RocksDB's leveled compaction with a compaction filter, as in `DBWithTTL`.
    #[value(name = "rocksdb-leveled")]
    RocksLeveled,
    /// RocksDB's universal compaction with a compaction filter.
    #[value(name = "rocksdb-universal")]
    RocksUniversal,
    /// RocksDB's FIFO compaction.
    #[value(name = "rocksdb-fifo")]
    RocksFifo,
    /// fjall with a compaction filter.
    Fjall,
    /// SlateDB's time to live.
    #[value(name = "slatedb")]
    SlateDb,
    /// A Redis server.
    Redis,
    /// A Redis server with RedisBloom, and a filter for each part of a window. Inexact.
    #[value(name = "redisbloom")]
    RedisBloom,
}

impl StoreKind {
    const ALL: [StoreKind; 10] = [
        StoreKind::Ours,
        StoreKind::OursExpiring,
        StoreKind::OursForever,
        StoreKind::RocksLeveled,
        StoreKind::RocksUniversal,
        StoreKind::RocksFifo,
        StoreKind::Fjall,
        StoreKind::SlateDb,
        StoreKind::Redis,
        StoreKind::RedisBloom,
    ];

    /// All in this build, sidebloom first: RedisBloom if its module is there, and for mixed lives those that
    /// are made for them.
    pub fn all(has_redisbloom: bool, mixed: bool) -> Vec<StoreKind> {
        let is_here = |kind: &StoreKind| match kind {
            StoreKind::SlateDb => cfg!(feature = "slatedb"),
            StoreKind::RedisBloom => has_redisbloom,
            _ => cfg!(feature = "rocksdb") || !kind.is_rocks(),
        };
        let suits = |kind: &StoreKind| {
            !mixed || kind.takes_mixed_lives() && !matches!(kind, StoreKind::Ours | StoreKind::OursForever)
        };
        Self::ALL.into_iter().filter(is_here).filter(suits).collect()
    }

    /// Whether an id can be remembered longer than another one, on the stream's clock.
    pub fn takes_mixed_lives(self) -> bool {
        !matches!(self, StoreKind::RocksFifo | StoreKind::Redis | StoreKind::RedisBloom)
    }

    /// The name in tables, which is that of its directory.
    pub fn name(self) -> &'static str {
        match self {
            StoreKind::Ours => "sidebloom",
            StoreKind::OursExpiring => "sidebloom-expiring",
            StoreKind::OursForever => "sidebloom-forever",
            StoreKind::RocksLeveled => "rocksdb-leveled",
            StoreKind::RocksUniversal => "rocksdb-universal",
            StoreKind::RocksFifo => "rocksdb-fifo",
            StoreKind::Fjall => "fjall",
            StoreKind::SlateDb => "slatedb",
            StoreKind::Redis => "redis",
            StoreKind::RedisBloom => "redisbloom",
        }
    }

    /// Whether it is RocksDB.
    pub fn is_rocks(self) -> bool {
        matches!(self, StoreKind::RocksLeveled | StoreKind::RocksUniversal | StoreKind::RocksFifo)
    }

    /// Whether ids return as new once their life has ended.
    pub fn forgets(self) -> bool {
        self != StoreKind::OursForever
    }
}
