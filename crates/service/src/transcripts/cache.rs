//! Cache of recently read session parts, so that paging does not read the file again. Its size is
//! bounded, and an entry is valid only while the file is unchanged.

use std::collections::VecDeque;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use super::TranscriptReader;
use selftest_grading::report::session::{SessionOverview, texts};
use selftest_sessions::{Event, ReadNotes, Session, SessionFile};

/// Maximum number of cached parts.
const MAX_PARTS: usize = 12;

/// Maximum bytes of all parts.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// Maximum bytes of a part that includes events beyond the requested ones.
pub(super) const MAX_PART: usize = 6 * 1024 * 1024;

/// A session in a particular version of a file. If size or time differ, the content may differ too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SessionFileVersion {
    path: PathBuf,
    session_id: String,
    size: u64,
    modified_ns: i64,
    /// Size and time of the `-wal` file beside a database, which contains its newest rows.
    log: Option<(u64, u128)>,
}

impl SessionFileVersion {
    pub(super) fn of(found: &SessionFile, session_id: &str) -> Self {
        let path = found.source.path().to_owned();
        // SQLite adds new rows to the `-wal` file first, leaving the database file unchanged.
        let mut log = path.clone().into_os_string();
        log.push("-wal");
        let log = std::fs::metadata(log).ok().map(|log| {
            let modified = log.modified().ok();
            let since = modified.and_then(|modified| modified.duration_since(UNIX_EPOCH).ok());
            (log.len(), since.unwrap_or_default().as_nanos())
        });
        let (size, modified_ns) = (found.size, found.modified_ns);
        Self { path, session_id: session_id.to_owned(), size, modified_ns, log }
    }
}

/// A part of a session as stored in its file, including secrets.
#[derive(Debug)]
pub(super) struct CachedPart {
    /// Range of requested event numbers; the session may have fewer.
    pub(super) range: Range<u64>,
    pub(super) session: Session,
    pub(super) overview: SessionOverview,
    pub(super) notes: ReadNotes,
}

impl CachedPart {
    /// Returns the session with only the events in `wanted`.
    pub(super) fn session(&self, wanted: &Range<u64>) -> Session {
        let events = self.session.events.iter().filter(|event| wanted.contains(&event.number));
        let head = self.session.head.clone();
        Session { head, events: events.cloned().collect(), left_out: 0 }
    }

    fn bytes(&self) -> usize {
        let texts = |event: &Event<'_>| texts(event).map(str::len).sum::<usize>();
        let event = |event: &Event<'static>| size_of::<Event<'_>>() + texts(event);
        self.session.events.iter().map(event).sum()
    }
}

/// Returns the range to read for these events, extended by some pages around them.
pub(super) fn extended_range(wanted: &Range<u64>) -> Range<u64> {
    let count = wanted.end.saturating_sub(wanted.start);
    let few = TranscriptReader::MAX_EVENTS / 2;
    let half = if count <= few { few } else { TranscriptReader::MAX_EVENTS };
    // Aligned, so that neighboring pages share a cached part.
    let start = wanted.start - wanted.start % half;
    start..start.saturating_add(2 * half)
}

/// Cached parts, most recently used last.
#[derive(Debug, Default)]
pub(super) struct PartCache(VecDeque<(SessionFileVersion, Arc<CachedPart>, usize)>);

impl PartCache {
    /// Returns a part of that session that contains these events.
    pub(super) fn get(
        &mut self,
        identity: &SessionFileVersion,
        wanted: &Range<u64>,
    ) -> Option<Arc<CachedPart>> {
        let holds = |part: &CachedPart| {
            part.range.start <= wanted.start
                && (wanted.end <= part.range.end || part.overview.events <= part.range.end)
        };
        let at = self.0.iter().position(|(of, part, _)| of == identity && holds(part))?;
        let entry = self.0.remove(at)?;
        let part = Arc::clone(&entry.1);
        self.0.push_back(entry);
        Some(part)
    }

    pub(super) fn put(&mut self, identity: SessionFileVersion, part: Arc<CachedPart>) {
        // Entries for earlier versions of the file can never match again.
        let is_older = |of: &SessionFileVersion| {
            of.path == identity.path && of.session_id == identity.session_id && *of != identity
        };
        self.0.retain(|(of, other, _)| {
            let is_same = *of == identity && other.range == part.range;
            !is_same && !is_older(of)
        });
        let bytes = part.bytes();
        self.0.push_back((identity, part, bytes));
        let all = |kept: &Self| kept.0.iter().map(|(_, _, bytes)| bytes).sum::<usize>();
        // The newest part always stays: the page that asked for it will ask for the next events of
        // it.
        while self.0.len() > MAX_PARTS || (self.0.len() > 1 && all(self) > MAX_BYTES) {
            self.0.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(path: &str, size: u64) -> SessionFileVersion {
        let (path, session_id) = (path.into(), "s".to_owned());
        SessionFileVersion { path, session_id, size, modified_ns: 1, log: None }
    }

    fn part(range: Range<u64>, events: u64) -> Arc<CachedPart> {
        let overview = SessionOverview { events, ..SessionOverview::default() };
        let (session, notes) = (Session::default(), ReadNotes::default());
        Arc::new(CachedPart { range, session, overview, notes })
    }

    #[test]
    fn a_part_is_good_for_the_events_in_it_while_the_file_is_as_it_was() {
        let mut kept = PartCache::default();
        kept.put(identity("a", 1), part(0..2000, 5000));
        assert!(kept.get(&identity("a", 1), &(200..400)).is_some());
        assert!(kept.get(&identity("a", 1), &(1900..2100)).is_none());
        assert!(kept.get(&identity("a", 2), &(200..400)).is_none(), "it has grown");
        kept.put(identity("a", 2), part(0..2000, 1500));
        assert!(kept.get(&identity("a", 2), &(1400..2400)).is_some(), "there are no more");
        assert!(kept.get(&identity("a", 1), &(200..400)).is_none());
        assert_eq!(kept.0.len(), 1);
    }

    #[test]
    fn few_parts_are_kept_and_the_last_used_stay_longest() {
        let mut kept = PartCache::default();
        for number in 0..=MAX_PARTS {
            kept.put(identity(&number.to_string(), 1), part(0..2000, 10));
            let _ = kept.get(&identity("0", 1), &(0..10));
        }
        assert_eq!(kept.0.len(), MAX_PARTS);
        assert!(kept.get(&identity("0", 1), &(0..10)).is_some());
        assert!(kept.get(&identity("1", 1), &(0..10)).is_none());
    }

    #[test]
    fn what_is_read_holds_what_is_wanted() {
        for (start, end) in
            [(0, 200), (400, 600), (499, 999), (950, 1950), (1000, 2000), (49_800, 50_000)]
        {
            let part = extended_range(&(start..end));
            assert!(part.start <= start && end <= part.end, "{part:?}");
        }
    }
}
