//! Which file of a crate imports which one by a path.
//!
//! A path (`crate::a::B`, `super::B`, `child::B`, or `a::B` after `use crate::a`) counts as an import of the
//! file that defines `B`, however many `mod.rs` re-export it. A re-export by itself imports nothing. For
//! methods, see `methods.rs`.

use std::collections::{BTreeMap, BTreeSet};

use crate::Files;
use crate::source::{begins_path, closing, is_ident, split_by_comma, tokens, without_tests};

/// A module: a file, or a block `mod name { … }` in one.
#[derive(Default)]
struct Module<'a> {
    file: &'a str,
    items: BTreeSet<&'a str>,
    uses: Vec<Use<'a>>,
    /// The paths and the single names in its code, without `use`.
    paths: BTreeSet<Vec<&'a str>>,
    /// Its tokens, without the modules in it.
    code: Vec<&'a str>,
}

/// One name that a `use` imports; `*` for all.
struct Use<'a> {
    name: &'a str,
    path: Vec<&'a str>,
    is_reexport: bool,
}

/// The modules of a crate by their path from its root.
pub(crate) struct Modules<'a>(BTreeMap<Vec<&'a str>, Module<'a>>);

/// Which files a file imports, and by which names.
pub(crate) type Imports<'a> = BTreeMap<&'a str, BTreeMap<&'a str, BTreeSet<String>>>;

/// What a module defines outside of functions: the module's path from the crate's root, and the name.
pub(crate) type Item<'a> = (Vec<&'a str>, &'a str);

