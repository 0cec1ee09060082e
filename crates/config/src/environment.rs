//! Reads the process environment. Apart from the command line, only this module does so.
//!
//! Interprets only what has no settings key: model servers, folders, terminals, secrets. Secrets in
//! well-known credential files are read too, so that reports can redact their values; unreadable
//! files are ignored.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use secrecy::SecretString;

use super::variables::PREFIX;
use selftest_models::model_settings::ModelEnvironment;
use selftest_models::name::ModelName;
use selftest_text::file::open_regular;
use selftest_text::redact::known;

/// The process environment.
#[derive(Clone, Default)]
pub struct Environment {
    /// All variables whose name and value are UTF-8. Some are passed on to programs.
    pub variables: BTreeMap<String, String>,
    /// Variables named `SELFTEST_*`, sorted by name.
    pub settings: Vec<(String, String)>,
    /// Model settings.
    pub models: ModelEnvironment,
    /// True if `CI` is set, as on build machines.
    pub ci: bool,
    /// True if `NO_COLOR` is set.
    pub no_color: bool,
    /// Secret values to redact, of at least 8 bytes, longest first.
    pub secret_values: Vec<String>,
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Names only: values may be secret.
        f.debug_struct("Environment")
            .field("variables", &self.variables.keys())
            .field("ci", &self.ci)
            .field("no_color", &self.no_color)
            .finish_non_exhaustive()
    }
}

impl Environment {
    /// Reads the environment of this process. Variables that are not UTF-8 are ignored.
    pub fn from_process() -> Self {
        let utf8 = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        Self::from_variables(utf8.collect())
    }

    /// Returns the address of the run of GitHub Actions that this process is part of.
    pub fn github_run_url(&self) -> Option<String> {
        let set = |name: &str| self.variables.get(name).filter(|value| !value.is_empty());
        let server = set("GITHUB_SERVER_URL")?;
        let repository = set("GITHUB_REPOSITORY")?;
        let run = set("GITHUB_RUN_ID")?;
        Some(format!("{server}/{repository}/actions/runs/{run}"))
    }

    /// Interprets the given variables.
    pub fn from_variables(variables: BTreeMap<String, String>) -> Self {
        let text = |name: &str| variables.get(name).filter(|value| !value.is_empty()).cloned();
        let is_on = |name: &str| {
            text(name)
                .is_some_and(|value| !["0", "false", "no", "off"].contains(&&*value.to_lowercase()))
        };
        let models = ModelEnvironment {
            providers: ModelName::variables()
                .filter_map(|name| Some((name, SecretString::from(text(name)?))))
                .collect(),
            model_file: text("SELFTEST_MODEL_FILE").map(PathBuf::from),
            cache_folder: cache_folder(&variables),
            hf_endpoint: text("HF_ENDPOINT"),
            offline: is_on("SELFTEST_OFFLINE"),
        };
        let settings = variables.iter().filter(|(name, _)| name.starts_with(PREFIX));
        let settings = settings.map(|(name, value)| (name.clone(), value.clone())).collect();
        let mut secrets: Vec<String> = variables
            .iter()
            .flat_map(|(name, value)| known::secrets_in_setting(name, value))
            .collect();
        // A provider's key is secret under any name.
        let keys = ModelName::key_variables().filter_map(text);
        secrets.extend(keys.flat_map(|key| known::secrets_in_setting("key", &key)));
        // By no-color.org any value but an empty one switches colours off, even `0`.
        let (ci, no_color) = (is_on("CI"), text("NO_COLOR").is_some());
        let secret_values = Vec::new();
        let mut environment = Self { variables, settings, models, ci, no_color, secret_values };
        environment.add_secrets(secrets);
        environment
    }

    /// Adds secrets from other sources.
    pub fn add_secrets(&mut self, secrets: impl IntoIterator<Item = String>) {
        self.secret_values.extend(secrets);
        // Longest first, so that a secret that contains another is redacted completely.
        self.secret_values.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        self.secret_values.dedup();
    }
}

/// Returns the folder of downloaded model weights: `SELFTEST_CACHE`, else the user's cache folder,
/// else, without a home, a folder in the current one.
fn cache_folder(variables: &BTreeMap<String, String>) -> PathBuf {
    let folder = |name: &str| {
        let value = variables.get(name).filter(|value| !value.is_empty())?;
        Some(PathBuf::from(value))
    };
    if let Some(folder) = folder("SELFTEST_CACHE") {
        return folder;
    }
    let home = || {
        let home = folder("HOME")?;
        Some(home.join(if cfg!(target_os = "macos") { "Library/Caches" } else { ".cache" }))
    };
    // The XDG specification requires relative paths to be ignored.
    let user = folder("XDG_CACHE_HOME").filter(|folder| folder.is_absolute());
    let user = user.or_else(home).or_else(|| folder("LOCALAPPDATA"));
    user.unwrap_or_else(|| Path::new(".selftest").join("cache")).join("selftest").join("models")
}

/// Credential files in the user's home.
const IN_HOME: [&str; 12] = [
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".git-credentials",
    ".aws/credentials",
    ".cargo/credentials.toml",
    ".config/gh/hosts.yml",
    ".docker/config.json",
    ".huggingface/token",
    ".cache/huggingface/token",
    ".vault-token",
];
/// Prefix of variable files in a project.
const IN_PROJECT: &str = ".env";
/// Suffixes of template files without real values.
const EXAMPLES: [&str; 4] = ["example", "sample", "template", "dist"];
/// Maximum bytes read per file.
const MAX_BYTES: u64 = 64 * 1024;
/// Maximum number of files per project.
const MAX_FILES: usize = 20;

