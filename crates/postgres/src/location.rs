//! The schema and the names of a column's triggers and outbox.

use postgres::{Client, Error, GenericClient};
use sidebloom::KeyHasher;
use std::hash::{BuildHasher, RandomState};

/// Names to try that do not depend on chance.
const SALTS: u8 = 16;

/// The initial name of a column's triggers and outbox. Depends on nothing that restoring a dump changes.
/// `salt` distinguishes it from another table's that had these names before.
fn prefix(names: [&str; 3], salt: u8) -> String {
    let mut bytes = names.map(str::as_bytes).join(&0);
    bytes.extend((salt > 0).then_some(salt));
    format!("sidebloom_{:016x}", KeyHasher::from(0).hash(&bytes))
}

/// The schema and the prefix of what is installed for a column, whatever the column's name at that time; if
/// nothing is, where to install it. Ignores what belongs to a parent of a partition, or to a role without the
/// rights of the table's owner.
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
    let own = format!(
        "{FUNCTIONS} AND t.tgrelid = $1 AND t.tgattr[0] = $2
         AND pg_has_role(p.proowner, (SELECT relowner FROM pg_class WHERE oid = t.tgrelid), 'MEMBER') ORDER BY t.oid LIMIT 1"
    );
    if let Some(row) = client.query_opt(&own, &[&table, &column])? {
        return Ok((row.get(0), row.get(1)));
    }
    for salt in 0..SALTS {
        let prefix = prefix(names, salt);
        let others = format!("{FUNCTIONS} AND n.nspname = $1 AND p.proname = $2 LIMIT 1");
        if client.query_opt(&others, &[&names[0], &prefix])?.is_none()
            && taken(client, names[0], &prefix, table)?.is_none()
        {
            return Ok((names[0].to_owned(), prefix));
        }
    }
    // Others have taken all names. Nobody can take this one in advance.
    Ok((names[0].to_owned(), format!("sidebloom_{:016x}", RandomState::new().hash_one(table))))
}

/// Objects of other roles in a schema (`$1`) with names that an installation for a table (`$3`) with the
/// prefix `$2` would need.
const TAKEN: &str = "
    SELECT found.name || ' belongs to the role ' || quote_ident(pg_get_userbyid(found.owner)) FROM pg_class c, pg_namespace n, LATERAL (
        SELECT p.oid::regproc::text AS name, p.proowner AS owner FROM pg_proc p WHERE p.pronamespace = n.oid AND p.proname = $2
        UNION ALL SELECT r.oid::regclass::text, r.relowner FROM pg_class r
        WHERE r.relnamespace = n.oid AND r.relname IN ($2 || '_outbox', $2 || '_follower')
        UNION ALL SELECT t.oid::regtype::text, t.typowner FROM pg_type t
        WHERE t.typnamespace = n.oid AND t.typname IN ($2 || '_outbox', $2 || '_follower')) AS found
    WHERE c.oid = $3 AND n.nspname = $1 AND NOT pg_has_role(found.owner, c.relowner, 'MEMBER') LIMIT 1";

/// An object with a name that this prefix needs, of a role without the rights of the table's owner.
pub fn taken(
    client: &mut impl GenericClient,
    home: &str,
    prefix: &str,
    table: u32,
) -> Result<Option<String>, Error> {
    Ok(client.query_opt(TAKEN, &[&home, &prefix, &table])?.map(|row| row.get(0)))
}
