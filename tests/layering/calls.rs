//! The types, fields, methods and method calls in a crate's code.

use std::collections::{BTreeMap, BTreeSet};

use crate::modules::{Item, Modules};
use crate::source::{begins_path, closing, is_ident, split_by_comma};
use crate::types::{after_generics, bare, path, path_of_type};

/// What a crate's code says about its types. Types of other crates are left out.
#[derive(Default)]
pub(crate) struct Code<'a> {
    /// The files that define a type's method: in its own `impl`, or for a trait in the trait.
    pub own: Definitions<'a>,
    /// The files that define a type's method in `impl Trait for Type`.
    pub of_traits: Definitions<'a>,
    /// The type to which a step from a type leads.
    pub steps: BTreeMap<(Item<'a>, Step<'a>), Item<'a>>,
    /// What a type stands for: the target of its `Deref`, or of an alias.
    pub targets: BTreeMap<Item<'a>, Item<'a>>,
    pub calls: Vec<Call<'a>>,
}

type Definitions<'a> = BTreeMap<(Item<'a>, &'a str), BTreeSet<&'a str>>;

/// A step from one value to another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step<'a> {
    /// `.name`
    Field(&'a str),
    /// `.name(…)` or `Type::name(…)`
    Call(&'a str),
    /// `.name(…)?` or `Type::name(…)?`
    Tried(&'a str),
}

/// A value, given by the type from which it is reached.
#[derive(Clone)]
pub(crate) struct Value<'a> {
    pub of: Item<'a>,
    pub steps: Vec<Step<'a>>,
}

#[derive(Clone)]
pub(crate) struct Call<'a> {
    pub file: &'a str,
    pub on: Value<'a>,
    pub method: &'a str,
    /// As written, but without arguments.
    pub text: String,
}

/// An expression such as `x.a.b(…)?`.
struct Chain<'a> {
    value: Value<'a>,
    calls: Vec<Call<'a>>,
    text: String,
    /// In tokens.
    length: usize,
}

/// The meanings of names in a function.
#[derive(Clone, Default)]
struct Scope<'a> {
    /// `Self`.
    owner: Option<Item<'a>>,
    variables: BTreeMap<&'a str, Value<'a>>,
}

impl<'a> Code<'a> {
    pub(crate) fn of(modules: &Modules<'a>) -> Code<'a> {
        let mut found = Code::default();
        for (module, file, tokens) in modules.code() {
            Walk { modules, module, file, found: &mut found }.code(tokens, &mut Scope::default());
        }
        found
    }
}

/// A walk through the code of a module. The visitors return how many tokens to skip.
struct Walk<'w, 'a> {
    modules: &'w Modules<'a>,
    module: &'w [&'a str],
    file: &'a str,
    found: &'w mut Code<'a>,
}

