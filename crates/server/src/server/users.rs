//! Who may do what: passwords, commands and names, in the words of Redis' access control lists.
//!
//! ```text
//! user NAME [on | off] [>PASSWORD | #SHA256 | nopass]… [~PATTERN | %R~PATTERN | %W~PATTERN | allkeys]…
//!           [+COMMAND | -COMMAND | +@CATEGORY | -@CATEGORY | allcommands | nocommands]…
//! ```
//!
//! Rules apply in their order. A user starts `off`, without passwords, names and commands. Categories: `all`,
//! `read` and `write` (commands with names), `bloom`, `cuckoo`, `keyspace`, `connection`, `transaction`,
//! `admin`, `dangerous`.

use super::commands::glob;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::Arc;
use subtle::ConstantTimeEq;

/// The user that a client is before it authenticates.
pub const DEFAULT: &str = "default";
type Sha = [u8; 32];

/// The commands that rules name.
pub trait RuledCommands {
    fn count(&self) -> usize;
    /// In capitals.
    fn name(&self, position: usize) -> &str;
    fn is_in(&self, position: usize, category: &str) -> bool;
}

/// One user.
#[derive(Debug, Clone)]
pub struct User {
    pub name: String,
    is_on: bool,
    /// Any password is right.
    takes_any: bool,
    passwords: Vec<Sha>,
    names: Vec<NameRule>,
    /// By the position of the command in the table.
    commands: Vec<bool>,
}

/// Names that a user may read or change.
#[derive(Debug, Clone)]
struct NameRule {
    pattern: Vec<u8>,
    reads: bool,
    writes: bool,
}

/// Who there is.
#[derive(Debug, Clone)]
pub struct Users {
    by_name: BTreeMap<String, Arc<User>>,
    /// Shows what a wrong password costs for a user that does not exist, too.
    nobody: User,
}

impl User {
    fn new(name: &str, commands: &(impl RuledCommands + ?Sized)) -> Self {
        User {
            name: name.to_owned(),
            is_on: false,
            takes_any: false,
            passwords: Vec::new(),
            names: Vec::new(),
            commands: vec![false; commands.count()],
        }
    }

    fn apply(&mut self, rule: &str, commands: &(impl RuledCommands + ?Sized)) -> Result<(), String> {
        let everything = |user: &mut User, is_allowed| user.commands.fill(is_allowed);
        match rule {
            "on" => self.is_on = true,
            "off" => self.is_on = false,
            "nopass" => self.takes_any = true,
            "allkeys" => self.add_names("*", true, true),
            "allcommands" => everything(self, true),
            "nocommands" => everything(self, false),
            _ => {
                if let Some(password) = rule.strip_prefix('>').filter(|password| !password.is_empty()) {
                    self.passwords.push(Sha256::digest(password).into());
                } else if let Some(sha) = rule.strip_prefix('#') {
                    self.passwords.push(sha_of(sha).ok_or("expected # and 64 hexadecimal digits")?);
                } else if let Some(pattern) = rule.strip_prefix('~') {
                    self.add_names(pattern, true, true);
                } else if let Some(pattern) = rule.strip_prefix("%R~") {
                    self.add_names(pattern, true, false);
                } else if let Some(pattern) = rule.strip_prefix("%W~") {
                    self.add_names(pattern, false, true);
                } else if let Some(pattern) = rule.strip_prefix("%RW~") {
                    self.add_names(pattern, true, true);
                } else if let Some(word) = rule.strip_prefix('+') {
                    self.set_commands(word, true, commands)?;
                } else if let Some(word) = rule.strip_prefix('-') {
                    self.set_commands(word, false, commands)?;
                } else {
                    return Err("unknown rule".into());
                }
            }
        }
        Ok(())
    }

    fn add_names(&mut self, pattern: &str, reads: bool, writes: bool) {
        self.names.push(NameRule { pattern: pattern.as_bytes().to_vec(), reads, writes });
    }

    fn set_commands(
        &mut self,
        word: &str,
        is_allowed: bool,
        commands: &(impl RuledCommands + ?Sized),
    ) -> Result<(), String> {
        let mut is_known = false;
        for (position, slot) in self.commands.iter_mut().enumerate() {
            let is_meant = match word.strip_prefix('@') {
                Some(category) => commands.is_in(position, category),
                None => commands.name(position).eq_ignore_ascii_case(word),
            };
            if is_meant {
                *slot = is_allowed;
            }
            is_known |= is_meant;
        }
        if is_known { Ok(()) } else { Err("no such command or category".into()) }
    }

