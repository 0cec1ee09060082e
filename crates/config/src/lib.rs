//! The configuration: combines the settings of all crates from file, environment and flags.
//!
//! Reads files and the environment, but writes and prints nothing, and starts no model. The YAML
//! parser is that of `selftest_checks`.

mod checks;
pub mod diagnostics;
pub mod document;
pub mod environment;
pub mod layers;
mod shape;
pub mod show;
pub mod suite;
#[cfg(test)]
mod tests;
pub mod variables;

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

pub use diagnostics::{ConfigErrors, Diagnostic, DiagnosticTarget};
pub use document::{Config, ReportSettings, schema};
pub use environment::Environment;
pub use layers::{ConfigSources, FlagValue, ResolvedConfig, resolve};
pub use show::show;
pub use variables::ValueOrigin;

pub(crate) use selftest_checks::yaml::{
    ByteSpan, DuplicateKey, NodeLocation, SyntaxError, YamlDocument, YamlFileKind, YamlSchema,
    join, parse,
};

/// Default path of the configuration in a project.
pub const DEFAULT_PATH: &str = "config/selftest.yaml";

/// A configuration that explains every key; also this repository's own.
pub const TEMPLATE: &str = include_str!("../../../config/selftest.yaml");

/// Loads the configuration of a project. `explicit` is a path chosen by the user, relative to the
/// current folder; it must exist, while the default file is optional.
pub fn load(
    project: &Path,
    explicit: Option<&Path>,
    environment: &Environment,
    flags: Vec<FlagValue>,
    last: &ParsedFileCache,
) -> Result<ResolvedConfig, ConfigErrors> {
    let default = project.join(DEFAULT_PATH);
    // Strip a useless `./` prefix from the path in messages.
    let path = explicit.unwrap_or(default.strip_prefix(".").unwrap_or(&default));
    // A pipe that a user names has a writer; one that lies in a project waits forever.
    if explicit.is_none() && is_special(path) {
        let message = "expected a file, found a pipe or a device".to_owned();
        return Err(ConfigErrors::of_file(path.to_owned(), message, None));
    }
    let file = match read(path, CONFIG) {
        Ok(text) => Some((path.to_owned(), text)),
        Err(None) if explicit.is_none() => None,
        Err(None) => {
            let message = "there is no such file".to_owned();
            return Err(ConfigErrors::of_file(path.to_owned(), message, Some(CONFIG.hint)));
        }
        Err(Some(message)) => return Err(ConfigErrors::of_file(path.to_owned(), message, None)),
    };
    let sources = ConfigSources { file, environment: environment.settings.clone(), flags };
    resolve(sources, last).map_err(|errors| without_foreign_text(path, errors))
}

/// Leaves out the faults of a file that a link leads to, unless it is in the current folder: their
/// lines would be printed. A branch could hold a link to a file of the machine with secrets, and logs
/// of CI are often public.
fn without_foreign_text(path: &Path, errors: ConfigErrors) -> ConfigErrors {
    let is_of_file = |fault: &Diagnostic| matches!(fault.target, DiagnosticTarget::File(Some(_)));
    if !leads_elsewhere(path) || !errors.diagnostics.iter().any(is_of_file) {
        return errors;
    }
    let message = "it is a link to a file elsewhere, which has faults".to_owned();
    let hint = "name the file itself to see them";
    ConfigErrors::of_file(path.to_owned(), message, Some(hint))
}

/// Returns true if a link on the way leads out of the current folder, or, for an absolute path, out of
/// that of the file.
fn leads_elsewhere(path: &Path) -> bool {
    let base = if path.is_relative() { Some(Path::new(".")) } else { path.parent() };
    let found = base.and_then(|base| Some((path.canonicalize().ok()?, base.canonicalize().ok()?)));
    found.is_some_and(|(found, base)| !found.starts_with(base))
        && path.ancestors().any(Path::is_symlink)
}

/// Returns true for a pipe, a socket or a device.
fn is_special(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// Reads a file; the error is `None` if it does not exist.
fn read(path: &Path, kind: YamlFileKind) -> Result<String, Option<String>> {
    if path.is_dir() {
        return Err(Some("expected a file, found a folder".to_owned()));
    }
    // Reads one byte more than the limit to detect a file that is too large.
    let limit = kind.max_bytes as u64;
    let mut bytes = Vec::new();
    let result = File::open(path).and_then(|file| file.take(limit + 1).read_to_end(&mut bytes));
    if let Err(error) = result {
        return Err(
            (error.kind() != ErrorKind::NotFound).then(|| format!("cannot be read: {error}"))
        );
    }
    if bytes.len() as u64 > limit {
        return Err(Some(format!("the file has more than {limit} bytes")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let before = String::from_utf8_lossy(&error.as_bytes()[..valid]);
        let line = before.matches('\n').count() + 1;
        let column = valid - before.rfind('\n').map_or(0, |end| end + 1) + 1;
        Some(format!("not UTF-8: byte {column} of line {line} belongs to no character"))
    })
}

/// A configuration file.
const CONFIG: YamlFileKind = YamlFileKind {
    max_bytes: 1 << 20,
    hint: "`selftest init` writes a commented configuration",
    schema: YamlSchema::V1_2,
};

/// Cache of the last parsed text and its document.
#[derive(Default)]
pub struct ParsedFileCache(Mutex<Option<(String, Arc<YamlDocument>)>>);

impl ParsedFileCache {
    /// Parses a configuration text, or returns the cached document of the same text.
    fn parse(&self, text: &str) -> Result<Arc<YamlDocument>, SyntaxError> {
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
