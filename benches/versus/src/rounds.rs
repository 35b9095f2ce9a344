//! Figures from several rounds.

/// The median of figures in any order; `None` if there are none.
pub fn median(mut figures: Vec<f64>) -> Option<f64> {
    figures.sort_by(f64::total_cmp);
    let at = figures.len() / 2;
    match figures.len() {
        0 => None,
        n if n % 2 == 1 => Some(figures[at]),
        _ => Some((figures[at - 1] + figures[at]) / 2.0),
    }
}

/// The median of the ratios of each round: `base` divided by `of`, which have the numbers of their rounds.
/// Rounds that one of them lacks do not count.
pub fn ratio(base: Vec<(u64, f64)>, of: Vec<(u64, f64)>) -> Option<f64> {
    let base_of = |round: u64| base.iter().find(|(other, _)| *other == round).map(|(_, figure)| *figure);
    median(of.iter().filter_map(|&(round, figure)| Some(base_of(round)? / figure)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_is_the_mean_of_the_middle_two() {
        assert_eq!(median(vec![3.0, 1.0, 9.0]), Some(3.0));
        assert_eq!(median(vec![9.0, 4.0, 1.0, 2.0]), Some(3.0));
        assert_eq!(median(Vec::new()), None);
    }

    #[test]
    fn a_ratio_compares_the_rounds_that_both_have() {
        let (base, of) = (vec![(0, 300.0), (1, 900.0), (2, 400.0)], vec![(0, 100.0), (2, 200.0), (3, 1.0)]);
        assert_eq!(ratio(base.clone(), of), Some(2.5));
        assert_eq!(ratio(base, Vec::new()), None);
    }
}