    /// Whether the password is right. Takes the same time for each of the user's passwords.
    fn takes(&self, password: &[u8]) -> bool {
        let given: Sha = Sha256::digest(password).into();
        let is_right =
            self.passwords.iter().fold(false, |is_right, sha| is_right | bool::from(sha.ct_eq(&given)));
        self.is_on && (is_right || self.takes_any)
    }

    /// Whether the user may run a command, given its position in the table.
    pub fn may_run(&self, position: usize) -> bool {
        self.commands.get(position).copied().unwrap_or(false)
    }

    /// Whether the user may read or change what has this name.
    pub fn may_use(&self, name: &[u8], changes: bool) -> bool {
        let fits = |rule: &NameRule| if changes { rule.writes } else { rule.reads };
        self.names.iter().any(|rule| fits(rule) && glob::matches(&rule.pattern, name))
    }

    /// The rules, without passwords.
    pub fn describe(&self, commands: &(impl RuledCommands + ?Sized)) -> String {
        let mut words = vec![format!("user {}", self.name), if self.is_on { "on" } else { "off" }.to_owned()];
        if self.takes_any {
            words.push("nopass".into());
        }
        for rule in &self.names {
            let mark = match (rule.reads, rule.writes) {
                (true, false) => "%R~",
                (false, true) => "%W~",
                _ => "~",
            };
            words.push(format!("{mark}{}", rule.pattern.escape_ascii()));
        }
        let allowed = self.commands.iter().enumerate().filter(|(_, is_allowed)| **is_allowed);
        if self.commands.iter().all(|is_allowed| *is_allowed) {
            words.push("+@all".into());
        } else {
            words.push("-@all".into());
            words.extend(
                allowed.map(|(position, _)| format!("+{}", commands.name(position).to_ascii_lowercase())),
            );
        }
        words.join(" ")
    }
}

fn sha_of(hex: &str) -> Option<Sha> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let bytes: Option<Vec<u8>> = hex
        .as_bytes()
        .chunks(2)
        .map(|pair| match pair {
            [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
            _ => None,
        })
        .collect();
    bytes?.try_into().ok()
}

impl Users {
    /// One user who may do everything, with these passwords; without one, anybody is that user.
    pub fn with_passwords(passwords: &[Vec<u8>], commands: &(impl RuledCommands + ?Sized)) -> Self {
        let mut user = User::new(DEFAULT, commands);
        (user.is_on, user.takes_any) = (true, passwords.is_empty());
        user.passwords = passwords.iter().map(|password| Sha256::digest(password).into()).collect();
        user.add_names("*", true, true);
        user.commands.fill(true);
        Users::of([user], commands)
    }

