//! The parameters of a Bloom filter.
//!
//! RedisBloom builds a filter of layers (Almeida, Baquero, Preguiça, Hutchison: "Scalable Bloom Filters",
//! 2007): each has the capacity of the one before times the expansion, and half its error rate. Here the
//! items are stored, and the layers are what such a filter would have: they decide when one that does not
//! scale is full, and what `BF.INFO` says.

use super::growth::growing;

/// Layers from here on count as large as this one: 2⁻⁶⁴ of the error rate needs no more bits.
const LAYERS_SIZED: u64 = 64;
/// Bytes of RedisBloom's filter apart from its layers, and of a layer apart from its bits.
const FILTER_BYTES: u64 = 32;
const LAYER_BYTES: u64 = 64;

/// What a Bloom filter is created with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bloom {
    error_rate: f64,
    capacity: u64,
    /// 0 if it does not scale.
    expansion: u32,
}

impl Default for Bloom {
    /// What RedisBloom creates on the first `BF.ADD`.
    fn default() -> Self {
        Bloom { error_rate: 0.01, capacity: 100, expansion: 2 }
    }
}

impl Bloom {
    /// A filter of this error rate (above 0, below 1; more than 0.25 counts as 0.25) and capacity, in items
    /// (1 to 2³⁰). Its next layer has `expansion` times the capacity (1 to 32,768); with `None` it does not
    /// scale. `None` for parameters out of range.
    pub fn new(error_rate: f64, capacity: u64, expansion: Option<u32>) -> Option<Self> {
        let expands = expansion.is_none_or(|expansion| (1..=Self::EXPANSION_MAX).contains(&expansion));
        let is_rate = error_rate > 0.0 && error_rate < 1.0;
        (is_rate && (1..=Self::CAPACITY_MAX).contains(&capacity) && expands).then(|| Bloom {
            error_rate: error_rate.min(Self::ERROR_RATE_MAX),
            capacity,
            expansion: expansion.unwrap_or(0),
        })
    }

    /// The largest capacity of a first layer, in items.
    pub const CAPACITY_MAX: u64 = 1 << 30;
    /// A greater error rate counts as this one.
    pub const ERROR_RATE_MAX: f64 = 0.25;
    /// The largest expansion.
    pub const EXPANSION_MAX: u32 = 1 << 15;

    /// The rate of false positives that it was created with. It has none.
    pub fn error_rate(&self) -> f64 {
        self.error_rate
    }

    /// Items in the first layer.
    pub fn first_capacity(&self) -> u64 {
        self.capacity
    }

    /// How much larger the next layer is; `None` if it does not scale.
    pub fn expansion(&self) -> Option<u32> {
        (self.expansion > 0).then_some(self.expansion)
    }

    /// Whether nothing can be added to so many items.
    pub fn is_full(&self, items: u64) -> bool {
        self.expansion == 0 && items >= self.capacity
    }

    /// The number of layers for so many items.
    pub fn layers(&self, items: u64) -> u64 {
        match self.expansion {
            0 => 1,
            1 => items.div_ceil(self.capacity).max(1),
            _ => self.capacities(items).count() as u64,
        }
    }

    /// The items that the layers for so many items hold.
    pub fn capacity(&self, items: u64) -> u64 {
        match self.expansion {
            0 => self.capacity,
            1 => self.capacity.saturating_mul(self.layers(items)),
            _ => self.capacities(items).fold(0, u64::saturating_add),
        }
    }

    /// The bytes that the layers for so many items take in RedisBloom.
    pub fn redis_bytes(&self, items: u64) -> u64 {
        // Halved for each layer, the first included, so that all together stay below the error rate.
        let first_halving = u32::from(self.expansion > 0);
        let layer = |(n, capacity): (u64, u64)| {
            LAYER_BYTES + filter_bytes(capacity, self.error_rate, n as u32 + first_halving)
        };
        if self.expansion > 1 {
            return (0..).zip(self.capacities(items)).map(layer).fold(FILTER_BYTES, u64::saturating_add);
        }
        let layers = self.layers(items);
        let sized: u64 = (0..layers.min(LAYERS_SIZED)).map(|n| layer((n, self.capacity))).sum();
        let last = layer((LAYERS_SIZED - 1, self.capacity));
        (FILTER_BYTES + sized).saturating_add(last.saturating_mul(layers.saturating_sub(LAYERS_SIZED)))
    }

