//! Whether a connection goes back into its pool after it was used. Holds no connection itself.

use sqlx::Connection;

/// Whether a connection may be used again: one whose transaction could not be ended is closed.
///
/// SQLite rolls some transactions back by itself, such as those that a full disk breaks off. The
/// rollback that follows then fails, sqlx goes on counting a transaction, and every later one on
/// that connection is refused.
pub(super) async fn is_reusable<C: Connection>(connection: &mut C) -> Result<bool, sqlx::Error> {
    // A rollback for which nobody waited is done before it is answered.
    connection.ping().await?;
    Ok(!connection.is_in_transaction())
}
