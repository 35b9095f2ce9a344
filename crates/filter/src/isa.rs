//! Detection of vector instructions, and the choice of the code compiled for them.

/// An instruction set that this CPU has. Only detection creates values, so a value is proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Isa(Instructions);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Instructions {
    Scalar,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Isa {
    /// Scalar code, available on every CPU. The tests compare the vector code with it.
    pub const SCALAR: Isa = Isa(Instructions::Scalar);

    /// All instruction sets of this CPU, slowest first.
    pub fn available() -> impl Iterator<Item = Isa> {
        let detected = [
            Some(Instructions::Scalar),
            #[cfg(target_arch = "x86_64")]
            has_avx2().then_some(Instructions::Avx2),
            #[cfg(target_arch = "x86_64")]
            has_avx512().then_some(Instructions::Avx512),
        ];
        detected.into_iter().flatten().map(Isa)
    }

    /// The fastest instruction set. The standard library caches detection, but hot code should keep this.
    pub fn best() -> Isa {
        Isa::available().last().unwrap_or(Isa::SCALAR)
    }

    /// The display name: "scalar", "avx2" or "avx512".
    pub fn name(self) -> &'static str {
        match self.0 {
            Instructions::Scalar => "scalar",
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx512 => "avx512",
        }
    }

    #[inline]
    pub(crate) fn instructions(self) -> Instructions {
        self.0
    }
}

/// AVX2 and what every CPU has along with it: Haswell, Zen and newer.
#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("avx2") && has!("popcnt") && has!("bmi2")
}

/// AVX-512 with vector population counts, byte permutations and bit matrices: Ice Lake, Zen 4 and newer.
#[cfg(target_arch = "x86_64")]
fn has_avx512() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has_avx2()
        && has!("avx512f")
        && has!("avx512vl")
        && has!("avx512dq")
        && has!("avx512vbmi")
        && has!("avx512vpopcntdq")
        && has!("gfni")
}

/// `on_isa!(isa, module => expression)` evaluates the expression with `module` naming the sibling module
/// compiled for `isa`: `scalar`, `avx2` or `avx512`.
macro_rules! on_isa {
    ($isa:expr, $module:ident => $body:expr) => {
        match $isa.instructions() {
            $crate::isa::Instructions::Scalar => {
                use super::scalar as $module;
                $body
            }
            #[cfg(target_arch = "x86_64")]
            $crate::isa::Instructions::Avx2 => {
                use super::avx2 as $module;
                $body
            }
            #[cfg(target_arch = "x86_64")]
            $crate::isa::Instructions::Avx512 => {
                use super::avx512 as $module;
                $body
            }
        }
    };
}
pub(crate) use on_isa;
