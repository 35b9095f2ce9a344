//! Whether an outbox is safe from other roles.
//!
//! An outbox decides which keys a guard denies, so only roles that could change the table at will may write
//! to it: roles with the rights of the table's owner, which superusers have too. The owner of the schema is
//! effectively one of them, because it can replace the schema's contents; a replacement is noticed by its
//! owner.

use crate::table::Table;
use postgres::{Error, GenericClient};

/// How this version's function begins for a table. It has the table's number rather than its name, which a
/// stranger's table could have too. A restored dump gives the table another number; the triggers are then
/// reinstalled.
pub fn mark(table: &Table) -> String {
    format!("-- sidebloom guard, version 2, for the table {}.\n", table.oid)
}

/// The function's search path.
pub const SEARCH_PATH: &str = "pg_catalog, pg_temp";

/// The first fault of an installation; no row if nothing is installed. `$1` is the table, `$2` and `$3` are
/// prefix and schema.
const FAULT: &str = "
    WITH relation AS (
        SELECT r.oid, r.relname, r.relkind, r.relhasrules, r.relowner, r.relacl FROM pg_class r JOIN pg_namespace n ON n.oid = r.relnamespace
        WHERE n.nspname = $3 AND r.relname IN ($2 || '_outbox', $2 || '_follower'))
    SELECT CASE
        WHEN NOT pg_has_role(p.proowner, c.relowner, 'MEMBER')
            THEN format('their function belongs to the role %I, which has not the rights of the table''s owner', pg_get_userbyid(p.proowner))
        WHEN NOT starts_with(p.prosrc, $4)
            THEN 'they were installed by an earlier version, with which any role could write to the outbox, or for another table'
        WHEN EXISTS (SELECT FROM aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
                     WHERE a.grantee = 0)
            THEN 'every role may use their function'
        WHEN NOT p.prosecdef OR NOT coalesce($5 = ANY (p.proconfig), false)
            THEN 'their function has been altered'
        ELSE (SELECT format('the table %I ', r.relname) || CASE
                WHEN NOT pg_has_role(r.relowner, c.relowner, 'MEMBER')
                    THEN format('belongs to the role %I, which has not the rights of the table''s owner', pg_get_userbyid(r.relowner))
                WHEN EXISTS (SELECT FROM aclexplode(r.relacl) a WHERE a.grantee = 0 AND a.privilege_type <> 'SELECT')
                    THEN 'can be written by every role'
                ELSE 'has rules or triggers' END
              FROM relation r
              WHERE NOT pg_has_role(r.relowner, c.relowner, 'MEMBER') OR r.relkind <> 'r' OR r.relhasrules
              OR EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = r.oid)
              OR EXISTS (SELECT FROM aclexplode(r.relacl) a WHERE a.grantee = 0 AND a.privilege_type <> 'SELECT')
              ORDER BY r.relname LIMIT 1)
        END
    FROM pg_class c, pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
    WHERE c.oid = $1 AND p.proname = $2 AND n.nspname = $3 AND p.pronargs = 0";

/// Why other roles could change what is installed for the table, or what it writes; `None` if they cannot, or
/// nothing is installed.
pub fn fault(client: &mut impl GenericClient, table: &Table) -> Result<Option<String>, Error> {
    let path = format!("search_path={SEARCH_PATH}");
    let row = client.query_opt(FAULT, &[&table.oid, &table.prefix, &table.home, &mark(table), &path])?;
    Ok(row.and_then(|row| row.get(0)))
}