impl<'a> Walk<'_, 'a> {
    /// Items, statements and expressions.
    fn code(&mut self, code: &[&'a str], scope: &mut Scope<'a>) {
        let mut at = 0;
        while at < code.len() {
            at += match code[at..] {
                ["impl", ..] => self.implementation(&code[at..]),
                ["trait", name, ..] => self.methods(&code[at..], Some((self.module.to_vec(), name)), false),
                ["struct", name, ..] => self.fields(&code[at..], name),
                ["type", name, ..] => self.target(&code[at..], Some((self.module.to_vec(), name))),
                ["fn", name, ..] if name.starts_with(is_ident) => self.function(&code[at..], None),
                ["let", ..] => self.binding(&code[at..], scope),
                ["{", ..] => {
                    let end = closing(code, at);
                    self.code(&code[at + 1..end - 1], &mut scope.clone());
                    end - at
                }
                _ if begins_path(code, at) => {
                    self.found
                        .calls
                        .extend(self.chain(&code[at..], scope).into_iter().flat_map(|it| it.calls));
                    1
                }
                _ => 1,
            };
        }
    }

    /// `impl<…> Type { … }` or `impl<…> Trait for Type { … }`.
    fn implementation(&mut self, code: &[&'a str]) -> usize {
        let start = after_generics(code, 1);
        let open = code.iter().position(|token| *token == "{").unwrap_or(code.len());
        let head = &code[start..open];
        let head = head.split(|token| *token == "where").next().unwrap_or(head);
        match head.iter().position(|token| *token == "for") {
            Some(at) => self.methods(code, self.type_of(&head[at + 1..], None), true),
            None => self.methods(code, self.type_of(head, None), false),
        }
    }

    /// The functions of an `impl` or a `trait`.
    fn methods(&mut self, code: &[&'a str], owner: Option<Item<'a>>, of_trait: bool) -> usize {
        let Some(open) = code.iter().position(|token| *token == "{") else { return code.len() };
        let end = closing(code, open);
        let mut at = open + 1;
        while at < end {
            at += match code[at..end] {
                ["fn", name, ..] => {
                    let definitions = if of_trait { &mut self.found.of_traits } else { &mut self.found.own };
                    if let Some(owner) = &owner {
                        definitions.entry((owner.clone(), name)).or_default().insert(self.file);
                    }
                    self.function(&code[at..end], owner.as_ref())
                }
                // Of `Deref`.
                ["type", "Target", ..] => self.target(&code[at..end], owner.clone()),
                _ => 1,
            };
        }
        end
    }

    /// `struct Name { … }` or `struct Name(…)`.
    fn fields(&mut self, code: &[&'a str], name: &'a str) -> usize {
        const PLACES: [&str; 4] = ["0", "1", "2", "3"];
        let owner = (self.module.to_vec(), name);
        let is_open = |token: &&str| matches!(*token, "{" | "(" | ";");
        let start = after_generics(code, 2);
        let Some(open) = code[start..].iter().position(is_open).map(|open| start + open) else {
            return code.len();
        };
        if code[open] == ";" {
            return open;
        }
        let end = closing(code, open);
        for (place, field) in split_by_comma(&code[open + 1..end - 1]).into_iter().enumerate() {
            let (name, its_type) = match *bare(field) {
                [name, ":", ref its_type @ ..] => (Some(name), its_type),
                ref its_type => (PLACES.get(place).copied(), its_type),
            };
            if let (Some(name), Some(its_type)) = (name, self.type_of(its_type, Some(&owner))) {
                self.found.steps.insert((owner.clone(), Step::Field(name)), its_type);
            }
        }
        end
    }

    /// `type Name = Type;`.
    fn target(&mut self, code: &[&'a str], of: Option<Item<'a>>) -> usize {
        let its_type = code.iter().position(|token| *token == "=").map(|at| &code[at + 1..]);
        if let (Some(of), Some(target)) = (of, its_type.and_then(|its_type| self.type_of(its_type, None))) {
            self.found.targets.insert(of, target);
        }
        2
    }

    /// `fn name<…>(…) -> … { … }`, or without a body.
    fn function(&mut self, code: &[&'a str], owner: Option<&Item<'a>>) -> usize {
        let open = after_generics(code, 2);
        let close = closing(code, open);
        let mut body = close;
        while body < code.len() && !matches!(code[body], "{" | ";") {
            body = if matches!(code[body], "(" | "[") { closing(code, body) } else { body + 1 };
        }
        if let (Some(owner), ["-", ">", result @ ..]) = (owner, &code[close..body]) {
            self.result(owner, code[1], result);
        }
        if code.get(body) != Some(&"{") {
            return body + 1;
        }
        let mut scope = Scope { owner: owner.cloned(), ..Scope::default() };
        for parameter in split_by_comma(&code[open + 1..close - 1]) {
            let (name, of) = match *bare(parameter) {
                [name, ":", ref its_type @ ..] => (name, self.type_of(its_type, owner)),
                [.., "self"] => ("self", owner.cloned()),
                _ => continue,
            };
            scope.variables.extend(of.map(|of| (name, Value::of(of))));
        }
        let end = closing(code, body);
        self.code(&code[body + 1..end - 1], &mut scope);
        end
    }

    /// The type that a method returns, or that `?` extracts from it.
    fn result(&mut self, owner: &Item<'a>, method: &'a str, result: &[&'a str]) {
        let (step, result) = match result {
            ["Option" | "Result", "<", inner @ ..] => (Step::Tried(method), inner),
            _ => (Step::Call(method), result),
        };
        if let Some(of) = self.type_of(result, Some(owner)) {
            self.found.steps.insert((owner.clone(), step), of);
        }
    }

    /// `let name = …;` or `let name: Type = …;`. Other patterns are skipped.
    fn binding(&mut self, code: &[&'a str], scope: &mut Scope<'a>) -> usize {
        let start = if code.get(1) == Some(&"mut") { 2 } else { 1 };
        let [name, sign @ (":" | "="), ..] = code[start..] else { return 1 };
        let mut end = start;
        while end < code.len() && code[end] != ";" {
            end = if matches!(code[end], "(" | "[" | "{") { closing(code, end) } else { end + 1 };
        }
        let value = &code[start + 2..end];
        self.code(value, scope);
        let value = match sign {
            ":" => self.type_of(value, scope.owner.as_ref()).map(Value::of),
            _ => self.value(value, scope),
        };
        match value {
            Some(value) => _ = scope.variables.insert(name, value),
            None => _ = scope.variables.remove(name),
        }
        end
    }

    /// The value of an expression: a [`chain`](Self::chain), a reference or pointer to one, or `Type { … }`.
    fn value(&self, code: &[&'a str], scope: &Scope<'a>) -> Option<Value<'a>> {
        let code = match code {
            ["Arc" | "Rc" | "Box", "::", "clone" | "new", "(", inner @ .., ")"]
            | [inner @ .., ".", "clone", "(", ")"] => inner,
            code => code,
        };
        let start = code.iter().position(|token| !matches!(*token, "&" | "*" | "mut"))?;
        let code = &code[start..];
        if let ["{", ..] = code[2 * path(code).len().max(1) - 1..] {
            return self.type_of(code, scope.owner.as_ref()).map(Value::of);
        }
        let chain = self.chain(code, scope)?;
        (chain.length == code.len()).then_some(chain.value)
    }

    /// The longest prefix of the tokens like `x.a.b(…)?.c` or `Type::new(…)?.c`.
    fn chain(&self, code: &[&'a str], scope: &Scope<'a>) -> Option<Chain<'a>> {
        let names = path(code);
        let length = (2 * names.len()).saturating_sub(1);
        let chain = |value| Chain { value, calls: Vec::new(), text: names.join("::"), length };
        let mut chain = match &names[..] {
            [name] => chain(scope.variables.get(name)?.clone()),
            [of @ .., method] if of.last()?.starts_with(char::is_uppercase) => {
                let of = self.type_of(&code[..2 * of.len() - 1], scope.owner.as_ref())?;
                let mut chain = chain(Value::of(of));
                self.step(&mut chain, method, code);
                chain
            }
            _ => return None,
        };
        while let [".", name, ..] = code[chain.length..]
            && name.starts_with(is_ident)
        {
            chain.text += &format!(".{name}");
            chain.length += 2;
            self.step(&mut chain, name, code);
        }
        Some(chain)
    }

    /// Extends a chain that ends after `name` by the arguments of a call.
    fn step(&self, chain: &mut Chain<'a>, name: &'a str, code: &[&'a str]) {
        let is_path = chain.text.ends_with(&format!("::{name}"));
        let open = match code[chain.length..] {
            ["::", "<", ..] => after_generics(code, chain.length + 1),
            _ => chain.length,
        };
        let has_arguments = code.get(open) == Some(&"(");
        if has_arguments || is_path {
            let (on, text) = (chain.value.clone(), chain.text.clone() + if is_path { "" } else { "()" });
            chain.calls.push(Call { file: self.file, on, method: name, text });
        }
        if has_arguments {
            chain.text += "()";
            chain.length = closing(code, open);
        }
        let is_tried = has_arguments && code.get(chain.length) == Some(&"?");
        chain.length += usize::from(is_tried);
        chain.value.steps.push(match (has_arguments, is_tried) {
            (false, _) => Step::Field(name),
            (true, false) => Step::Call(name),
            (true, true) => Step::Tried(name),
        });
    }

    /// The type of the crate at the start of the tokens.
    fn type_of(&self, tokens: &[&'a str], owner: Option<&Item<'a>>) -> Option<Item<'a>> {
        let path = path_of_type(tokens)?;
        if path == ["Self"] { owner.cloned() } else { self.modules.item(self.module, &path) }
    }
}

impl<'a> Value<'a> {
    fn of(of: Item<'a>) -> Value<'a> {
        Value { of, steps: Vec::new() }
    }
}
