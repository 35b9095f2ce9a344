//! Random calls against a plain model, with reopening in between.

use super::*;
use std::collections::BTreeMap;

#[derive(Default)]
struct Plain {
    filters: BTreeMap<(u8, String), PlainFilter>,
}

struct PlainFilter {
    parameters: Parameters,
    items: BTreeMap<String, u64>,
    expires_at: Option<u64>,
}

impl PlainFilter {
    fn total(&self) -> u64 {
        self.items.values().sum()
    }

    /// What becomes of each item of a command; `None` if the command is refused.
    fn apply(&mut self, op: ItemOp, items: &[&str]) -> Option<Vec<ItemOutcome>> {
        let grows = op != ItemOp::Remove && self.parameters.kind() == Kind::Cuckoo;
        if grows && self.parameters.parts(self.total()) >= 3 {
            return None;
        }
        let mut outcomes = Vec::new();
        for item in items {
            let total = self.total();
            let count = self.items.entry((*item).to_owned()).or_default();
            let outcome = match op {
                ItemOp::AddNew if *count > 0 => ItemOutcome::Unchanged,
                ItemOp::Remove if *count == 0 => ItemOutcome::Unchanged,
                ItemOp::Remove => {
                    *count -= 1;
                    ItemOutcome::Changed
                }
                _ if self.parameters.is_full(total) => ItemOutcome::Full,
                _ => {
                    *count += 1;
                    ItemOutcome::Changed
                }
            };
            outcomes.push(outcome);
            if outcome == ItemOutcome::Full && self.parameters.kind() == Kind::Bloom {
                break;
            }
        }
        Some(outcomes)
    }
}

fn reopen(path: &Path, clock: &Hand) -> Filters {
    let filters = open(path, clock);
    filters.set_max_expansions(3);
    filters
}

fn random_parameters(rng: &mut fastrand::Rng) -> Parameters {
    if rng.bool() {
        let expansion = [None, Some(1), Some(2)][rng.usize(..3)];
        Parameters::Bloom(Bloom::new(0.01, rng.u64(1..40), expansion).unwrap())
    } else {
        Parameters::Cuckoo(Cuckoo::new(rng.u64(4..40), 2, 20, rng.u16(..3)).unwrap())
    }
}

fn check(filters: &Filters, plain: &Plain, items: &[String]) {
    for database in 0..2 {
        let (page, next) = filters.page(database, 0, usize::MAX, usize::MAX);
        assert_eq!(next, None);
        let mut names: Vec<_> =
            page.iter().map(|(name, _)| String::from_utf8(name.clone()).unwrap()).collect();
        names.sort();
        let expected = plain.filters.keys().filter(|(its, _)| *its == database).map(|(_, name)| name);
        assert!(names.iter().eq(expected), "{names:?}");
        for (name, filter) in page {
            let expected = &plain.filters[&(database, String::from_utf8(name).unwrap())];
            let hashes: Vec<u128> = items.iter().map(|item| filter.hash(item.as_bytes())).collect();
            let wanted: Vec<u64> =
                items.iter().map(|item| expected.items.get(item).copied().unwrap_or(0)).collect();
            assert_eq!(filters.counts(&filter, &hashes).unwrap(), wanted);
            let is_there: Vec<bool> = wanted.iter().map(|count| *count > 0).collect();
            assert_eq!(filters.contains(&filter, items).unwrap(), is_there);
            assert_eq!((filter.items(), *filter.parameters()), (expected.total(), expected.parameters));
            assert_eq!(filter.expires_at(), expected.expires_at);
        }
    }
    let rows: usize =
        plain.filters.values().map(|filter| filter.items.values().filter(|n| **n > 0).count()).sum();
    filters.delete_expired().unwrap();
    assert_eq!(filters.items.iter().count().unwrap(), rows as u64, "no row is left over");
}

#[test]
fn random_calls_agree_with_a_plain_model() {
    for seed in 0..24 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let dir = tempfile::tempdir().unwrap();
        let clock = Hand::at(1 << 40);
        let (mut filters, mut plain) = (reopen(dir.path(), &clock), Plain::default());
        let items: Vec<String> = (0..60).map(|n| format!("item {n}")).collect();
        for _ in 0..600 {
            let now = clock.0.load(Relaxed);
            plain.filters.retain(|_, filter| filter.expires_at.is_none_or(|at| at > now));
            let (database, name) = (rng.u8(..2), format!("f{}", rng.u8(..6)));
            let place = (database, name.clone());
            let name = name.as_bytes();
            match rng.u8(..100) {
                0..15 => {
                    let parameters = random_parameters(&mut rng);
                    let is_new =
                        matches!(filters.create(database, name, parameters).unwrap(), Created::New(_));
                    assert_eq!(is_new, !plain.filters.contains_key(&place));
                    let new = PlainFilter { parameters, items: BTreeMap::new(), expires_at: None };
                    plain.filters.entry(place).or_insert(new);
                }
                15..70 => {
                    let Some(filter) = filters.find(database, name) else {
                        assert!(!plain.filters.contains_key(&place));
                        continue;
                    };
                    let op = match filter.kind() {
                        Kind::Bloom => ItemOp::AddNew,
                        Kind::Cuckoo => [ItemOp::AddNew, ItemOp::Add, ItemOp::Remove][rng.usize(..3)],
                    };
                    let chosen: Vec<&str> =
                        (0..rng.usize(1..12)).map(|_| items[rng.usize(..60)].as_str()).collect();
                    let expected = plain.filters.get_mut(&place).unwrap().apply(op, &chosen);
                    assert_eq!(apply(&filters, &filter, op, &chosen).ok(), expected, "seed {seed}");
                }
                70..76 => {
                    let deleted = filters.delete(database, &[name]).unwrap();
                    assert_eq!(deleted == 1, plain.filters.remove(&place).is_some());
                }
                76..82 => {
                    let to = format!("f{}", rng.u8(..6));
                    match (filters.rename(database, name, to.as_bytes(), false), plain.filters.remove(&place))
                    {
                        (Ok(renamed), Some(filter)) => {
                            assert!(renamed);
                            plain.filters.insert((database, to), filter);
                        }
                        (Err(Refusal::NotFound), None) => {}
                        (found, _) => panic!("{found:?}"),
                    }
                }
                82..88 => {
                    let until = (rng.u8(..3) > 0).then(|| now + rng.u64(..20));
                    let is_set = filters.set_expiry(database, name, until, |_| true).unwrap();
                    assert_eq!(is_set, plain.filters.contains_key(&place));
                    if let Some(filter) = plain.filters.get_mut(&place) {
                        filter.expires_at = until;
                    }
                    plain.filters.retain(|_, filter| filter.expires_at.is_none_or(|at| at > now));
                }
                88..92 => clock.advance(rng.u64(..8)),
                92 => {
                    let which = [None, Some(0), Some(1)][rng.usize(..3)];
                    filters.flush(which).unwrap();
                    plain.filters.retain(|(its, _), _| which.is_some_and(|which| *its != which));
                }
                93..95 => {
                    drop(filters);
                    filters = reopen(dir.path(), &clock);
                }
                95 => filters.db().flush().unwrap(),
                _ => check(&filters, &plain, &items),
            }
        }
    }
}
