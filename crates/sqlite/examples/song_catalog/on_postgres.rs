//! The catalogue in PostgreSQL.

use super::catalogue::{Catalogue, Result};
use sidebloom_postgres::PostgresSource;
use sidebloom_postgres::postgres::{Client, Statement};
use std::io::Write;
use std::time::Instant;

pub struct Songs {
    client: Client,
    select: Statement,
    url: String,
}

/// Created and removed here.
const TABLE: &str = "sidebloom_song_catalog";

impl Songs {
    pub fn create(url: &str, catalogue: &Catalogue) -> Result<Self> {
        let started = Instant::now();
        let mut client = sidebloom_postgres::connect(url)?;
        client.batch_execute(&format!("CREATE TABLE {TABLE} (title text NOT NULL, year bigint)"))?;
        let mut rows = client.copy_in(&format!("COPY {TABLE} FROM STDIN"))?;
        for (title, year) in catalogue.songs() {
            writeln!(rows, "{}\t{year}", title.replace('\\', "\\\\"))?;
        }
        rows.finish()?;
        client.batch_execute(&format!("CREATE INDEX ON {TABLE} (title) INCLUDE (year)"))?;
        client.batch_execute(&format!("VACUUM ANALYZE {TABLE}"))?;
        println!("  database built in {:.1} s", started.elapsed().as_secs_f64());
        let select = client.prepare(&format!("SELECT year FROM {TABLE} WHERE title = $1"))?;
        Ok(Songs { client, select, url: url.to_owned() })
    }

    pub fn source(&self) -> Result<PostgresSource> {
        Ok(PostgresSource::connect(&self.url, TABLE, "title")?)
    }

    pub fn year(&mut self, title: &str) -> Result<Option<i64>> {
        Ok(self.client.query_opt(&self.select, &[&title])?.map(|row| row.get(0)))
    }
}

impl Drop for Songs {
    fn drop(&mut self) {
        if let Err(error) = self.client.batch_execute(&format!("DROP TABLE {TABLE}")) {
            eprintln!("cannot drop the table {TABLE}: {error}");
        }
    }
}
