//! What a line requires of a key once its first lanes fit: the other lanes, and checks across all of them.

use super::control::Control;
use super::equation::{CHECKS_AT, Products, passes};
use super::layout::{Layout, Pieces, WORD_BITS, WORDS, Words, mask, words_of};
use crate::line::Line;

/// Whether a line whose first lanes satisfy the equation also satisfies the rest and the key's checks.
#[inline(always)]
pub(super) fn fits_wholly<L: Layout>(line: &Line, products: Products, place: u64, control: u32) -> bool {
    let words = words_of(line).map(|word| word & mask(WORD_BITS));
    let checks = Control::decode::<L>(control).checks(place);
    // Most keys have one check or none, which is hard to predict.
    let first = passes::<L>(&words, &products, 0) | (checks == 0);
    let rest = L::fits_rest(&words, &products.equation::<L>());
    first & rest && (1..checks).all(|check| passes::<L>(&words, &products, check))
}

/// The words of a line, masked with [`read_by_rest`], in vector registers.
pub(super) trait Vectors {
    /// The parities for the first checks, as many as needed or more, the first lowest.
    fn checks(&self, coefficients: u64, needed: usize) -> u32;
    /// For each word, the parity of its piece's rows under the coefficients, word 0 lowest.
    fn parities(&self, rows: u64, pieces: &Pieces) -> u8;
}

/// For each word, the bits that checks read. (Lines of seven lanes have a word that checks do not read, and
/// no lanes in pieces.)
pub(super) const fn read_by_rest<L: Layout>() -> Words {
    let (mut masks, mut word) = ([0; WORDS], 0);
    while word < L::CROSSED_WORDS {
        masks[word] = mask(WORD_BITS);
        word += 1;
    }
    masks
}

/// [`fits_wholly`] in vectors. Computes unneeded checks, because their number is hard to predict.
#[inline(always)]
pub(super) fn vectors_fit_wholly<L: Layout>(
    words: &impl Vectors,
    products: Products,
    place: u64,
    control: u32,
) -> bool {
    let mut failures = 0;
    if L::LANES > WORDS {
        let equation = products.equation::<L>();
        let mut of_pieces = [0; 2];
        for (parities, pieces) in of_pieces.iter_mut().zip(L::PIECES) {
            *parities = words.parities(equation.low, pieces).into();
        }
        failures |= L::parities_of_rest(of_pieces) ^ equation.fingerprint >> WORDS;
    }
    let checks = Control::decode::<L>(control).checks(place);
    let wanted = (products.fingerprint >> CHECKS_AT) as u32;
    failures |= (words.checks(products.coefficients, checks) ^ wanted) & !(u32::MAX << checks);
    failures == 0
}
