//! Which vector instructions this machine has, and the prefetch hint.

/// An instruction set that this machine has. A value of it is the proof: it comes from detection only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Isa(Level);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Scalar,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Isa {
    /// Plain code, on every machine: the oracle of the others.
    pub const SCALAR: Isa = Isa(Level::Scalar);

    /// All instruction sets of this machine, slowest first.
    pub fn available() -> impl Iterator<Item = Isa> {
        let detected = [
            Some(Level::Scalar),
            #[cfg(target_arch = "x86_64")]
            has_avx2().then_some(Level::Avx2),
            #[cfg(target_arch = "x86_64")]
            has_avx512().then_some(Level::Avx512),
        ];
        detected.into_iter().flatten().map(Isa)
    }

    /// The fastest one. Detection is cached by the standard library; keep the value beside what it serves all the same.
    pub fn best() -> Isa {
        Isa::available().last().unwrap_or(Isa::SCALAR)
    }

    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self.0 {
            Level::Scalar => "scalar",
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => "avx512",
        }
    }

    #[inline]
    pub(super) fn level(self) -> Level {
        self.0
    }
}

/// AVX2 and what every machine with it has: Haswell, Zen and newer.
#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("avx2") && has!("popcnt") && has!("bmi2")
}

/// AVX-512 with population counts in vectors: Ice Lake, Zen 4 and newer.
#[cfg(target_arch = "x86_64")]
fn has_avx512() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has_avx2() && has!("avx512f") && has!("avx512vl") && has!("avx512dq") && has!("avx512vpopcntdq")
}

/// Asks the processor to load a line into its second cache; no effect where there is no such hint. (Lines from beyond the caches came
/// faster so than into the first one where this was tried, on an Intel Xeon.)
#[inline]
pub(super) fn prefetch<T>(line: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: a hint with no effect on memory, SSE is part of x86-64, and the pointer comes from a reference.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(std::ptr::from_ref(line).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = line;
}
