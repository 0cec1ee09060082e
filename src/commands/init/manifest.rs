//! The manifest of a project: its name, and the programs that it installs. Pure; a
//! manifest is a stranger's, whatever it holds.

use std::collections::BTreeMap;

use selftest_text::one_line;
use serde_json::Value;

use super::commands::{FoundCommand, RequestBy};

/// Most bytes of a name or a path.
const MAX_NAME: usize = 80;

/// Most programs that are taken from one manifest.
const MAX_PROGRAMS: usize = 20;

/// A program that a package installs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PackageProgram {
    pub(super) name: String,
    /// From the folder of the project, with `/`, never out of it.
    pub(super) path: String,
}

/// The used part of a `package.json`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Package {
    pub(super) name: Option<String>,
    pub(super) programs: Vec<PackageProgram>,
}

/// A `package.json` is not JSON.
#[derive(Debug, thiserror::Error)]
#[error("not JSON: {0}")]
pub(super) struct ManifestError(#[from] serde_json::Error);

impl Package {
    /// Reads a `package.json`.
    pub(super) fn read(text: &str) -> Result<Self, ManifestError> {
        let value: Value = serde_json::from_str(text.trim_start_matches('\u{feff}'))?;
        let name = value.get("name").and_then(Value::as_str).and_then(plain_name);
        let mut programs = Vec::new();
        match value.get("bin") {
            Some(Value::String(path)) => {
                let name = name.clone().unwrap_or_else(|| "the program".to_owned());
                programs.extend(path_within(path).map(|path| PackageProgram { name, path }));
            }
            Some(Value::Object(all)) => {
                for (name, path) in all.iter().take(MAX_PROGRAMS) {
                    let path = path.as_str().and_then(path_within);
                    programs.extend(
                        plain_name(name)
                            .zip(path)
                            .map(|(name, path)| PackageProgram { name, path }),
                    );
                }
            }
            _ => {}
        }
        Ok(Self { name, programs })
    }
}

impl PackageProgram {
    /// How it is started in the project's folder, without a shell.
    pub(super) fn command(&self) -> FoundCommand {
        let is_script = [".js", ".mjs", ".cjs"].iter().any(|end| self.path.ends_with(end));
        let words = if is_script {
            vec!["node".to_owned(), self.path.clone()]
        } else {
            vec![format!("./{}", self.path)]
        };
        FoundCommand {
            words,
            environment: BTreeMap::new(),
            request: RequestBy::Stdin,
            output: None,
            origin: "package.json".to_owned(),
        }
    }
}

/// The name in a `Cargo.toml` or `pyproject.toml`: the first `name = "…"` of the package's table.
pub(super) fn toml_name(text: &str) -> Option<String> {
    let mut in_package = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            in_package = line == "[package]" || line == "[project]" || line == "[tool.poetry]";
        } else if in_package
            && let Some((key, value)) = line.split_once('=')
            && key.trim() == "name"
        {
            return plain_name(value.trim().trim_matches(['"', '\'']));
        }
    }
    None
}

/// A name on one line and without its scope: `@team/tool` is `tool`.
pub(super) fn plain_name(name: &str) -> Option<String> {
    let name = one_line(name.rsplit('/').next().unwrap_or_default(), MAX_NAME);
    let sound = !name.is_empty()
        && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | ' '));
    sound.then_some(name)
}

/// A relative path that stays below where it starts.
fn path_within(path: &str) -> Option<String> {
    let path = path.strip_prefix("./").unwrap_or(path);
    let sound = !path.is_empty()
        && path.len() <= 4 * MAX_NAME
        && !path.starts_with(['/', '\\', '-'])
        && !path.chars().any(|c| c.is_control() || c == '\\' || c == ':')
        && path.split('/').all(|part| !part.is_empty() && part != "." && part != "..");
    sound.then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn programs(text: &str) -> Vec<(String, String)> {
        let package = Package::read(text).unwrap();
        package.programs.into_iter().map(|program| (program.name, program.path)).collect()
    }

    #[test]
    fn programs_of_a_package() {
        let one = r#"{"name": "@team/helper", "bin": "./bin/helper.js"}"#;
        assert_eq!(programs(one), [("helper".to_owned(), "bin/helper.js".to_owned())]);
        let two = r#"{"bin": {"ask": "cli.mjs", "serve": "bin/serve"}}"#;
        let package = Package::read(two).unwrap();
        let commands: Vec<_> =
            package.programs.iter().map(|program| program.command().words).collect();
        assert_eq!(commands, [vec!["node", "cli.mjs"], vec!["./bin/serve"]]);
    }

    #[test]
    fn paths_out_of_the_project_and_odd_names_are_left_out() {
        for path in ["../../etc/passwd", "/bin/sh", "a/../../b", "", "./", "C:\\x.exe", "-rf"] {
            let text = serde_json::json!({ "name": "x", "bin": path }).to_string();
            assert_eq!(programs(&text), [], "{path}");
        }
        assert_eq!(programs(r#"{"bin": {"a\u001b[31mb": "x.js", "c": 7}}"#), []);
        assert_eq!(programs(r#"{"bin": [1, 2], "name": 3}"#), []);
        assert!(Package::read("{").unwrap_err().to_string().starts_with("not JSON"));
        assert!(Package::read(&"[".repeat(100_000)).is_err(), "no recursion without end");
    }

    #[test]
    fn names_of_toml_manifests() {
        assert_eq!(
            toml_name("[workspace]\nname = \"no\"\n[package]\nname = \"ferry\"\n"),
            Some("ferry".into())
        );
        assert_eq!(toml_name("[project]\n  name = 'times'"), Some("times".into()));
        assert_eq!(toml_name("name = \"nobody\"\n[package]\nname.workspace = true"), None);
        assert_eq!(plain_name("@a/\u{1b}x`y"), None);
    }
}
