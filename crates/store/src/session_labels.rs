//! The table `session_labels`: human labels of task success. A new label of a session replaces the
//! previous one.

use super::row::{Record as _, Rows, read_from, record};
use super::statement::stored_as;
use super::{Store, StoreError, bound};
use selftest_grading::grade::{LabelSource, SessionLabel};

record!(SessionLabel, "session_labels", {
    session_id,
    success,
    source,
    task,
    note [bound::TEXT],
    labelled_at,
});

stored_as! { Text: LabelSource => |source, _limit| source.name().to_owned() }
read_from! { |row, name| LabelSource => row.named(name, LabelSource::from_name) }

impl Store {
    /// Saves labels in one transaction.
    pub async fn add_labels(&self, labels: &[SessionLabel]) -> Result<(), StoreError> {
        let mut writing = self.begin_write().await?;
        for label in labels {
            writing.execute(SessionLabel::upsert("session_id"), label.values()).await?;
        }
        writing.commit().await
    }

    /// Returns all labels, sorted by session.
    pub async fn labels(&self) -> Result<Rows<SessionLabel>, StoreError> {
        self.find("ORDER BY session_id", []).await
    }
}
