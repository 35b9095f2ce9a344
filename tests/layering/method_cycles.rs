//! Cycles by methods, planted to check that `cycles.rs` finds them.

use std::collections::BTreeSet;

use crate::cycles::{count, files};
use crate::methods::imports;
use crate::modules::Modules;

#[test]
fn each_kind_of_cycle_by_methods_is_found() {
    const INNER: (&str, &str) = ("inner.rs", "pub struct Inner; pub struct Other;");
    let planted: [&[(&str, &str)]; 14] = [
        // Through `self`, and `Self`.
        &[
            INNER,
            ("write.rs", "use crate::inner::Inner; impl Inner { fn rotate(&self) { self.resume() } }"),
            ("resume.rs", "use crate::inner::Inner; impl Inner { fn resume(&self) { 1 + self.rotate() } }"),
        ],
        &[
            INNER,
            ("write.rs", "impl crate::inner::Inner { fn rotate() { Self::resume() } }"),
            (
                "resume.rs",
                "use crate::inner; impl inner::Inner { fn resume(s: &Self) { run(Self::rotate); } }",
            ),
        ],
        // Through a type's name.
        &[
            INNER,
            ("write.rs", "use crate::inner::Inner; impl Inner { fn rotate(&self) { Inner::resume(self) } }"),
            ("resume.rs", "use crate::inner::Inner; impl Inner { fn resume(&self) { self.rotate::<u8>() } }"),
        ],
        // Generic types, and a method of a trait.
        &[
            ("inner.rs", "pub struct Inner<'a, T: Fn() -> u8>(&'a T);"),
            (
                "write.rs",
                "use crate::inner::Inner; impl<'a, T: Fn() -> u8> Inner<'a, T> where T: for<'b> F<'b> { \
                 fn rotate(&self) { self.drop() } }",
            ),
            (
                "resume.rs",
                "use crate::inner::Inner; impl<T: Fn() -> u8> Drop for Inner<'_, T> { \
                 fn drop(&mut self) { self.rotate() } }",
            ),
        ],
        // Through a field, and fields of fields.
        &[
            INNER,
            (
                "write.rs",
                "use crate::inner::Inner; pub struct Writer { pub inner: Arc<Inner>, left: u8 } \
                 impl Writer { pub fn write(&self) { self.inner.flush() } }",
            ),
            (
                "flush.rs",
                "use crate::inner::Inner; impl Inner { fn flush(&self, w: &crate::write::Writer) {} }",
            ),
        ],
        &[
            ("inner.rs", "pub struct Inner(pub Box<crate::shared::Shared>, u8);"),
            ("shared.rs", "pub struct Shared { #[doc(hidden)] pub(crate) view: View } pub struct View;"),
            ("view.rs", "use crate::shared::View; impl View { pub fn mask(&self, b: &crate::read::B) {} }"),
            (
                "read.rs",
                "pub struct B; impl B { fn read(a: &'a mut &Arc<crate::inner::Inner>) { a.0.view.mask() } }",
            ),
        ],
        // Through a parameter, and variables.
        &[
            INNER,
            (
                "write.rs",
                "use crate::inner::Inner; pub fn rotate(inner: &Inner) { if true { inner.resume() } }",
            ),
            (
                "resume.rs",
                "use crate::inner::Inner; impl Inner { fn resume(&self) { crate::write::rotate(self) } }",
            ),
        ],
        &[
            INNER,
            (
                "write.rs",
                "use crate::inner::Inner; pub struct Writer { inner: Arc<Inner> } impl Writer { \
                 fn rotate(&self) { let inner = Arc::clone(&self.inner); spawn(move || inner.resume()); } }",
            ),
            ("resume.rs", "impl crate::inner::Inner { fn resume(w: &crate::write::Writer) {} }"),
        ],
        &[
            INNER,
            ("write.rs", "pub fn rotate() { let inner: crate::inner::Inner = open(); inner.resume(); }"),
            ("resume.rs", "impl crate::inner::Inner { fn resume(&self) { crate::write::rotate() } }"),
        ],
        &[
            INNER,
            (
                "write.rs",
                "fn f(a: &crate::inner::Inner) { { let a = a.load(); } a.resume(); } pub fn rotate() {}",
            ),
            ("resume.rs", "impl crate::inner::Inner { fn resume(&self) { crate::write::rotate() } }"),
        ],
        // Through what methods return.
        &[
            (
                "inner.rs",
                "pub struct Inner; impl Inner { pub fn new() -> Result<Self> {} fn me(&self) -> &Self {} }",
            ),
            (
                "write.rs",
                "pub fn rotate() { let i = Arc::new(crate::inner::Inner::new()?); i.me().resume(); }",
            ),
            ("resume.rs", "impl crate::inner::Inner { fn resume(&self) { crate::write::rotate() } }"),
        ],
        &[
            INNER,
            (
                "write.rs",
                "use crate::inner::Inner; pub fn rotate() { let i = Inner { log: open() }; i.resume(); }",
            ),
            ("resume.rs", "impl crate::inner::Inner { fn resume(&self) { crate::write::rotate() } }"),
        ],
        // Through `Deref`, and an alias.
        &[
            ("inner.rs", "pub struct Inner; pub struct Live; impl Deref for Live { type Target = Inner; }"),
            ("write.rs", "pub fn rotate(live: &crate::inner::Live) { live.resume() }"),
            ("resume.rs", "impl crate::inner::Inner { fn resume(&self) { crate::write::rotate() } }"),
        ],
        &[
            ("inner.rs", "pub struct Inner<T>; pub type Live<'a> = Inner<&'a u8>;"),
            ("write.rs", "pub fn rotate(mut live: crate::inner::Live<'_>) { live.resume() }"),
            ("resume.rs", "impl<T> crate::inner::Inner<T> { fn resume(&self) { crate::write::rotate() } }"),
        ],
    ];
    for files in planted {
        assert_eq!(count(files), 1, "{files:?}");
    }
    let rotate = ("write.rs", "use crate::inner::Inner; impl Inner { fn rotate(&self) { self.resume() } }");
    let fine: [&[(&str, &str)]; 9] = [
        // One way only.
        &[INNER, rotate, ("resume.rs", "impl crate::inner::Inner { fn resume(&self) { self.wait() } }")],
        // A method of the same name: of another type, of a type of the same name, of an unknown type.
        &[
            INNER,
            rotate,
            (
                "resume.rs",
                "use crate::inner::{Inner, Other}; impl Inner { fn resume(&self, o: &Other) { o.rotate() } } \
                 impl Other { fn rotate(&self) {} }",
            ),
        ],
        &[
            INNER,
            rotate,
            ("log/inner.rs", "pub struct Inner;"),
            ("log/mod.rs", "use inner::Inner; fn f(inner: &Inner) { inner.rotate() }"),
            (
                "resume.rs",
                "impl crate::inner::Inner { fn resume(&self, l: &Log) { crate::log::f(l.inner) } }",
            ),
        ],
        &[
            INNER,
            rotate,
            (
                "resume.rs",
                "use crate::inner::Inner; impl Inner { fn resume(&self, o: Option<Inner>, m: &Mutex<Inner>) { \
                 o.rotate(); m.rotate(); x.rotate(); self.a.rotate(); self.a().rotate(); other::Inner::rotate() } }",
            ),
        ],
        &[
            INNER,
            rotate,
            (
                "resume.rs",
                "use crate::inner::Inner; impl Inner { fn resume(&self) { self.next().rotate(); self.all()?.rotate() } \
                 fn next(&self) -> Option<Inner> {} fn all(&self) -> Inner {} }",
            ),
        ],
        // A variable of the same name.
        &[
            INNER,
            rotate,
            (
                "resume.rs",
                "impl crate::inner::Inner { fn resume(&self, i: &Self, j: &Self) { \
                 let i = i.load(); i.rotate(); let j = load(j); j.rotate(); } \
                 fn f(&self) { i.rotate() } }",
            ),
        ],
        // A method of the same file, and a field of the same name.
        &[
            INNER,
            (
                "write.rs",
                "impl crate::inner::Inner { fn rotate(&self) { self.resume(); self.sync() } fn sync(&self) {} }",
            ),
            ("resume.rs", "impl crate::inner::Inner { fn resume(&self) { self.rotate + self.rotate } }"),
        ],
        // Tests.
        &[
            INNER,
            rotate,
            (
                "resume.rs",
                "use crate::inner::Inner; impl Inner { fn resume(&self) {} \
                 #[cfg(test)] fn f(&self) { self.rotate() } } \
                 #[cfg(test)] mod tests { fn t(inner: &super::Inner) { inner.rotate() } }",
            ),
        ],
        &[
            INNER,
            rotate,
            ("resume.rs", "impl crate::inner::Inner { fn resume(&self) {} } #[cfg(test)] mod tests;"),
            ("resume/tests.rs", "fn t(inner: &crate::inner::Inner) { inner.rotate() }"),
        ],
    ];
    for files in fine {
        assert_eq!(count(files), 0, "{files:?}");
    }
}

#[test]
fn an_import_names_the_call() {
    let files = files(&[
        ("fs.rs", "pub trait Fs { fn open(&self); }"),
        ("db.rs", "use crate::fs::Fs as Files; pub struct Db { pub fs: Arc<dyn Files> }"),
        ("read.rs", "fn get(db: &crate::db::Db) { db.fs.open() }"),
        ("inner.rs", "pub struct Inner;"),
        ("write.rs", "impl crate::inner::Inner { fn rotate(&self) { self.resume() } }"),
        ("resume.rs", "impl crate::inner::Inner { fn resume(&self) { self.rotate() } }"),
    ]);
    let modules = Modules::new(&files);
    assert_eq!(imports(&modules)["resume.rs"]["write.rs"], BTreeSet::from(["self.rotate()".to_owned()]));
    assert_eq!(imports(&modules)["read.rs"]["fs.rs"], BTreeSet::from(["db.fs.open()".to_owned()]));
}
