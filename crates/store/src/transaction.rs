//! Transactions that write. Each waits for its turn and holds it until it ends.

use std::borrow::Cow;

use sqlx::any::AnyRow;
use sqlx::{Any, AnyConnection, Executor as _, Transaction};

use super::statement::{Value, query};
use super::{Store, StoreError};

/// Everything read in it stays true until it ends. Dropped, it is rolled back.
pub(super) struct Writing {
    transaction: Transaction<'static, Any>,
    store: Store,
}

impl Store {
    /// A transaction that may write, and the only one that does.
    pub(super) async fn begin(&self) -> Result<Writing, StoreError> {
        let begun = self.pool.begin_with(self.engine.begin()).await;
        let mut transaction = begun.map_err(|error| self.failed(error))?;
        if let Some(turn) = self.engine.take_turn() {
            // Not in the statement that begins: where that fails, nobody would roll back.
            transaction.execute(turn).await.map_err(|error| self.failed(error))?;
        }
        Ok(Writing { transaction, store: self.clone() })
    }
}

impl Writing {
    /// Runs one statement: how many rows it changed.
    pub(super) async fn execute(
        &mut self,
        sql: impl Into<Cow<'static, str>>,
        values: impl IntoIterator<Item = Value>,
    ) -> Result<u64, StoreError> {
        let done = query(sql, values).execute(&mut *self.transaction).await;
        Ok(done.map_err(|error| self.store.failed(error))?.rows_affected())
    }

    /// The rows of a query.
    pub(super) async fn fetch(
        &mut self,
        sql: impl Into<Cow<'static, str>>,
        values: impl IntoIterator<Item = Value>,
    ) -> Result<Vec<AnyRow>, StoreError> {
        let rows = query(sql, values).fetch_all(&mut *self.transaction).await;
        rows.map_err(|error| self.store.failed(error))
    }

    /// The number in the first column of the first row.
    pub(super) async fn fetch_count(
        &mut self,
        sql: impl Into<Cow<'static, str>>,
        values: impl IntoIterator<Item = Value>,
    ) -> Result<u64, StoreError> {
        let row = query(sql, values).fetch_one(&mut *self.transaction).await;
        let count = row.and_then(|row| sqlx::Row::try_get::<i64, _>(&row, 0));
        Ok(count.map_err(|error| self.store.failed(error))?.try_into().unwrap_or_default())
    }

    /// The text in the first column of the first row.
    pub(super) async fn fetch_text(
        &mut self,
        sql: impl Into<Cow<'static, str>>,
        values: impl IntoIterator<Item = Value>,
    ) -> Result<Option<String>, StoreError> {
        let text = query(sql, values).fetch_optional(&mut *self.transaction).await;
        let text = text.and_then(|row| row.map(|row| sqlx::Row::try_get(&row, 0)).transpose());
        text.map_err(|error| self.store.failed(error))
    }

    pub(super) fn connection(&mut self) -> &mut AnyConnection {
        &mut self.transaction
    }

    pub(super) async fn commit(self) -> Result<(), StoreError> {
        self.transaction.commit().await.map_err(|error| self.store.failed(error))
    }

    /// Ends the transaction without its changes. Dropped, it would hold its locks until the pool
    /// has the connection back.
    pub(super) async fn roll_back(self) -> Result<(), StoreError> {
        self.transaction.rollback().await.map_err(|error| self.store.failed(error))
    }
}
