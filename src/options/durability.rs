//! What a store promises of writes and transactions.

/// When a write is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Durability {
    /// Once the operating system has it. It survives the death of the process. After a power failure, a
    /// prefix of all writes survives. [`Db::sync`](crate::Keyspace::sync) makes everything written so far
    /// durable.
    #[default]
    Os,
    /// Once the disk has it (fdatasync, which concurrent writers share).
    Sync,
}

impl Durability {
    /// As in metrics and on the command line: `os` or `sync`.
    pub fn name(self) -> &'static str {
        match self {
            Durability::Os => "os",
            Durability::Sync => "sync",
        }
    }
}

/// What a transaction is checked for when it commits. A row that has expired meanwhile counts as deleted by
/// somebody else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Isolation {
    /// Everything that it has read must be unchanged: keys, keys that were absent, and ranges that it has
    /// walked, as far as it has walked them. Committed transactions have the effect of some that ran one
    /// after the other.
    #[default]
    Serializable,
    /// Only the keys and ranges that it has written must be unchanged since it began. It allows *write
    /// skew*: two transactions each write what the other one has read (Berenson et al., "A critique of ANSI
    /// SQL isolation levels", 1995).
    Snapshot,
}
