//! Several rows in one statement: handing a statement to the database costs more than most rows.

use sqlx::any::AnyArguments;
use sqlx::query::Query;
use sqlx::{Any, AnyConnection, AssertSqlSafe};

use super::dialect::Engine;

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
        let engine = Engine::of(connection);
        let many = rows.chunks_exact(ROWS);
        let rest = many.remainder().chunks(1);
        for part in many.chain(rest) {
            let query = sqlx::query(AssertSqlSafe(self.sql(engine, part.len())));
            let query = part.iter().fold(query, &bind);
            query.execute(&mut *connection).await?;
        }
        Ok(())
    }

    fn sql(&self, engine: Engine, rows: usize) -> String {
        let Self { table, key, columns } = self;
        let mut values = String::new();
        for number in 0..rows * columns.len() {
            values.push_str(match (number, number % columns.len()) {
                (0, _) => "(",
                (_, 0) => "), (",
                _ => ", ",
            });
            engine.placeholder(number + 1, &mut values);
        }
        let others = columns.iter().filter(|column| *column != key);
        let updates: Vec<String> =
            others.map(|column| format!("{column} = excluded.{column}")).collect();
        format!(
            "INSERT INTO {table} ({}) VALUES {values}) ON CONFLICT ({key}) DO UPDATE SET {}",
            columns.join(", "),
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
        for (engine, values) in
            [(Engine::Sqlite, "(?, ?), (?, ?)"), (Engine::Postgres, "($1, $2), ($3, $4)")]
        {
            let rest = "ON CONFLICT (a) DO UPDATE SET b = excluded.b";
            let expected = format!("INSERT INTO t (a, b) VALUES {values} {rest}");
            assert_eq!(insert.sql(engine, 2), expected);
        }
    }
}
