//! Installing and removing the triggers that fill an outbox.

use crate::connection::{Address, failed, open_session};
use crate::install::{Installation, install};
use crate::source::{PostgresSource, table_error};
use crate::table::Table;
use crate::{catalog, outbox};
use postgres::Client;
use sidebloom::Result;

impl PostgresSource {
    /// Creates an outbox for this column and the triggers that fill it, unless they exist. Needs the rights
    /// of the table's owner, and waits for transactions that have written to the table. From then on every
    /// change writes one more row, and an UPDATE of a key writes two. Renaming the column, the table or the
    /// schema later breaks no write. Before dropping the column or changing its type, call
    /// [`remove_trigger`](Self::remove_trigger): the server refuses both until then.
    ///
    /// Replaces an existing installation that roles without the rights of the table's owner could have used,
    /// such as one by sidebloom 0.1.
    ///
    /// # Errors
    /// [`Error::Database`](sidebloom::Error::Database).
    pub fn install_trigger(&mut self) -> Result<Installation> {
        install(&mut self.client, &self.table).map_err(|error| table_error(&self.name, error))
    }

    /// Removes what [`install_trigger`](Self::install_trigger) created.
    ///
    /// # Errors
    /// [`Error::Database`](sidebloom::Error::Database).
    pub fn remove_trigger(&mut self) -> Result<()> {
        let Table { home, prefix, .. } = &self.table;
        outbox::remove(&mut self.client, home, prefix).map_err(|error| self.failed(&error))
    }

    /// [`remove_triggers_of`](Self::remove_triggers_of), connecting as [`connect`](Self::connect) does.
    ///
    /// # Errors
    /// The errors of [`connect`](Self::connect), except that a missing table or column is not an error.
    pub fn remove_triggers_at(url: &str, table: &str, column: &str) -> Result<bool> {
        let address = Address::parse(url)?;
        Self::remove_triggers_of(&address.name, || address.connect(), table, column)
    }

    /// Removes what [`install_trigger`](Self::install_trigger) created for a column, given the current names
    /// of table and column or those at installation, even after they were dropped. Returns whether anything
    /// was installed. `connect` and `name` are as for [`connect_with`](Self::connect_with).
    ///
    /// # Errors
    /// [`Error::Database`](sidebloom::Error::Database).
    pub fn remove_triggers_of(
        name: &str,
        connect: impl FnOnce() -> Result<Client, postgres::Error>,
        table: &str,
        column: &str,
    ) -> Result<bool> {
        let (schema, table) = match table.split_once('.') {
            Some((schema, table)) => (Some(schema), table),
            None => (None, table),
        };
        let remove = || -> Result<bool, postgres::Error> {
            let (mut client, _) = open_session(connect)?;
            let found = catalog::find(&mut client, schema, table, column)?;
            for (home, prefix) in &found {
                outbox::remove(&mut client, home, prefix)?;
            }
            Ok(!found.is_empty())
        };
        remove().map_err(|error| failed(name, &error))
    }
}
