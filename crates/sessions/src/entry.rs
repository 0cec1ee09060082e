//! What each format declares about itself: how to recognise and read it, and where agents store it.

use super::SessionReadError;
use super::feed::{SessionFeed, SessionSink};
use super::lineage::LineageTracker;
pub(crate) use super::naming::IdSource;
use super::naming::SessionNaming;
use super::outline::JsonOutline;
use super::source::SessionSource;
use super::verified::VerifiedVersion;

/// Reads every session of a source. Only a source that cannot be read at all is an error; damage is
/// recorded in the notes of the feed.
pub(crate) type ReadSessions =
    fn(&SessionSource, &mut SessionFeed<'_>) -> Result<(), SessionReadError>;

/// What the crate needs to know of a format. Most fields have defaults in [`FormatEntry::new`].
pub(crate) struct FormatEntry {
    /// Reads the sessions.
    pub(crate) read: ReadSessions,
    /// Returns true if a JSON value, such as a line or a document, is of this format.
    pub(crate) json: fn(&JsonOutline) -> bool,
    /// Like `json`, for a shape that other formats share. Decides only if no `json` does.
    pub(crate) weak_json: fn(&JsonOutline) -> bool,
    /// True if a list of values that match `json` is of this format.
    pub(crate) in_lists: bool,
    /// Returns true if a list of JSON values is of this format, for formats whose single values
    /// cannot be recognised.
    pub(crate) json_list: fn(&[JsonOutline]) -> bool,
    /// A table of a SQLite database and columns that it must have.
    pub(crate) table: Option<(&'static str, &'static [&'static str])>,
    /// Returns true if the source is of this format, by its first bytes. For content that is
    /// neither JSON nor SQLite.
    pub(crate) bytes: fn(&[u8], &SessionSource) -> bool,
    /// Returns true if the files of a source are of this format, for sessions in several files.
    pub(crate) source: fn(&SessionSource) -> bool,
    /// Where the id of a session without one comes from.
    pub(crate) ids: IdSource,
    /// Where agents store such sessions by default.
    pub(crate) folders: &'static [AgentFolders],
    /// True if the agent stores one session in several places that differ in details.
    pub(crate) has_several_stores: bool,
    /// The newest version of the agent whose files were verified, if they state one.
    pub(crate) verified: Option<VerifiedVersion>,
}

impl FormatEntry {
    /// Returns an entry that no content matches.
    pub(crate) const fn new(read: ReadSessions) -> Self {
        Self {
            read,
            json: |_| false,
            weak_json: |_| false,
            in_lists: false,
            json_list: |_| false,
            table: None,
            bytes: |_, _| false,
            source: |_| false,
            ids: IdSource::Content,
            folders: &[],
            has_several_stores: false,
            verified: None,
        }
    }

    /// Creates the feed through which a reader of this format sends the sessions of a source.
    pub(crate) fn feed<'s>(
        &self,
        source: &SessionSource,
        sink: &'s mut dyn SessionSink,
    ) -> SessionFeed<'s> {
        let lineage = LineageTracker::new(self.has_several_stores);
        SessionFeed::new(SessionNaming::new(source, self.ids), lineage, sink)
    }
}

/// Folders of one agent, declared with the format of its sessions.
pub(crate) struct AgentFolders {
    /// Agent, as in [`AgentHome::agent`].
    pub(crate) agent: &'static str,
    /// Environment variable that replaces the roots.
    pub(crate) variable: Option<&'static str>,
    /// Default roots; not all of them exist.
    pub(crate) roots: &'static [HomeRoot],
    /// Folders and files below each root; an empty one is the root itself.
    pub(crate) parts: &'static [&'static str],
}

/// A folder, relative to one that depends on the user and the system.
pub(crate) enum HomeRoot {
    /// Below the home directory.
    Home(&'static str),
    /// Below `XDG_CONFIG_HOME`, by default `.config`.
    Config(&'static str),
    /// Below `XDG_DATA_HOME`, by default `.local/share`.
    Data(&'static str),
    /// Below `Library/Application Support` (macOS).
    Support(&'static str),
    /// The global storage of an editor's extensions.
    Editor(&'static str),
    /// The data of an editor's user.
    EditorUser(&'static str),
}
