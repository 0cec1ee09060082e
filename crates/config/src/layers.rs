//! Merges the configuration layers: defaults < file < `SELFTEST_*` environment < flags.
//!
//! Pure: takes text, pairs and flags, and returns the settings with their origins, or all errors.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::diagnostics::{self, ConfigErrors, ConfigFault, Diagnostic, DiagnosticTarget};
use super::document::{Config, drop_nulls, schema};
use super::shape::{self, DocumentValidator};
use super::variables::{ValueOrigin, ValueOverlay};
use super::{ParsedFileCache, SyntaxError, YamlDocument, checks, variables};
use selftest_harness::rubric::{Rubric, RubricError};
use selftest_harness::sut::sut_settings::ADAPTERS;

/// Inputs of the configuration.
#[derive(Debug, Clone, Default)]
pub struct ConfigSources {
    /// Path and text of the file.
    pub file: Option<(PathBuf, String)>,
    /// Environment variables; only names that start with `SELFTEST_` are used.
    pub environment: Vec<(String, String)>,
    /// Flags in increasing precedence.
    pub flags: Vec<FlagValue>,
}

/// A key that is set by a flag.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlagValue {
    /// JSON Pointer of the key, such as `/judge/model`.
    pub pointer: String,
    /// The flag as typed, such as `--judge-model`.
    pub flag: String,
    /// The value.
    pub value: Value,
}

/// The merged and validated configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedConfig {
    /// All settings. `sut` has exactly one adapter, and every check has passed.
    pub config: Config,
    /// Rubric built from the settings.
    pub rubric: Rubric,
    /// Origin of each scalar value, by JSON Pointer.
    pub origins: BTreeMap<String, ValueOrigin>,
    /// Warnings, one line each.
    pub warnings: Vec<String>,
    /// Path of the file, if one was read.
    pub path: Option<PathBuf>,
    /// Flags in increasing precedence.
    pub flags: Vec<FlagValue>,
}

/// Merges the layers and validates the result; reports all errors, not only the first.
pub fn resolve(
    sources: ConfigSources,
    last: &ParsedFileCache,
) -> Result<ResolvedConfig, ConfigErrors> {
    let (path, text) = sources.file.unzip();
    let text = text.unwrap_or_default();
    let mut layers = ConfigLayers::new(path.is_some(), &text, last).map_err(|error| {
        ConfigErrors::new(path.clone(), text.clone(), vec![diagnostics::syntax_diagnostic(error)])
    })?;
    let variables = variables::read(&sources.environment);
    layers.warnings = variables.warnings;
    let given = sources.flags.clone();
    let flags = sources.flags.into_iter().map(|flag| ValueOverlay {
        pointer: flag.pointer,
        value: flag.value,
        origin: ValueOrigin::Flag { name: flag.flag },
    });
    layers.apply_overrides(variables.overlays.into_iter().chain(flags).collect());

    let mut diagnostics = variables.diagnostics;
    diagnostics.extend(layers.file.iter().flat_map(|file| diagnostics::duplicate_keys(file)));
    let faults = layers.faults();
    diagnostics.extend(faults.into_iter().map(|fault| layers.locate(fault)));
    if !diagnostics.is_empty() {
        return Err(ConfigErrors::new(path, text, diagnostics));
    }
    layers.finish(path.clone(), given).map_err(|error| {
        let diagnostic = Diagnostic::at(DiagnosticTarget::File(None), error.to_string());
        ConfigErrors::new(path, text, vec![diagnostic])
    })
}

/// Settings that pass the schema and still cannot be used.
#[derive(Debug, thiserror::Error)]
enum SettingsError {
    #[error(transparent)]
    Value(#[from] serde_json::Error),
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Rubric(Vec<RubricError>),
}

struct ConfigLayers {
    /// Offsets of the line breaks in the file.
    breaks: Vec<usize>,
    /// The parsed file; `None` without a file.
    file: Option<Arc<YamlDocument>>,
    /// The file's values, or the defaults, merged with the layers above.
    value: Value,
    /// Origins of the values set above the file.
    above: BTreeMap<String, ValueOrigin>,
    warnings: Vec<String>,
}

impl ConfigLayers {
    fn new(has_file: bool, text: &str, last: &ParsedFileCache) -> Result<Self, SyntaxError> {
        let file = has_file.then(|| last.parse(text)).transpose()?;
        let value = match &file {
            Some(document) => document.value.clone(),
            None => {
                json!({ "version": 1, "scenarios": Config::default().scenarios })
            }
        };
        Ok(Self {
            breaks: text.match_indices('\n').map(|(offset, _)| offset).collect(),
            file,
            value,
            above: BTreeMap::new(),
            warnings: Vec::new(),
        })
    }

    /// Merges values over the file. The file selects the adapter of the system under test; values
    /// for other adapters are ignored with a warning.
    fn apply_overrides(&mut self, overlays: Vec<ValueOverlay>) {
        // Asked of the file alone: a variable in the user's shell, such as one for another project,
        // must not add a second adapter, which is an error.
        let adapters = match adapters(&self.value["sut"]) {
            none if none.is_empty() => vec!["chat".to_owned()],
            adapters => adapters,
        };
        let (fitting, other): (Vec<ValueOverlay>, Vec<ValueOverlay>) =
            overlays.into_iter().partition(|overlay| {
                let key = overlay.pointer.strip_prefix("/sut/").and_then(|p| p.split('/').next());
                let adapter = key.filter(|key| ADAPTERS.contains(key));
                adapter.is_none_or(|adapter| adapters.iter().any(|chosen| chosen == adapter))
            });
        for overlay in other {
            // A name that sets several keys, such as `--model`, needs to fit only one of them.
            if !fitting.iter().any(|other| other.origin == overlay.origin) {
                let (ValueOrigin::Environment { name } | ValueOrigin::Flag { name }) =
                    &overlay.origin
                else {
                    continue;
                };
                let chosen = adapters.join(" and ");
                self.warnings
                    .push(format!("{name} sets nothing: the system under test is `{chosen}`"));
            }
        }
        for ValueOverlay { pointer, value, origin } in fitting {
            if set(&mut self.value, &pointer, value) {
                self.above.insert(pointer, origin);
            }
        }
    }

