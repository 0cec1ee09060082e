//! Describes the shape of a JSON value, by which formats recognise their content.

mod fill;

/// Shape of a JSON value: the keys of an object and a few short values that distinguish formats.
/// For a list, the shapes of its first elements.
#[derive(Debug, Default, Clone)]
pub(crate) struct JsonOutline {
    pub(crate) is_list: bool,
    pub(crate) is_object: bool,
    pub(crate) keys: Vec<String>,
    /// Values of the keys in [`MARKS`].
    pub(crate) marks: Vec<(&'static str, String)>,
    /// First elements of a list.
    pub(crate) elements: Vec<JsonOutline>,
    /// Outlines of the lists and objects in [`INNER`].
    pub(crate) inner: Vec<(&'static str, JsonOutline)>,
}

pub(crate) const MARKS: [&str; 8] =
    ["type", "kind", "role", "from", "source", "trajectory_format", "schema_version", "id"];
pub(crate) const INNER: [&str; 17] = [
    "context",
    "data",
    "spans",
    "runs",
    "observations",
    "traces",
    "payload",
    "message",
    "messages",
    "traj",
    "history",
    "conversations",
    "parts",
    "input",
    "output",
    "v",
    "contents",
];

impl JsonOutline {
    pub(crate) fn has(&self, key: &str) -> bool {
        self.keys.iter().any(|own| own == key)
    }

    pub(crate) fn mark(&self, name: &str) -> &str {
        self.marks.iter().find(|(own, _)| *own == name).map_or("", |(_, value)| value)
    }

    /// Returns the outline of a list or object in [`INNER`].
    pub(crate) fn inner(&self, name: &str) -> Option<&JsonOutline> {
        self.inner.iter().find(|(own, _)| *own == name).map(|(_, outline)| outline)
    }

    /// Returns the first elements of a list in [`INNER`].
    pub(crate) fn list(&self, name: &str) -> &[JsonOutline] {
        self.inner(name).map_or(&[], |list| &list.elements)
    }

    /// Describes a value that is not a session, for an error message.
    pub(crate) fn describe(&self) -> String {
        let mut keys: Vec<String> =
            self.keys.iter().take(8).map(|key| selftest_text::one_line(key, 40)).collect();
        if self.keys.len() > keys.len() {
            keys.push("…".to_owned());
        }
        match self.elements.first() {
            Some(first) if first.is_list => "lists inside of a list".to_owned(),
            Some(first) if first.is_object => format!("a list of {}", first.describe()),
            _ if self.is_list => "a list without objects".to_owned(),
            _ if !keys.is_empty() => format!("objects with the keys {}", keys.join(", ")),
            _ if self.is_object => "an empty object".to_owned(),
            _ => "no JSON object was found in it".to_owned(),
        }
    }
}
