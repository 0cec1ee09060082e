//! Downloads a GGUF file over HTTP: resumable, verified and put in place atomically.

mod hub;

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use reqwest::header::{ACCEPT_ENCODING, CONTENT_RANGE, RANGE};
use reqwest::{Client, Response, StatusCode, Url, redirect};

pub(super) use self::hub::{HubFile, from_hub};
use super::file::{check_name, sha256};
use super::{OnProgress, Progress, failed, unwritable};
use crate::model_settings::ModelEnvironment;
use crate::{ModelError, http};

const CONNECT_LIMIT: Duration = Duration::from_secs(15);
/// Maximum time without data from a server.
const READ_LIMIT: Duration = Duration::from_mins(1);
const MAX_REDIRECTS: usize = 10;
/// Larger than any file that this engine can load; stops endless streams.
const MAX_BYTES: u64 = 1 << 40;
const MAGIC: &[u8] = b"GGUF";
const TICK: Duration = Duration::from_millis(200);

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
    let address = address(source, environment.hf_endpoint.as_deref())?;
    let expected = sha256.map(checked_digest).transpose()?;
    let name = file_name(&address)?;
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
    if is_there(&file, expected.as_deref()).await? {
        return Ok(file);
    }
    let shown = shown(&address);
    if environment.offline {
        let what = format!("{shown} is not in {}, and --offline is set", folder.display());
        return Err(failed(what, "run the same command without --offline"));
    }
    fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
    let mut part = Part::open(folder.join(format!("{name}.part")))?;
    // Another process may have finished the download before we got the lock.
    if is_there(&file, expected.as_deref()).await? {
        return Ok(file);
    }
    let client = client(&address)?;
    Transfer { client, address, shown: shown.clone() }.run(&mut part, progress).await?;
    // Flushed before the rename, so that a crash cannot leave a truncated file in place.
    part.file.sync_all().map_err(|error| unwritable(&part.path, &error))?;
    if let Some(expected) = expected {
        let actual = super::file::sha256(part.path.clone()).await?;
        if actual != expected {
            part.remove();
            return Err(failed(
                format!("{shown} has SHA-256 {actual}, expected {expected}"),
                "check the digest and the address; nothing was kept",
            ));
        }
    }
    fs::rename(&part.path, &file).map_err(|error| unwritable(&file, &error))?;
    Ok(file)
}

async fn is_there(file: &Path, expected: Option<&str>) -> Result<bool, ModelError> {
    match expected {
        _ if !file.is_file() => Ok(false),
        None => Ok(true),
        Some(expected) => Ok(sha256(file.to_owned()).await? == expected),
    }
}

fn checked_digest(digest: &str) -> Result<String, ModelError> {
    let digest = digest.strip_prefix("sha256:").unwrap_or(digest).to_ascii_lowercase();
    if digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(digest);
    }
    let what = format!("`{}` is not a SHA-256", selftest_text::one_line(&digest, 80));
    Err(failed(what, "write 64 hexadecimal digits"))
}

fn address(source: &str, hf_endpoint: Option<&str>) -> Result<Url, ModelError> {
    let refused = |why: &str| ModelError::Name {
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
    if allowed(&address) {
        Ok(address)
    } else {
        Err(refused("only https, or http to this machine, is fetched from"))
    }
}

/// Allows TLS, or connections that do not leave the machine.
fn allowed(address: &Url) -> bool {
    match address.scheme() {
        "https" => address.has_host(),
        "http" => http::is_loopback(address),
        _ => false,
    }
}

fn file_name(address: &Url) -> Result<String, ModelError> {
    let name = address.path_segments().and_then(|mut steps| steps.next_back()).unwrap_or_default();
    if name.strip_suffix(".gguf").is_none() {
        return Err(ModelError::Name {
            name: shown(address),
            why: "the address does not end in a file name with .gguf".to_owned(),
        });
    }
    check_name(name)?;
    Ok(name.to_owned())
}

/// Formats the address without parts that may be secret: user, password, query.
fn shown(address: &Url) -> String {
    format!("{}{}", address.origin().ascii_serialization(), address.path())
}

fn client(address: &Url) -> Result<Client, ModelError> {
    let builder = http::client_builder(address.as_str())
        .connect_timeout(CONNECT_LIMIT)
        .read_timeout(READ_LIMIT)
        // Every hop is checked: a redirect must not downgrade to plain HTTP.
        .redirect(redirect::Policy::custom(|attempt| {
            if attempt.previous().len() > MAX_REDIRECTS {
                attempt.error("too many redirects")
            } else if allowed(attempt.url()) {
                attempt.follow()
            } else {
                attempt.error("redirected to an address that is not https")
            }
        }));
    builder.build().map_err(|error| {
        failed(
            format!("no HTTPS client: {}", causes(&error)),
            "install the CA certificates of your system (package ca-certificates)",
        )
    })
}

/// Formats an error with its causes, since reqwest's own message omits them.
fn causes(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    selftest_text::one_line(&text, 400)
}

/// The partial file, locked against other processes.
struct Part {
    path: PathBuf,
    file: File,
}

impl Part {
    fn open(path: PathBuf) -> Result<Self, ModelError> {
        let mut options = OpenOptions::new();
        // Not truncated: an interrupted transfer is resumed.
        let opened = options.read(true).write(true).create(true).truncate(false).open(&path);
        let file = opened.map_err(|error| unwritable(&path, &error))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { path, file }),
            Err(TryLockError::WouldBlock) => Err(failed(
                format!("{} is being fetched by another process", path.display()),
                "wait for it, or end it",
            )),
            Err(TryLockError::Error(error)) => Err(unwritable(&path, &error)),
        }
    }

    fn len(&self) -> Result<u64, ModelError> {
        self.file.metadata().map(|data| data.len()).map_err(|error| unwritable(&self.path, &error))
    }

    /// Truncates the file to this length and moves the cursor to its end.
    fn keep(&mut self, length: u64) -> Result<(), ModelError> {
        let result =
            self.file.set_len(length).and_then(|()| self.file.seek(SeekFrom::Start(length)));
        result.map(drop).map_err(|error| unwritable(&self.path, &error))
    }

    fn is_gguf(&mut self) -> Result<bool, ModelError> {
        let mut start = [0; 4];
        self.file
            .seek(SeekFrom::Start(0))
            .and_then(|_| self.file.read_exact(&mut start))
            .map_err(|error| unwritable(&self.path, &error))?;
        Ok(start == *MAGIC)
    }

    fn remove(&self) {
        // If it cannot be removed, the next download finds it invalid.
        let _ = fs::remove_file(&self.path);
    }
}

