//! Reads sources in tests of the readers.

use super::{Session, SessionCollector, SessionFormat, SessionSource, read};

/// Reads a source, which must be of this format, with its only session.
#[track_caller]
pub(crate) fn only_session(format: SessionFormat, source: &SessionSource) -> Session {
    let mut collector = SessionCollector::default();
    let reading = read(source, &mut collector).unwrap();
    assert_eq!((reading.format, reading.sessions), (format, 1));
    collector.into_sessions().remove(0)
}