    /// The users of a file; `#` begins a comment at the start of a line. Returns the number of the wrong line
    /// and what is wrong.
    pub fn parse(text: &str, commands: &(impl RuledCommands + ?Sized)) -> Result<Self, (usize, String)> {
        let mut users: Vec<User> = Vec::new();
        for (n, line) in text.lines().enumerate().map(|(n, line)| (n + 1, line.trim())) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let mut words = line.split_ascii_whitespace();
            let (Some("user"), Some(name)) = (words.next(), words.next()) else {
                return Err((n, "expected `user NAME` and its rules".into()));
            };
            if users.iter().any(|user| user.name == name) {
                return Err((n, format!("the user {name} was defined before")));
            }
            let mut user = User::new(name, commands);
            for (at, rule) in words.enumerate() {
                // The rule may be a password.
                user.apply(rule, commands)
                    .map_err(|why| (n, format!("rule {} of user {name}: {why}", at + 1)))?;
            }
            if user.is_on && !user.takes_any && user.passwords.is_empty() {
                return Err((n, format!("the user {name} is on but has no password: give one, or `nopass`")));
            }
            users.push(user);
        }
        if users.is_empty() { Err((1, "it has no user".into())) } else { Ok(Users::of(users, commands)) }
    }

    fn of(users: impl IntoIterator<Item = User>, commands: &(impl RuledCommands + ?Sized)) -> Self {
        let by_name = users.into_iter().map(|user| (user.name.clone(), Arc::new(user))).collect();
        let mut nobody = User::new("", commands);
        nobody.passwords.push([0; 32]);
        Users { by_name, nobody }
    }

    /// The user that a client is without authenticating, if that is possible.
    pub fn unauthenticated(&self) -> Option<Arc<User>> {
        self.by_name.get(DEFAULT).filter(|user| user.is_on && user.takes_any).cloned()
    }

    /// Whether every client has to authenticate.
    pub fn need_password(&self) -> bool {
        self.by_name.values().all(|user| !user.takes_any)
    }

    /// The user with this name and password.
    pub fn log_in(&self, name: &[u8], password: &[u8]) -> Option<Arc<User>> {
        let user = std::str::from_utf8(name).ok().and_then(|name| self.by_name.get(name));
        match user {
            Some(user) => user.takes(password).then(|| Arc::clone(user)),
            None => {
                let _ = self.nobody.takes(password);
                None
            }
        }
    }

    /// All of them, by name.
    pub fn all(&self) -> impl Iterator<Item = &User> {
        self.by_name.values().map(|user| &**user)
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::COMMANDS;
    use super::*;

    fn may(user: &User, command: &str, name: &str) -> bool {
        let position = COMMANDS.iter().position(|its| its.is_named(command.as_bytes())).unwrap();
        user.may_run(position)
            && (name.is_empty() || user.may_use(name.as_bytes(), COMMANDS[position].is_change()))
    }

    #[test]
    fn rules_apply_in_their_order() {
        let text = "# who\nuser reader on >secret >next %R~songs:* +@read +ping -bf.info\n\n\
                    user writer on #2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b ~songs:* +@all -@dangerous\n\
                    user default off nopass\n";
        let users = Users::parse(text, COMMANDS).unwrap();
        assert!(users.unauthenticated().is_none());
        for password in ["secret", "next"] {
            assert_eq!(users.log_in(b"reader", password.as_bytes()).unwrap().name, "reader");
        }
        assert!(users.log_in(b"reader", b"other").is_none() && users.log_in(b"nobody", b"secret").is_none());
        assert!(users.log_in(b"default", b"").is_none(), "it is off");
        let reader = users.log_in(b"reader", b"secret").unwrap();
        for (command, name, expected) in [
            ("BF.EXISTS", "songs:1", true),
            ("BF.EXISTS", "other", false),
            ("BF.ADD", "songs:1", false),
            ("BF.INFO", "songs:1", false),
            ("PING", "", true),
            ("CONFIG", "", false),
        ] {
            assert_eq!(may(&reader, command, name), expected, "{command} {name}");
        }
        let writer = users.log_in(b"writer", b"secret").unwrap();
        assert!(
            may(&writer, "BF.ADD", "songs:1") && !may(&writer, "FLUSHALL", "") && !may(&writer, "DEL", "x")
        );
        assert!(!writer.describe(COMMANDS).contains("2bb80d"));
    }

    #[test]
    fn wrong_files_are_refused_with_the_line() {
        for (text, line, what) in [
            ("", 1, "no user"),
            ("user a on nopass\nnonsense", 2, "expected `user NAME`"),
            ("user a on nopass\nuser a off", 2, "defined before"),
            ("user a on", 1, "no password"),
            ("user a on >x +nothing", 1, "rule 3 of user a: no such command"),
            ("user a on >x +@nothing", 1, "no such command or category"),
            ("user a on #abc", 1, "64 hexadecimal"),
            ("user a sesame", 1, "rule 1 of user a: unknown rule"),
        ] {
            let (found, why) = Users::parse(text, COMMANDS).unwrap_err();
            assert!(found == line && why.contains(what), "{text}: {found} {why}");
            assert!(!why.contains("sesame"), "no password is shown");
        }
    }

    #[test]
    fn one_user_with_passwords_may_do_everything() {
        let users = Users::with_passwords(&[b"old".to_vec(), b"new".to_vec()], COMMANDS);
        assert!(users.unauthenticated().is_none() && users.need_password());
        assert!(users.log_in(b"default", b"old").is_some() && users.log_in(b"default", b"new").is_some());
        assert!(may(&users.log_in(b"default", b"old").unwrap(), "FLUSHALL", ""));
        let open = Users::with_passwords(&[], COMMANDS);
        assert!(open.unauthenticated().is_some() && !open.need_password());
        assert!(open.log_in(b"default", b"anything").is_some());
    }
}
