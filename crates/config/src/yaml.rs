//! The kinds of YAML files of this crate, and a cache of the last parsed one: a command that loads
//! its configuration again with other flags does not parse the same text twice. The parser is that
//! of `selftest_checks`.

use std::sync::{Arc, Mutex, PoisonError};

pub(crate) use selftest_checks::yaml::*;

/// A configuration file.
pub(crate) const CONFIG: YamlFileKind = YamlFileKind {
    max_bytes: 1 << 20,
    hint: "`selftest init` writes a commented configuration",
    schema: YamlSchema::V1_2,
};

/// Cache of the last parsed text and its document.
#[derive(Default)]
pub struct ParsedFileCache(Mutex<Option<(String, Arc<YamlDocument>)>>);

impl ParsedFileCache {
    /// Parses a configuration text, or returns the cached document of the same text.
    pub(super) fn parse(&self, text: &str) -> Result<Arc<YamlDocument>, SyntaxError> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, document)) = &*last
            && known == text
        {
            return Ok(Arc::clone(document));
        }
        let document = Arc::new(parse(text, CONFIG)?);
        *last = Some((text.to_owned(), Arc::clone(&document)));
        Ok(document)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_text_is_not_parsed_again() {
        let last = ParsedFileCache::default();
        let one = last.parse("version: 1").unwrap();
        assert!(Arc::ptr_eq(&one, &last.parse("version: 1").unwrap()));
        assert_eq!(last.parse("version: 2").unwrap().value["version"], 2);
        assert!(last.parse("a: [").is_err());
        assert_eq!(last.parse("version: 1").unwrap().value["version"], 1);
    }
}
