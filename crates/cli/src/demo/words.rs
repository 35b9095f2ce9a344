//! The words of generated titles. Each list's length is a power of two, so bits of an index select words.

/// First names of singers.
#[rustfmt::skip] // a word a line would hide the lists
pub const FIRST_NAMES: [&str; 64] = [
    "Ada", "Alma", "Amos", "Anita", "Arlo", "Bella", "Bessie", "Billie", "Bonnie", "Carla", "Cecil", "Chet",
    "Clara", "Cleo", "Cora", "Curtis", "Daisy", "Della", "Dexter", "Dinah", "Donna", "Earl", "Eddie", "Edith",
    "Elsa", "Esther", "Etta", "Felix", "Floyd", "Frankie", "Gene", "Gloria", "Hank", "Hattie", "Hazel",
    "Hugo", "Ida", "Irma", "Ivan", "Jasper", "Josie", "June", "Lena", "Leon", "Lola", "Lou", "Mabel",
    "Marvin", "Mavis", "Minnie", "Nadia", "Nell", "Odetta", "Otis", "Pearl", "Ray", "Rita", "Rosa", "Ruby",
    "Sadie", "Sid", "Stella", "Vera", "Wilma",
];

/// Last names of singers.
#[rustfmt::skip] // a word a line would hide the lists
pub const LAST_NAMES: [&str; 128] = [
    "Abbott", "Adair", "Alvarez", "Archer", "Ashby", "Baker", "Banks", "Barlow", "Bauer", "Beckett", "Bell",
    "Bishop", "Blake", "Boone", "Bowman", "Bradley", "Brandt", "Brooks", "Burke", "Caldwell", "Carver",
    "Castillo", "Chandler", "Chapman", "Clay", "Cole", "Conway", "Cooper", "Crane", "Cruz", "Dalton",
    "Daniels", "Darling", "Dawson", "Delgado", "Doyle", "Drake", "Dufresne", "Duran", "Eastman", "Ellison",
    "Emerson", "Farrell", "Faulkner", "Fields", "Finch", "Fischer", "Fontaine", "Foster", "Fox", "Frost",
    "Fuentes", "Garland", "Gibbs", "Gillespie", "Grady", "Grant", "Graves", "Greer", "Hale", "Hammond",
    "Harlan", "Hart", "Hayes", "Holloway", "Horne", "Hudson", "Hunter", "Ingram", "Irving", "Jansen",
    "Jarvis", "Keller", "Kendrick", "Kincaid", "Lambert", "Lane", "Larkin", "Laurent", "Ledford", "Lindqvist",
    "Locke", "Lockwood", "Lowell", "Madigan", "Maddox", "Malone", "Marlowe", "Maynard", "McCoy", "Mercer",
    "Merritt", "Monroe", "Moody", "Morrow", "Nash", "Navarro", "Novak", "Oakley", "Ortega", "Osborne", "Page",
    "Parrish", "Pierce", "Porter", "Quinn", "Ramsey", "Reyes", "Rhodes", "Ritter", "Rivers", "Rosario",
    "Rowe", "Sawyer", "Sharpe", "Shepard", "Silva", "Slater", "Sloan", "Sterling", "Stone", "Sutton", "Tate",
    "Thorne", "Valentine", "Vance", "Walker", "Winters",
];

/// First words of bands' names.
#[rustfmt::skip] // a word a line would hide the lists
pub const BAND_ADJECTIVES: [&str; 64] = [
    "Amber", "Ancient", "Atomic", "Backyard", "Blue", "Brass", "Broken", "Burning", "Cardinal", "Carbon",
    "Chrome", "Coastal", "Copper", "Crimson", "Crooked", "Crystal", "Desert", "Distant", "Double", "Electric",
    "Empty", "Faded", "Flying", "Foggy", "Forgotten", "Gentle", "Ghost", "Gilded", "Glass", "Golden",
    "Hollow", "Honey", "Indigo", "Iron", "Ivory", "Jade", "Jukebox", "Kerosene", "Lazy", "Lonesome", "Lucky",
    "Lunar", "Marble", "Midnight", "Neon", "Northern", "Paper", "Phantom", "Plastic", "Polar", "Purple",
    "Quiet", "Restless", "Rusty", "Savage", "Scarlet", "Secret", "Silver", "Solar", "Southern", "Static",
    "Velvet", "Wandering", "Wooden",
];

