//! The parameters of a cuckoo filter.
//!
//! RedisBloom adds filters to one that is full (Fan, Andersen, Kaminsky, Mitzenmacher: "Cuckoo Filter", 2014,
//! is one such filter). Here the items are stored, and the filters are what RedisBloom would need at best:
//! they decide when it is full, and what `CF.INFO` says.

use super::growth::growing;

/// RedisBloom has no more filters than this in one.
const FILTERS_MAX: u64 = u16::MAX as u64;
/// Bytes in RedisBloom apart from the filters, and of each filter apart from its buckets.
const WHOLE_BYTES: u64 = 40;
const FILTER_BYTES: u64 = 16;

/// What a cuckoo filter is created with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cuckoo {
    capacity: u64,
    bucket_size: u8,
    max_iterations: u16,
    expansion: u16,
}

/// Why there is no such cuckoo filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoCuckoo {
    /// Two buckets do not fit into the capacity.
    TooSmall,
    /// The capacity is above its largest.
    TooLarge,
    /// The bucket size or the number of iterations is 0, or the expansion is above its largest.
    OutOfRange,
}

impl Default for Cuckoo {
    /// What RedisBloom creates on the first `CF.ADD`.
    fn default() -> Self {
        Cuckoo {
            capacity: 1024,
            bucket_size: Self::BUCKET_SIZE,
            max_iterations: Self::MAX_ITERATIONS,
            expansion: Self::EXPANSION,
        }
    }
}

impl Cuckoo {
    /// The default number of items in a bucket.
    pub const BUCKET_SIZE: u8 = 2;
    /// The default number of moves before another filter is added.
    pub const MAX_ITERATIONS: u16 = 20;
    /// The default growth of the next filter: it is as large as the first.
    pub const EXPANSION: u16 = 1;
    /// The largest expansion.
    pub const EXPANSION_MAX: u16 = 1 << 15;
    /// The largest capacity of the first filter, in items.
    pub const CAPACITY_MAX: u64 = 1 << 30;

    /// A filter for `capacity` items, in buckets of `bucket_size` (1 to 255); `expansion` is rounded up to a
    /// power of two, and 0 if it does not grow. `max_iterations` (at least 1) is only reported.
    ///
    /// # Errors
    /// [`NoCuckoo`].
    pub fn new(
        capacity: u64,
        bucket_size: u8,
        max_iterations: u16,
        expansion: u16,
    ) -> Result<Self, NoCuckoo> {
        if bucket_size == 0 || max_iterations == 0 || expansion > Self::EXPANSION_MAX {
            return Err(NoCuckoo::OutOfRange);
        }
        if capacity < 2 * u64::from(bucket_size) {
            return Err(NoCuckoo::TooSmall);
        }
        if capacity > Self::CAPACITY_MAX {
            return Err(NoCuckoo::TooLarge);
        }
        let expansion = if expansion == 0 { 0 } else { expansion.next_power_of_two() };
        Ok(Cuckoo { capacity, bucket_size, max_iterations, expansion })
    }

    /// The capacity that it was created with, in items.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Items in a bucket.
    pub fn bucket_size(&self) -> u8 {
        self.bucket_size
    }

    /// How often RedisBloom moves an item to make room for another.
    pub fn max_iterations(&self) -> u16 {
        self.max_iterations
    }

    /// The growth of the next filter; 0 if there is none.
    pub fn expansion(&self) -> u16 {
        self.expansion
    }

    /// Buckets of the first filter: a power of two.
    pub fn buckets(&self) -> u64 {
        (self.capacity / u64::from(self.bucket_size)).next_power_of_two()
    }

    /// The number of filters for so many items.
    pub fn filters(&self, items: u64) -> u64 {
        match self.expansion {
            0 => 1,
            1 => items.div_ceil(self.first_slots()).clamp(1, FILTERS_MAX),
            _ => self.slots(items).count() as u64,
        }
    }

    /// Whether nothing can be added to so many items.
    pub fn is_full(&self, items: u64) -> bool {
        match self.expansion {
            0 => items >= self.first_slots(),
            1 => items >= self.first_slots().saturating_mul(FILTERS_MAX),
            _ => false,
        }
    }

    /// The bytes that the filters for so many items take in RedisBloom.
    pub fn redis_bytes(&self, items: u64) -> u64 {
        let filters = self.filters(items);
        let slots = match self.expansion {
            0 | 1 => self.first_slots().saturating_mul(filters),
            _ => self.slots(items).fold(0, u64::saturating_add),
        };
        slots.saturating_add(WHOLE_BYTES + FILTER_BYTES * filters)
    }

    fn first_slots(&self) -> u64 {
        self.buckets().saturating_mul(self.bucket_size.into())
    }

    /// The slots of each filter for so many items, if they grow.
    fn slots(&self, items: u64) -> impl Iterator<Item = u64> {
        growing(self.first_slots(), self.expansion.into(), items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cuckoo(capacity: u64, bucket_size: u8, expansion: u16) -> Cuckoo {
        Cuckoo::new(capacity, bucket_size, 20, expansion).unwrap()
    }

    #[test]
    fn sizes_are_those_that_redis_bloom_reports() {
        let filter = cuckoo(1000, 2, 1);
        assert_eq!((filter.buckets(), filter.redis_bytes(0)), (512, 1080));
        assert_eq!(cuckoo(10_000, 2, 1).buckets(), 8192);
        assert_eq!(cuckoo(10, 2, 1).buckets(), 8);
        assert_eq!(cuckoo(256, 4, 1).buckets(), 64);
        assert_eq!(cuckoo(1024, 2, 30_000).expansion(), 32_768);
    }

    #[test]
    fn filters_are_added_as_the_expansion_says() {
        for (filter, items, filters) in [
            (cuckoo(4, 2, 0), 4, 1),
            (cuckoo(4, 2, 1), 4, 1),
            (cuckoo(4, 2, 1), 5, 2),
            (cuckoo(4, 2, 1), 124, 31),
            (cuckoo(64, 2, 2), 1000, 5),
            (cuckoo(64, 2, 4), 1000, 3),
        ] {
            assert_eq!(filter.filters(items), filters, "{filter:?}, {items}");
        }
        let fixed = cuckoo(4, 2, 0);
        assert!(!fixed.is_full(3) && fixed.is_full(4));
        let growing = cuckoo(4, 2, 1);
        assert!(!growing.is_full(4 * 65_535 - 1) && growing.is_full(4 * 65_535));
    }

    #[test]
    fn extreme_parameters_neither_overflow_nor_take_long() {
        for (capacity, bucket_size) in [(2, 1), (510, 255), (1 << 30, 1), (1 << 30, 255)] {
            for expansion in [0, 1, 2, Cuckoo::EXPANSION_MAX] {
                let filter = cuckoo(capacity, bucket_size, expansion);
                for items in [0, 1, u64::MAX] {
                    assert!(filter.filters(items) >= 1 && filter.redis_bytes(items) > 56);
                }
            }
        }
    }

    #[test]
    fn parameters_out_of_range_are_refused() {
        assert_eq!(Cuckoo::new(3, 2, 20, 1), Err(NoCuckoo::TooSmall));
        assert_eq!(Cuckoo::new(i64::MAX as u64, 2, 20, 1), Err(NoCuckoo::TooLarge));
        for (bucket_size, iterations, expansion) in [(0, 20, 1), (2, 0, 1), (2, 20, (1 << 15) + 1)] {
            assert_eq!(Cuckoo::new(1000, bucket_size, iterations, expansion), Err(NoCuckoo::OutOfRange));
        }
    }
}
