//! Songs that exist, and titles that do not.

/// The result of every step of the example.
pub type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

/// The fixture's songs and any number of generated ones.
pub struct Catalogue {
    fixture: Vec<(String, i64)>,
    words: Vec<String>,
    generated: u64,
}

impl Catalogue {
    pub fn new(generated: u64) -> Result<Self> {
        let mut fixture = Vec::new();
        for line in include_str!("../../../../fixtures/songs.tsv").lines().skip(1) {
            let mut columns = line.split('\t').skip(1);
            let (Some(title), Some(year)) = (columns.next(), columns.next()) else {
                return Err(format!("not a song: {line}").into());
            };
            fixture.push((title.to_owned(), year.parse()?));
        }
        let mut words: Vec<String> =
            fixture.iter().flat_map(|(title, _)| title.split(' ')).map(str::to_owned).collect();
        words.sort();
        words.dedup();
        Ok(Catalogue { fixture, words, generated })
    }

    pub fn len(&self) -> u64 {
        self.fixture.len() as u64 + self.generated
    }

    /// Every song: title and year.
    pub fn songs(&self) -> impl Iterator<Item = (String, i64)> {
        let generated = (0..self.generated).map(|i| (self.title(i), 1950 + (i % 75) as i64));
        self.fixture.iter().cloned().chain(generated)
    }

    /// Titles that no song has, made of the same words.
    pub fn missing(&self, count: u64) -> impl Iterator<Item = String> {
        (0..count).map(|i| self.title(self.generated + i))
    }

    /// Titles to look up, and whether each exists.
    pub fn questions(&self, count: u64, missing: f64) -> impl Iterator<Item = (String, bool)> {
        let mut random = fastrand::Rng::with_seed(1);
        (0..count).map(move |_| {
            if random.f64() < missing {
                (self.title(self.generated + random.u64(..self.len())), false)
            } else {
                match self.generated {
                    0 => (self.fixture[random.usize(..self.fixture.len())].0.clone(), true),
                    generated => (self.title(random.u64(..generated)), true),
                }
            }
        })
    }

    /// The title for a number: two words of the fixture's titles and the number, so that all titles differ.
    fn title(&self, number: u64) -> String {
        let mut random = fastrand::Rng::with_seed(number);
        let mut word = || self.words[random.usize(..self.words.len())].as_str();
        format!("{} {} {number}", word(), word())
    }
}