    fn faults(&self) -> Vec<ConfigFault> {
        // Skipped because validation takes a third of the time of a short command. A test checks
        // the defaults.
        let are_defaults = self.file.is_none() && self.above.is_empty();
        if are_defaults { Vec::new() } else { self.check() }
    }

    fn check(&self) -> Vec<ConfigFault> {
        let mut faults = DocumentValidator::for_config().check(&self.value);
        faults.extend(checks::check(&shape::without_unknown_keys(&self.value, &faults)));
        faults
    }

    /// Maps a fault to a location that the user can open.
    fn locate(&self, fault: ConfigFault) -> Diagnostic {
        let target = match self.above.get(&fault.pointer) {
            Some(ValueOrigin::Environment { name }) => DiagnosticTarget::Variable(name.clone()),
            Some(ValueOrigin::Flag { name }) => DiagnosticTarget::Flag(name.clone()),
            _ => return diagnostics::locate(self.file.as_deref(), fault),
        };
        Diagnostic { target, ..diagnostics::locate(self.file.as_deref(), fault) }
    }

    /// Returns what set this key above the file: by itself, or with a section that it is in.
    fn override_of(&self, pointer: &str) -> Option<&ValueOrigin> {
        // An override may set a whole section, such as `sut.http`. Its keys then come from there,
        // and not from a line of the file.
        let ends = pointer.match_indices('/').map(|(at, _)| at).skip(1).chain([pointer.len()]);
        ends.filter_map(|end| self.above.get(&pointer[..end])).last()
    }

    fn line(&self, pointer: &str) -> Option<usize> {
        let place = self.file.as_ref()?.places.get(pointer)?;
        let start = place.value.start;
        // Found by bisection: origins ask for the line of each value, and a suite may have
        // thousands.
        Some(self.breaks.partition_point(|offset| *offset < start) + 1)
    }

    /// Deserializes the settings. An error at this point has passed the schema, so it has no
    /// location.
    fn finish(
        mut self,
        path: Option<PathBuf>,
        flags: Vec<FlagValue>,
    ) -> Result<ResolvedConfig, SettingsError> {
        let config: Config = serde_json::from_value(self.value.take())?;
        let rubric = config.rubric().map_err(SettingsError::Rubric)?;
        // Serialised back, because only that has the defaults of what no layer names.
        let mut document = serde_json::to_value(&config)?;
        drop_nulls(&mut document);
        let mut origins = BTreeMap::new();
        self.origins(&document, String::new(), &mut origins);
        let file =
            path.as_ref().map_or_else(|| "defaults".into(), |path| path.display().to_string());
        for (pointer, words) in checks::warnings(&config) {
            self.warnings.push(match self.line(&pointer) {
                Some(line) => format!("{file}:{line}: {words}"),
                None => words,
            });
        }
        Ok(ResolvedConfig { config, rubric, origins, warnings: self.warnings, path, flags })
    }

    fn origins(&self, value: &Value, pointer: String, found: &mut BTreeMap<String, ValueOrigin>) {
        match value {
            Value::Object(members) if !members.is_empty() => {
                for (key, member) in members {
                    self.origins(member, super::join(&pointer, key), found);
                }
            }
            Value::Array(items) if !items.is_empty() => {
                for (index, item) in items.iter().enumerate() {
                    self.origins(item, format!("{pointer}/{index}"), found);
                }
            }
            _ => {
                let origin = match (self.override_of(&pointer), self.line(&pointer)) {
                    (Some(origin), _) => origin.clone(),
                    (None, Some(line)) => ValueOrigin::File { line },
                    (None, None) => ValueOrigin::Default,
                };
                found.insert(pointer, origin);
            }
        }
    }
}

/// Returns the adapters named in a `sut` section.
fn adapters(sut: &Value) -> Vec<String> {
    let keys = sut.as_object().into_iter().flat_map(Map::keys);
    keys.filter(|key| ADAPTERS.contains(&key.as_str())).cloned().collect()
}

/// Sets a key, and adds missing sections on its path with their defaults. Returns false if a value
/// on the path is not a mapping, which is reported as a separate error.
fn set(document: &mut Value, pointer: &str, value: Value) -> bool {
    let Some((parent, key)) = pointer.rsplit_once('/') else {
        return false;
    };
    let mut node = document;
    let mut path = String::new();
    for part in parent.split('/').skip(1) {
        path = format!("{path}/{part}");
        let Value::Object(members) = node else {
            return false;
        };
        node = members.entry(part).or_insert_with(|| {
            let default = shape::at(schema(), &path).and_then(|node| node.get("default"));
            default.cloned().unwrap_or_else(|| json!({}))
        });
    }
    let Value::Object(members) = node else {
        return false;
    };
    members.insert(key.to_owned(), value);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_have_no_faults() {
        let layers = ConfigLayers::new(false, "", &ParsedFileCache::default()).unwrap();
        assert_eq!(layers.check().len(), 0);
    }
}
