//! Which file of a crate imports which one by a method.
//!
//! A call imports the file whose `impl` or `trait` defines the method, if the code states the value's type:
//! - `self.name()`, `Self::name` and `Type::name`;
//! - `x.name()` of a parameter `x: &Type`, and of a variable from `let x: Type = …`, `let x = &self.a`,
//!   `let x = Arc::clone(&self.a)`, `let x = Type { … }` or `let x = Type::new(…)?`;
//! - `self.a.b()?.name()`, by the declared types of fields and of what methods return.
//!
//! The test does not see calls on a variable bound by a pattern or a closure, on a type parameter, or on the
//! result of a plain function. Nor does it see a type's call of a method that its trait provides. If a
//! pattern or a closure rebinds the name of a parameter, the parameter is not hidden.

use std::collections::BTreeSet;
use std::iter::successors;

use crate::calls::{Call, Code, Step};
use crate::modules::{Imports, Item, Modules};

/// The imports of a crate's files by paths and by methods.
pub(crate) fn imports<'a>(modules: &Modules<'a>) -> Imports<'a> {
    let (mut imports, code) = (modules.imports(), Code::of(modules));
    for call in &code.calls {
        for file in definition(&code, call).into_iter().flatten().filter(|file| **file != call.file) {
            let by = imports.entry(call.file).or_default().entry(file).or_default();
            by.insert(call.text.clone());
        }
    }
    imports
}

/// The files that define the called method.
fn definition<'c, 'a>(code: &'c Code<'a>, call: &'c Call<'a>) -> Option<&'c BTreeSet<&'a str>> {
    let follow = |of, step: &Step<'a>| targets(code, of).find_map(|of| code.steps.get(&(of.clone(), *step)));
    let of = call.on.steps.iter().try_fold(&call.on.of, follow)?;
    targets(code, of).find_map(|of| {
        let method = (of.clone(), call.method);
        code.own.get(&method).or_else(|| code.of_traits.get(&method))
    })
}

/// A type, and what it stands for in turn.
fn targets<'c, 'a>(code: &'c Code<'a>, of: &'c Item<'a>) -> impl Iterator<Item = &'c Item<'a>> {
    const MOST: usize = 8; // aliases may name each other
    successors(Some(of), |of| code.targets.get(of)).take(MOST)
}