struct Transfer {
    client: Client,
    address: Url,
    shown: String,
}

impl Transfer {
    async fn run(&self, part: &mut Part, progress: OnProgress<'_>) -> Result<(), ModelError> {
        let held = part.len()?;
        let response = self.ask(held).await?;
        let (response, start) = match response.status() {
            StatusCode::PARTIAL_CONTENT if range_start(&response) == Some(held) => (response, held),
            // The partial file was already complete.
            StatusCode::RANGE_NOT_SATISFIABLE if range_total(&response) == Some(held) => {
                return self.verify(part);
            }
            // An unexpected range, or a partial file that does not belong to this one.
            StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE if held > 0 => {
                (self.ask(0).await?, 0)
            }
            _ => (response, 0),
        };
        if !matches!(response.status(), StatusCode::OK | StatusCode::PARTIAL_CONTENT) {
            return Err(self.refused(response.status()));
        }
        part.keep(start)?;
        self.receive(response, start, part, progress).await?;
        self.verify(part)
    }

    async fn ask(&self, start: u64) -> Result<Response, ModelError> {
        // Compression would make the ranges meaningless.
        let mut request = self.client.get(self.address.clone()).header(ACCEPT_ENCODING, "identity");
        if start > 0 {
            request = request.header(RANGE, format!("bytes={start}-"));
        }
        request.send().await.map_err(|error| self.broken(error))
    }

    async fn receive(
        &self,
        mut response: Response,
        start: u64,
        part: &mut Part,
        progress: OnProgress<'_>,
    ) -> Result<(), ModelError> {
        let total = response.content_length().map(|rest| start.saturating_add(rest));
        let mut done = start;
        let mut told = Instant::now();
        progress(Progress { done, total });
        while let Some(chunk) = response.chunk().await.map_err(|error| self.broken(error))? {
            part.file.write_all(&chunk).map_err(|error| unwritable(&part.path, &error))?;
            let before = done;
            done += chunk.len() as u64;
            // Checked as soon as the magic is complete, to avoid downloading gigabytes of a web
            // page.
            if before < 4 && done >= 4 {
                self.verify(part)?;
                // `verify` has moved the cursor.
                part.keep(done)?;
            }
            if done > MAX_BYTES {
                part.remove();
                return Err(self.not_gguf("sends without end"));
            }
            if told.elapsed() > TICK {
                told = Instant::now();
                progress(Progress { done, total });
            }
        }
        progress(Progress { done, total });
        Ok(())
    }

    fn verify(&self, part: &mut Part) -> Result<(), ModelError> {
        if part.len()? >= 4 && part.is_gguf()? {
            return Ok(());
        }
        part.remove();
        Err(self.not_gguf("is not a GGUF file"))
    }

    fn not_gguf(&self, what: &str) -> ModelError {
        failed(
            format!("{} {what}", self.shown),
            "is this the address of the file itself, not of a page about it?",
        )
    }

    fn refused(&self, status: StatusCode) -> ModelError {
        let hint = match status.as_u16() {
            401 | 403 => "this file needs a login: download it by hand, then use its path",
            404 | 410 => "is the address complete, with the file's exact name?",
            _ => "try again later",
        };
        failed(format!("{} answered {status}", self.shown), hint)
    }

    fn broken(&self, error: reqwest::Error) -> ModelError {
        ModelError::Unreachable {
            endpoint: self.shown.clone(),
            why: causes(&error.without_url()),
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

#[cfg(test)]
mod tests;