    /// The capacity of each layer for so many items, of a filter whose layers grow.
    fn capacities(&self, items: u64) -> impl Iterator<Item = u64> {
        growing(self.capacity, self.expansion.into(), items)
    }
}

/// The bytes of a Bloom filter for `capacity` items with an error rate of `rate` halved so often: -ln ε / ln²
/// 2 bits for an item (Bloom, "Space/time trade-offs in hash coding with allowable errors", 1970), in words
/// of eight bytes.
fn filter_bytes(capacity: u64, rate: f64, halvings: u32) -> u64 {
    use std::f64::consts::LN_2;
    let bits_per_item = (f64::from(halvings) * LN_2 - rate.ln()) / (LN_2 * LN_2);
    let bits = (capacity as f64 * bits_per_item) as u64; // Saturates.
    bits.div_ceil(64).max(1).saturating_mul(8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bloom(error_rate: f64, capacity: u64, expansion: impl Into<Option<u32>>) -> Bloom {
        Bloom::new(error_rate, capacity, expansion.into()).unwrap()
    }

    /// The sizes that RedisBloom reports for these parameters.
    #[test]
    fn sizes_are_those_that_redis_bloom_reports() {
        for (filter, items, bytes) in [
            (bloom(0.001, 100, 2), 0, 296),
            (bloom(0.01, 3, None), 3, 104),
            (bloom(0.000_001, 300_000_000, 2), 0, 1_132_420_232),
            (bloom(0.01, 10, 2), 99, 32 + 4 * 64 + 16 + 32 + 72 + 160),
            (bloom(0.001, 100, 2), 3997, 32 + 6 * 64 + 200 + 432 + 936 + 2016 + 4320 + 9216),
        ] {
            assert_eq!(filter.redis_bytes(items), bytes, "{filter:?}");
        }
    }

    #[test]
    fn layers_grow_by_the_expansion_once_the_last_one_is_full() {
        let doubling = bloom(0.01, 4, 2);
        for (items, layers, capacity) in [(0, 1, 4), (4, 1, 4), (5, 2, 12), (12, 2, 12), (100, 5, 124)] {
            assert_eq!((doubling.layers(items), doubling.capacity(items)), (layers, capacity), "{items}");
        }
        assert_eq!(bloom(0.01, 4, 4).layers(100), 4);
        assert_eq!(bloom(0.01, 4, 1).layers(100), 25);
        assert_eq!((bloom(0.01, 1, 1).layers(0), bloom(0.01, 1, 1).capacity(5000)), (1, 5000));
        assert!(!doubling.is_full(u64::MAX));
        let fixed = bloom(0.01, 3, None);
        assert!(!fixed.is_full(2) && fixed.is_full(3));
        assert_eq!((fixed.layers(3), fixed.capacity(3)), (1, 3));
    }

    #[test]
    fn extreme_parameters_neither_overflow_nor_take_long() {
        for expansion in [None, Some(1), Some(2), Some(Bloom::EXPANSION_MAX)] {
            for capacity in [1, Bloom::CAPACITY_MAX] {
                for rate in [f64::MIN_POSITIVE, 0.999_999_999_999_999_9] {
                    let filter = bloom(rate, capacity, expansion);
                    for items in [0, 1, 1 << 32, u64::MAX] {
                        assert!(filter.layers(items) >= 1 && filter.redis_bytes(items) > 100);
                        assert!(filter.is_full(items) || filter.capacity(items) >= items.min(capacity));
                    }
                }
            }
        }
    }

    #[test]
    fn parameters_out_of_range_are_refused() {
        for rate in [0.0, 1.0, -0.1, 7.7, f64::NAN, f64::INFINITY] {
            assert_eq!(Bloom::new(rate, 100, None), None);
        }
        assert_eq!(Bloom::new(0.1, 0, None), None);
        assert_eq!(Bloom::new(0.1, Bloom::CAPACITY_MAX + 1, None), None);
        assert_eq!(Bloom::new(0.99, 1, None), Bloom::new(0.25, 1, None));
        assert_eq!(Bloom::new(0.1, 1, Some(0)), None);
        assert_eq!(Bloom::new(0.1, 1, Some(Bloom::EXPANSION_MAX + 1)), None);
    }
}