enum Target<'a> {
    Module(Vec<&'a str>),
    Item(Item<'a>),
}

impl<'a> Modules<'a> {
    /// For a crate's files: their text by their path below the directory of `lib.rs` or `main.rs`.
    pub(crate) fn new(files: &'a Files) -> Modules<'a> {
        let has_lib = files.contains_key("lib.rs");
        let (mut modules, mut for_tests) = (Modules(BTreeMap::new()), BTreeSet::new());
        for (file, text) in files {
            let mut path: Vec<_> = file.trim_end_matches(".rs").split('/').collect();
            if matches!(path[..], ["lib"])
                || (matches!(path[..], ["main"]) && !has_lib)
                || path.ends_with(&["mod"])
            {
                path.pop();
            }
            let (code, test_modules) = without_tests(&tokens(text));
            for name in test_modules {
                for_tests.insert([&path[..], &[name]].concat());
            }
            modules.add(file, path, &code);
        }
        modules.0.retain(|path, _| !(1..=path.len()).any(|length| for_tests.contains(&path[..length])));
        modules
    }

    fn add(&mut self, file: &'a str, path: Vec<&'a str>, code: &[&'a str]) {
        let mut module = Module { file, ..Module::default() };
        let (mut at, mut depth) = (0, 0);
        while at < code.len() {
            match code[at..] {
                ["mod", name, "{", ..] => {
                    let end = closing(code, at + 2);
                    self.add(file, [&path[..], &[name]].concat(), &code[at + 3..end - 1]);
                    at = end;
                    continue;
                }
                ["use", next, ..] if next != "<" => {
                    let end =
                        code[at..].iter().position(|token| *token == ";").map_or(code.len(), |end| at + end);
                    let is_reexport = at > 0 && matches!(code[at - 1], "pub" | ")");
                    use_tree(&code[at + 1..end], &[], is_reexport, &mut module.uses);
                    at = end;
                    continue;
                }
                ["macro_rules", "!", name, ..] => _ = module.items.insert(name),
                ["fn" | "struct" | "enum" | "trait" | "type" | "const" | "static" | "union", name, ..]
                    if depth == 0 =>
                {
                    module.items.insert(if name == "mut" { code[at + 2] } else { name });
                }
                ["{", ..] => depth += 1,
                ["}", ..] => depth -= 1,
                _ => {}
            }
            if begins_path(code, at) {
                let names = code[at..].chunks(2).take_while(|pair| pair[0].starts_with(is_ident));
                let path_length = names.clone().take_while(|pair| pair.get(1) == Some(&"::")).count() + 1;
                module.paths.insert(names.take(path_length).map(|pair| pair[0]).collect());
            }
            module.code.push(code[at]);
            at += 1;
        }
        self.0.insert(path, module);
    }

    /// By paths only.
    pub(crate) fn imports(&self) -> Imports<'a> {
        let mut imports = Imports::new();
        for (path, module) in &self.0 {
            let mentions = |name| module.paths.iter().any(|path| path[0] == name);
            let uses = module.uses.iter().filter(|used| !used.is_reexport || mentions(used.name));
            for named in uses.map(|used| &used.path).chain(&module.paths) {
                if let Some(Target::Item((home, _))) = self.resolve(path, named, 0)
                    && let file = self.0[&home].file
                    && file != module.file
                {
                    let by = imports.entry(module.file).or_default().entry(file).or_default();
                    by.insert(named.join("::"));
                }
            }
        }
        imports
    }

    /// Each file with the paths that it names, including `use`; keywords and local names count as paths.
    pub(crate) fn paths(&self) -> impl Iterator<Item = (&'a str, BTreeSet<&[&'a str]>)> {
        self.0.values().map(|module| {
            let used = module.uses.iter().map(|used| &used.path[..]);
            (module.file, module.paths.iter().map(|path| &path[..]).chain(used).collect())
        })
    }

    /// Each module's path, its file and its tokens, without `use`.
    pub(crate) fn code(&self) -> impl Iterator<Item = (&[&'a str], &'a str, &[&'a str])> {
        self.0.iter().map(|(path, module)| (&path[..], module.file, &module.code[..]))
    }

    /// The item that a whole path in `module` stands for.
    pub(crate) fn item(&self, module: &[&'a str], path: &[&'a str]) -> Option<Item<'a>> {
        let (name, before) = path.split_last()?;
        let Target::Module(inside) = self.resolve(module, before, 0)? else { return None };
        match self.resolve(&inside, &[name], 0)? {
            Target::Item(item) => Some(item),
            Target::Module(_) => None,
        }
    }

    /// What a path in `module` stands for; `None` for other crates' items, and for local names.
    fn resolve(&self, module: &[&'a str], path: &[&'a str], fuel: usize) -> Option<Target<'a>> {
        let mut at = Target::Module(module.to_vec());
        for (place, name) in path.iter().enumerate() {
            let Target::Module(mut inside) = at else { break };
            at = match *name {
                "crate" if place == 0 => Target::Module(Vec::new()),
                "self" => Target::Module(inside),
                "super" => {
                    inside.pop();
                    Target::Module(inside)
                }
                "*" => Target::Module(inside),
                name => self.lookup(&inside, name, fuel)?,
            };
        }
        Some(at)
    }

    /// What `name` stands for in a module: a child, an item, or an import.
    fn lookup(&self, path: &[&'a str], name: &'a str, fuel: usize) -> Option<Target<'a>> {
        const FUEL: usize = 8; // `use` statements that may name each other
        let child = [path, &[name]].concat();
        if self.0.contains_key(&child) {
            return Some(Target::Module(child));
        }
        let module = self.0.get(path)?;
        if module.items.contains(name) {
            return Some(Target::Item((path.to_vec(), name)));
        }
        let brings =
            |used: &&Use<'a>| fuel < FUEL && used.path != [name] && (used.name == name || used.name == "*");
        module.uses.iter().filter(brings).find_map(|used| match self.resolve(path, &used.path, fuel + 1)? {
            Target::Module(inside) if used.name == "*" && inside != path => {
                self.lookup(&inside, name, fuel + 1)
            }
            _ if used.name == "*" => None,
            target => Some(target),
        })
    }
}

/// The names of `a::{b, c as d, e::*}`, each with its path.
fn use_tree<'a>(tree: &[&'a str], before: &[&'a str], is_reexport: bool, found: &mut Vec<Use<'a>>) {
    let length = tree
        .iter()
        .take_while(|token| is_ident(token.chars().next().unwrap_or(' ')) || **token == "::")
        .count();
    let names = tree[..length].iter().copied().filter(|token| !matches!(*token, "::" | "as"));
    let mut path: Vec<_> = before.iter().copied().chain(names).collect();
    match tree.get(length).copied() {
        Some("{") => {
            let list = &tree[length + 1..closing(tree, length) - 1];
            for branch in split_by_comma(list) {
                use_tree(branch, &path, is_reexport, found);
            }
        }
        Some("*") => {
            path.push("*");
            found.push(Use { name: "*", path, is_reexport });
        }
        _ => {
            let Some(mut name) = path.last().copied() else { return };
            if length >= 2 && tree[length - 2] == "as" {
                path.pop();
            }
            if name == "self" && path.len() > 1 {
                path.pop();
                name = path[path.len() - 1];
            }
            found.push(Use { name, path, is_reexport });
        }
    }
}