/// Returns the secrets in files of the project folder and of the user's home.
pub fn secrets_in_files(project: &Path, variables: &BTreeMap<String, String>) -> Vec<String> {
    let home = variables.get("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    let in_home = home.iter().flat_map(|home| IN_HOME.map(|name| home.join(name)));
    in_home.chain(of_project(project)).flat_map(|file| secrets_of(&file)).collect()
}

fn of_project(folder: &Path) -> Vec<PathBuf> {
    let items = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_one = |name: &str| {
        name.strip_prefix(IN_PROJECT).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            && !EXAMPLES.iter().any(|end| name.ends_with(end))
            || [".npmrc", ".netrc", ".pypirc"].contains(&name)
    };
    let named = items.filter(|item| item.file_name().to_str().is_some_and(is_one));
    let mut files: Vec<PathBuf> = named.map(|item| item.path()).collect();
    // Before the cut: folders are listed in no order, and the same files should be read each time.
    files.sort_unstable();
    files.truncate(MAX_FILES);
    files
}

fn secrets_of(file: &Path) -> Vec<String> {
    let mut bytes = Vec::new();
    let read = open_regular(file).and_then(|file| file.take(MAX_BYTES).read_to_end(&mut bytes));
    if read.is_err() {
        return Vec::new();
    }
    let text = String::from_utf8_lossy(&bytes);
    // A token file contains nothing but the secret, so it has no names to search for.
    let is_whole = file.file_name().is_some_and(|name| name == "token" || name == ".vault-token");
    if is_whole { known::secrets_in_setting("token", &text) } else { known::secrets_in_file(&text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> Environment {
        let pairs = pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned()));
        Environment::from_variables(pairs.collect())
    }

    #[test]
    fn model_variables_are_gathered_and_empty_ones_ignored() {
        let environment = environment(&[
            ("OLLAMA_HOST", "0.0.0.0"),
            ("OPENAI_API_KEY", "sk-12345678"),
            ("OPENAI_BASE_URL", ""),
            ("SELFTEST_OFFLINE", "1"),
            ("SELFTEST_MODEL_FILE", "/m.gguf"),
            ("SELFTEST_STRICTNESS", "1"),
        ]);
        let models = &environment.models;
        assert_eq!(models.text("OLLAMA_HOST"), Some("0.0.0.0"));
        assert_eq!(models.text("OPENAI_API_KEY"), Some("sk-12345678"));
        assert_eq!(models.text("OPENAI_BASE_URL"), None);
        assert_eq!(models.model_file.as_deref(), Some(Path::new("/m.gguf")));
        assert!(models.offline);
        assert_eq!(environment.settings.len(), 3);
        assert_eq!(environment.secret_values, ["sk-12345678"]);
        assert!(!format!("{environment:?}").contains("sk-12345678"));
    }

    #[test]
    fn ci_and_colour() {
        assert!(environment(&[("CI", "true")]).ci && environment(&[("CI", "1")]).ci);
        assert!(!environment(&[("CI", "false")]).ci && !environment(&[("CI", "")]).ci);
        assert!(
            environment(&[("NO_COLOR", "1")]).no_color
                && !environment(&[("NO_COLOR", "")]).no_color
        );
    }

    #[test]
    fn the_cache_folder_follows_the_user() {
        let folder = |pairs| environment(pairs).models.cache_folder;
        assert_eq!(folder(&[("SELFTEST_CACHE", "/c"), ("HOME", "/h")]), Path::new("/c"));
        let xdg = [("XDG_CACHE_HOME", "/x"), ("HOME", "/h")];
        assert_eq!(folder(&xdg), Path::new("/x/selftest/models"));
        assert_eq!(folder(&[("XDG_CACHE_HOME", "x"), ("HOME", "/h")]), folder(&[("HOME", "/h")]));
        assert!(folder(&[("HOME", "/h")]).starts_with("/h"));
        assert_eq!(folder(&[]), Path::new(".selftest/cache/selftest/models"));
    }

    #[test]
    fn secrets_are_known_by_name_and_length() {
        let environment = environment(&[
            ("GITHUB_TOKEN", "ghp_abcdefgh"),
            ("db_password", "long-enough-password"),
            ("SHORT_KEY", "short"),
            ("KEYBOARD", "us-international"),
        ]);
        assert_eq!(environment.secret_values, ["long-enough-password", "ghp_abcdefgh"]);
    }

    #[test]
    fn secrets_of_a_project_and_a_home() {
        let (project, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(project.path().join(".env"), "API_KEY=of-the-project\n").unwrap();
        fs::write(project.path().join(".env.local"), "DB_PASSWORD='of-the-machine'\n").unwrap();
        fs::write(project.path().join(".env.example"), "API_KEY=your-key-here\n").unwrap();
        fs::write(project.path().join(".envrc"), "API_KEY=not-read-at-all\n").unwrap();
        fs::create_dir(home.path().join(".aws")).unwrap();
        let aws = "[default]\naws_secret_access_key = of-the-cloud\n";
        fs::write(home.path().join(".aws/credentials"), aws).unwrap();
        fs::create_dir(home.path().join(".netrc")).unwrap();
        let variables =
            BTreeMap::from([("HOME".to_owned(), home.path().to_string_lossy().into_owned())]);
        let found = secrets_in_files(project.path(), &variables);
        assert_eq!(found, ["of-the-cloud", "of-the-project", "of-the-machine"]);
        assert!(secrets_in_files(Path::new("/nowhere"), &BTreeMap::new()).is_empty());
    }
}
