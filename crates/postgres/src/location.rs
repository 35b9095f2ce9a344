//! Where the triggers and the outbox of a column are, and what they are called.

use postgres::{Client, Error};
use sidebloom::KeyHasher;

/// The initial name of a column's triggers and outbox. Depends on nothing that restoring a dump changes. `salt` distinguishes it from
/// that of another table that had these names before.
fn prefix(names: [&str; 3], salt: u8) -> String {
    let mut bytes = names.map(str::as_bytes).join(&0);
    bytes.extend((salt > 0).then_some(salt));
    format!("sidebloom_{:016x}", KeyHasher::from(0).hash(&bytes))
}

/// The schema and the prefix of what is installed for a column, whatever the column was called then (what is installed for a table
/// that this one is a partition of does not count); or, if nothing is, where to install it.
pub fn locate(
    client: &mut Client,
    table: u32,
    column: i16,
    names: [&str; 3],
) -> Result<(String, String), Error> {
    const FUNCTIONS: &str = "
        SELECT n.nspname::text, p.proname::text
        FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid JOIN pg_namespace n ON n.oid = p.pronamespace
        WHERE p.proname ~ '^sidebloom_[0-9a-f]{16}$' AND t.tgname = p.proname || '_rows'
        AND NOT EXISTS (SELECT FROM pg_inherits i JOIN pg_trigger whole ON whole.tgrelid = i.inhparent
                        WHERE i.inhrelid = t.tgrelid AND whole.tgfoid = t.tgfoid)";
    let own = format!("{FUNCTIONS} AND t.tgrelid = $1 AND t.tgattr[0] = $2 ORDER BY t.oid LIMIT 1");
    if let Some(row) = client.query_opt(&own, &[&table, &column])? {
        return Ok((row.get(0), row.get(1)));
    }
    for salt in 0..u8::MAX {
        let prefix = prefix(names, salt);
        let others = format!("{FUNCTIONS} AND n.nspname = $1 AND p.proname = $2 LIMIT 1");
        if client.query_opt(&others, &[&names[0], &prefix])?.is_none() {
            return Ok((names[0].to_owned(), prefix));
        }
    }
    Ok((names[0].to_owned(), prefix(names, u8::MAX)))
}
