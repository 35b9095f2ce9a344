//! Probes the lines of a stored filter where they are, as in a mapped file.

use super::kind::StoredKind;
use crate::family::{POSITIONS_OF_AN_ABSENT_KEY, PREFETCH_BATCH, is_set};
use crate::{KeyHasher, LINE_BITS, Line, Plan, Prober, Verdict, prefetch};

/// Probes any lines for keys, as the filter with these lines in memory does. Small and [`Copy`].
#[derive(Debug, Clone, Copy)]
pub struct StoredProber(Kind);

#[derive(Debug, Clone, Copy)]
enum Kind {
    Lines(Prober, KeyHasher),
    Bloom(Plan),
}

/// The hash of a key, in one or two words.
type Hash = (u64, u64);

impl StoredProber {
    /// A prober for a kind; `None` for kinds whose lines are read as a whole: counting and scalable filters.
    pub fn of(kind: &StoredKind) -> Option<Self> {
        match kind {
            StoredKind::Lines(kind, hasher) => Some(StoredProber(Kind::Lines(Prober::new(*kind), *hasher))),
            StoredKind::Bloom(plan) => Some(StoredProber(Kind::Bloom(*plan))),
            StoredKind::Counting(_) | StoredKind::Scalable { .. } => None,
        }
    }

    /// Probes for a key. The lines must be as many as the header of the filter says.
    #[inline]
    pub fn probe(&self, lines: &[Line], key: &[u8]) -> Verdict {
        match &self.0 {
            Kind::Lines(prober, hasher) => prober.probe(lines, hasher.hash(key)),
            // Every line is believed, so there is a verdict.
            Kind::Bloom(_) => self.probe_believed(lines, key, &mut |_| true).unwrap_or(Verdict::Maybe),
        }
    }

    /// Like [`probe`](Self::probe), for lines that may not all be trusted: calls `believe` with the number of
    /// each line before reading it. Returns `None` as soon as `believe` returns false.
    pub fn probe_believed(
        &self,
        lines: &[Line],
        key: &[u8],
        believe: &mut dyn FnMut(usize) -> bool,
    ) -> Option<Verdict> {
        self.probe_hash(lines, self.hash(key), believe)
    }

    /// [`probe`](Self::probe) for many keys: appends the verdicts in order. Lines are prefetched, so that
    /// cache misses overlap.
    pub fn probe_many<K: AsRef<[u8]>>(&self, lines: &[Line], keys: &[K], verdicts: &mut Vec<Verdict>) {
        if let Kind::Lines(prober, hasher) = &self.0 {
            let hashes: Vec<u64> = keys.iter().map(|key| hasher.hash(key.as_ref())).collect();
            return prober.probe_many(lines, &hashes, verdicts);
        }
        let all = self.probe_many_believed(lines, keys, verdicts, &mut |_| true);
        debug_assert!(all, "every line is believed");
    }

    /// [`probe_believed`](Self::probe_believed) for many keys. Returns false, with fewer verdicts than keys,
    /// as soon as `believe` does.
    pub fn probe_many_believed<K: AsRef<[u8]>>(
        &self,
        lines: &[Line],
        keys: &[K],
        verdicts: &mut Vec<Verdict>,
        believe: &mut dyn FnMut(usize) -> bool,
    ) -> bool {
        verdicts.reserve(keys.len());
        for keys in keys.chunks(PREFETCH_BATCH) {
            let mut hashes = [(0, 0); PREFETCH_BATCH];
            for (hash, key) in hashes.iter_mut().zip(keys) {
                *hash = self.hash(key.as_ref());
                self.prefetch(lines, *hash);
            }
            for &hash in hashes.iter().take(keys.len()) {
                match self.probe_hash(lines, hash, believe) {
                    Some(verdict) => verdicts.push(verdict),
                    None => return false,
                }
            }
        }
        true
    }

    #[inline]
    fn hash(&self, key: &[u8]) -> Hash {
        match &self.0 {
            Kind::Lines(_, hasher) => (hasher.hash(key), 0),
            Kind::Bloom(plan) => plan.hash.hash(key),
        }
    }

    #[inline]
    fn prefetch(&self, lines: &[Line], hash: Hash) {
        match &self.0 {
            Kind::Lines(prober, _) => prober.prefetch(lines, hash.0),
            Kind::Bloom(plan) => plan
                .positions_of(hash)
                .take(POSITIONS_OF_AN_ABSENT_KEY)
                .filter_map(|p| lines.get((p / LINE_BITS as u64) as usize))
                .for_each(prefetch),
        }
    }

    #[inline]
    fn probe_hash(
        &self,
        lines: &[Line],
        hash: Hash,
        believe: &mut dyn FnMut(usize) -> bool,
    ) -> Option<Verdict> {
        match &self.0 {
            Kind::Lines(prober, _) => prober.probe_believed(lines, hash.0, believe),
            Kind::Bloom(plan) => {
                for position in plan.positions_of(hash) {
                    if !believe((position / LINE_BITS as u64) as usize) {
                        return None;
                    }
                    if !is_set(lines, position) {
                        return Some(Verdict::Absent);
                    }
                }
                Some(Verdict::Maybe)
            }
        }
    }
}