/// Last words of bands' names.
#[rustfmt::skip] // a word a line would hide the lists
pub const BAND_NOUNS: [&str; 128] = [
    "Acrobats", "Admirals", "Airwaves", "Almanacs", "Anchors", "Animals", "Antennas", "Apostles", "Arrows",
    "Astronauts", "Avenues", "Bandits", "Barons", "Beacons", "Bells", "Birds", "Bishops", "Blackbirds",
    "Boxers", "Brothers", "Butterflies", "Cadillacs", "Candles", "Caravans", "Cardinals", "Castaways",
    "Cathedrals", "Chandeliers", "Chimneys", "Circuits", "Clocks", "Clouds", "Coyotes", "Cousins", "Crows",
    "Dancers", "Daughters", "Diamonds", "Dogs", "Dolphins", "Dreamers", "Drifters", "Eagles", "Elevators",
    "Embers", "Engines", "Explorers", "Falcons", "Fables", "Fences", "Ferries", "Fireflies", "Flamingos",
    "Foxes", "Gamblers", "Gardens", "Giants", "Gulls", "Hammers", "Harbors", "Hearts", "Herons", "Highways",
    "Horses", "Hounds", "Hunters", "Islands", "Jackals", "Jets", "Keys", "Kings", "Kites", "Lanterns",
    "Leopards", "Lions", "Machines", "Magnets", "Magpies", "Maidens", "Mirrors", "Monks", "Motors",
    "Mountains", "Navigators", "Nomads", "Orphans", "Otters", "Owls", "Painters", "Palaces", "Panthers",
    "Parrots", "Pilots", "Pirates", "Planets", "Poets", "Preachers", "Prophets", "Radios", "Ravens", "Rebels",
    "Rivers", "Rockets", "Sailors", "Saints", "Satellites", "Shadows", "Sheriffs", "Signals", "Sirens",
    "Sisters", "Sparrows", "Spiders", "Stars", "Strangers", "Swallows", "Telephones", "Thieves", "Tigers",
    "Towers", "Trains", "Travelers", "Vagabonds", "Villains", "Wagons", "Whales", "Windows", "Wolves",
];

/// First words of titles.
#[rustfmt::skip] // a word a line would hide the lists
pub const ADJECTIVES: [&str; 64] = [
    "Aching", "Bitter", "Black", "Blinding", "Blue", "Bright", "Broken", "Burning", "Changing", "Cold",
    "Constant", "Crazy", "Dancing", "Dark", "Dead", "Deep", "Distant", "Endless", "Fading", "Falling",
    "Final", "First", "Foolish", "Forgotten", "Fragile", "Free", "Golden", "Gray", "Green", "Heavy", "Hidden",
    "Hollow", "Holy", "Last", "Lonely", "Lost", "Lucky", "Midnight", "Morning", "New", "Old", "Open", "Pale",
    "Perfect", "Quiet", "Red", "Restless", "Running", "Sacred", "Second", "Secret", "Shining", "Silent",
    "Silver", "Simple", "Sleeping", "Slow", "Strange", "Summer", "Sweet", "True", "Twisted", "White", "Wild",
];

/// Last words of titles.
#[rustfmt::skip] // a word a line would hide the lists
pub const NOUNS: [&str; 128] = [
    "Angel", "Answer", "Arrow", "Ashes", "Autumn", "Avenue", "Ballad", "Blood", "Blossom", "Boat", "Bones",
    "Bottle", "Boulevard", "Bridge", "Candle", "Carnival", "Ceiling", "Circle", "City", "Clock", "Cloud",
    "Coast", "Corner", "Crown", "Dance", "Daughter", "Dawn", "Daydream", "Desire", "Diamond", "Door", "Dream",
    "Dust", "Echo", "Eclipse", "Ember", "Eyes", "Fever", "Fire", "Flame", "Flower", "Fool", "Freeway",
    "Friend", "Game", "Garden", "Ghost", "Girl", "Guitar", "Harbor", "Heart", "Heaven", "Highway", "Home",
    "Honey", "Horizon", "Hour", "House", "Hunger", "Hurricane", "Island", "Journey", "Kiss", "Ladder", "Lady",
    "Lantern", "Letter", "Lie", "Light", "Lightning", "Lover", "Lullaby", "Machine", "Memory", "Mercy",
    "Mirror", "Moon", "Mountain", "Music", "Name", "Night", "Ocean", "Paradise", "Photograph", "Pillow",
    "Promise", "Queen", "Radio", "Rain", "Rainbow", "Reason", "Rhythm", "River", "Road", "Rose", "Sailor",
    "Satellite", "Scar", "Sea", "Season", "Secret", "Shadow", "Shelter", "Sky", "Smoke", "Snow", "Soldier",
    "Song", "Soul", "Spark", "Spring", "Star", "Station", "Stone", "Storm", "Stranger", "Street", "Sun",
    "Sunday", "Telephone", "Thunder", "Tide", "Train", "Valley", "Voice", "Water", "Window", "World",
];

/// What titles tell people to do.
#[rustfmt::skip] // a word a line would hide the lists
pub const VERBS: [&str; 64] = [
    "Ask", "Become", "Believe", "Blame", "Break", "Bring", "Burn", "Call", "Carry", "Catch", "Chase",
    "Choose", "Close", "Count", "Cross", "Cry", "Cut", "Dream", "Drive", "Drown", "Face", "Fear", "Feed",
    "Feel", "Fight", "Find", "Follow", "Forget", "Give", "Haunt", "Hear", "Hide", "Hold", "Keep", "Kill",
    "Know", "Lead", "Learn", "Leave", "Light", "Lose", "Love", "Miss", "Move", "Name", "Need", "Open", "Own",
    "Paint", "Pass", "Play", "Pull", "Push", "Reach", "Remember", "Ride", "Sail", "Save", "Sell", "Shake",
    "Sing", "Steal", "Take", "Watch",
];
