//! Decides if a used connection goes back into its pool.

use sqlx::Connection;

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
