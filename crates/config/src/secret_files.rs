//! Reads secrets from well-known credential files so that reports can redact their values.
//! Unreadable files are ignored.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use selftest_text::redact::known;

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
pub fn values(project: &Path, variables: &BTreeMap<String, String>) -> Vec<String> {
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
    files.sort_unstable();
    files.truncate(MAX_FILES);
    files
}

fn secrets_of(file: &Path) -> Vec<String> {
    // Skip pipes and devices, because reading them may block.
    if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return Vec::new();
    }
    let mut bytes = Vec::new();
    let read = File::open(file).and_then(|file| file.take(MAX_BYTES).read_to_end(&mut bytes));
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
        let found = values(project.path(), &variables);
        assert_eq!(found, ["of-the-cloud", "of-the-project", "of-the-machine"]);
        assert!(values(Path::new("/nowhere"), &BTreeMap::new()).is_empty());
    }
}
