//! Several rows in one statement: handing a statement to the database costs more than most rows.

use sqlx::any::AnyArguments;
use sqlx::query::Query;
use sqlx::{Any, AnyConnection, AssertSqlSafe};

/// Rows of one statement.
const ROWS: usize = 32;

/// A statement to which values are bound.
pub(super) type AnyQuery<'q> = Query<'q, Any, AnyArguments>;

/// Inserts rows, each in place of the one that has its key.
pub(super) struct Insert<'a> {
    pub(super) table: &'a str,
    /// The column by which a row is known.
    pub(super) key: &'a str,
    /// All of them, in the order in which values are bound.
    pub(super) columns: &'a [&'a str],
}

impl Insert<'_> {
    /// Writes rows with different keys, in statements of one row and of many: each length is a
    /// statement of its own, and all of them are kept.
    pub(super) async fn run<T>(
        &self,
        connection: &mut AnyConnection,
        rows: &[T],
        bind: impl for<'q> Fn(AnyQuery<'q>, &T) -> AnyQuery<'q>,
    ) -> Result<(), sqlx::Error> {
        let many = rows.chunks_exact(ROWS);
        let rest = many.remainder().chunks(1);
        for part in many.chain(rest) {
            let query = sqlx::query(AssertSqlSafe(self.sql(part.len())));
            let query = part.iter().fold(query, &bind);
            query.execute(&mut *connection).await?;
        }
        Ok(())
    }

    fn sql(&self, rows: usize) -> String {
        let Self { table, key, columns } = self;
        // Without numbers: SQLite would search all of them for each one.
        let row = format!("({})", vec!["?"; columns.len()].join(", "));
        let values = vec![row; rows];
        let others = columns.iter().filter(|column| *column != key);
        let updates: Vec<String> =
            others.map(|column| format!("{column} = excluded.{column}")).collect();
        format!(
            "INSERT INTO {table} ({}) VALUES {} ON CONFLICT ({key}) DO UPDATE SET {}",
            columns.join(", "),
            values.join(", "),
            updates.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_statement_has_many_rows() {
        let insert = Insert { table: "t", key: "a", columns: &["a", "b"] };
        assert_eq!(
            insert.sql(2),
            "INSERT INTO t (a, b) VALUES (?, ?), (?, ?) \
             ON CONFLICT (a) DO UPDATE SET b = excluded.b"
        );
    }
}
