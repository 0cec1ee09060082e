//! Write transactions. Each waits for its turn and holds it until it ends. Also decides if the
//! connection that one leaves behind goes back into its pool.

use std::borrow::Cow;
use std::collections::HashSet;

use sqlx::any::AnyRow;
use sqlx::{Any, AnyConnection, Connection, Executor as _, Transaction};

use super::row::Record;
use super::statement::{Value, query};
use super::{Store, StoreError};

/// Maximum number of rows inserted by one statement. The round trip to the connection's thread
/// takes longer than inserting a row.
const MAX_ROWS: usize = 4;

/// A write transaction. Everything read in it stays valid until it ends; dropping it rolls back.
pub(super) struct WriteTransaction {
    transaction: Transaction<'static, Any>,
    store: Store,
    pending: Vec<PendingRows>,
}

/// Rows of one table, queued until the next statement.
struct PendingRows {
    table: &'static str,
    /// Upserts of 1, 2, 4 … rows.
    statements: [String; MAX_ROWS.ilog2() as usize + 1],
    rows: Vec<Vec<Value>>,
    /// Keys of the queued rows: a single statement cannot replace a row twice.
    keys: HashSet<String>,
}

impl Store {
    /// Starts a write transaction; at most one is active at a time.
    pub(super) async fn begin_write(&self) -> Result<WriteTransaction, StoreError> {
        let begun = self.pool.begin_with(self.engine.begin_statement()).await;
        let mut transaction = begun.map_err(|error| self.to_store_error(error))?;
        if let Some(turn) = self.engine.write_lock_statement() {
            // Not part of the begin statement: if it failed there, the transaction would not be
            // rolled back.
            transaction.execute(turn).await.map_err(|error| self.to_store_error(error))?;
        }
        Ok(WriteTransaction { transaction, store: self.clone(), pending: Vec::new() })
    }
}

impl WriteTransaction {
    /// Inserts a row or replaces the one with the same key, before the next statement and at the
    /// latest on commit. `key` names the column, `value` is its value.
    pub(super) async fn upsert<T: Record>(
        &mut self,
        key: &'static str,
        value: &str,
        row: &T,
    ) -> Result<(), StoreError> {
        // One statement cannot replace the same row twice.
        if self.pending.iter().any(|one| one.table == T::TABLE && one.keys.contains(value)) {
            self.flush().await?;
        }
        let known = self.pending.iter().position(|one| one.table == T::TABLE);
        let at = known.unwrap_or_else(|| {
            self.pending.push(PendingRows {
                table: T::TABLE,
                statements: std::array::from_fn(|power| T::upsert_rows(key, 1 << power)),
                rows: Vec::new(),
                keys: HashSet::new(),
            });
            self.pending.len() - 1
        });
        let waiting = &mut self.pending[at];
        waiting.rows.push(row.values());
        waiting.keys.insert(value.to_owned());
        if waiting.rows.len() >= MAX_ROWS { self.flush().await } else { Ok(()) }
    }

    /// Inserts the queued rows.
    async fn flush(&mut self) -> Result<(), StoreError> {
        for PendingRows { statements, rows, keys, .. } in &mut self.pending {
            keys.clear();
            while !rows.is_empty() {
                // Powers of two need few different statements, which connections keep prepared.
                let power = rows.len().min(MAX_ROWS).ilog2();
                let values = rows.drain(..1 << power).flatten();
                let statement = statements[power as usize].clone();
                let done = query(statement, values).execute(&mut *self.transaction).await;
                done.map_err(|error| self.store.to_store_error(error))?;
            }
        }
        Ok(())
    }

    /// Runs one statement and returns the number of rows changed.
    pub(super) async fn execute(
        &mut self,
        sql: impl Into<Cow<'static, str>>,
        values: impl IntoIterator<Item = Value>,
    ) -> Result<u64, StoreError> {
        self.flush().await?;
        let done = query(sql, values).execute(&mut *self.transaction).await;
        Ok(done.map_err(|error| self.store.to_store_error(error))?.rows_affected())
    }

    /// Returns the rows of a query.
    pub(super) async fn fetch(
        &mut self,
        sql: impl Into<Cow<'static, str>>,
        values: impl IntoIterator<Item = Value>,
    ) -> Result<Vec<AnyRow>, StoreError> {
        self.flush().await?;
        let rows = query(sql, values).fetch_all(&mut *self.transaction).await;
        rows.map_err(|error| self.store.to_store_error(error))
    }

    /// Returns the number in the first column of the first row.
    pub(super) async fn fetch_count(
        &mut self,
        sql: impl Into<Cow<'static, str>>,
        values: impl IntoIterator<Item = Value>,
    ) -> Result<u64, StoreError> {
        self.flush().await?;
        let row = query(sql, values).fetch_one(&mut *self.transaction).await;
        let count = row.and_then(|row| sqlx::Row::try_get::<i64, _>(&row, 0));
        Ok(count.map_err(|error| self.store.to_store_error(error))?.try_into().unwrap_or_default())
    }

    /// Returns the text in the first column of the first row.
    pub(super) async fn fetch_text(
        &mut self,
        sql: impl Into<Cow<'static, str>>,
        values: impl IntoIterator<Item = Value>,
    ) -> Result<Option<String>, StoreError> {
        self.flush().await?;
        let text = query(sql, values).fetch_optional(&mut *self.transaction).await;
        let text = text.and_then(|row| row.map(|row| sqlx::Row::try_get(&row, 0)).transpose());
        text.map_err(|error| self.store.to_store_error(error))
    }

    pub(super) fn connection(&mut self) -> &mut AnyConnection {
        &mut self.transaction
    }

    pub(super) async fn commit(mut self) -> Result<(), StoreError> {
        self.flush().await?;
        self.transaction.commit().await.map_err(|error| self.store.to_store_error(error))
    }

    /// Rolls back. Dropping the transaction instead would hold its locks until the connection is
    /// back in the pool.
    pub(super) async fn roll_back(self) -> Result<(), StoreError> {
        self.transaction.rollback().await.map_err(|error| self.store.to_store_error(error))
    }
}

/// Returns true if a connection may be reused. One whose transaction could not be ended is closed.
///
/// SQLite rolls back some transactions by itself, such as those interrupted by a full disk. The
/// rollback that follows then fails, sqlx still counts an open transaction, and every later one on
/// that connection is rejected.
pub(super) async fn is_reusable<C: Connection>(connection: &mut C) -> Result<bool, sqlx::Error> {
    // A pending rollback runs before the ping is answered.
    connection.ping().await?;
    Ok(!connection.is_in_transaction())
}
