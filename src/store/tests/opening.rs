//! Opening: new, again, at the same time, and what cannot be opened.

use std::path::Path;

use super::*;
use crate::store::StoreError;

async fn refused(path: &Path) -> StoreError {
    let error = Store::open(path.to_str().unwrap()).await.unwrap_err();
    assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    error
}

#[tokio::test]
async fn folders_and_file_are_made_and_what_is_kept_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep er/100%?#ü.db");
    let store = Store::open(path.to_str().unwrap()).await.unwrap();
    assert_eq!(store.place(), path.to_str().unwrap());
    store.save(&[session("/s/a.json", "a", 3)]).await.unwrap();
    store.close().await;
    assert!(path.is_file());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
    let store = Store::open(path.to_str().unwrap()).await.unwrap();
    assert_eq!(store.grade("a").await.unwrap(), Some(grade("a", "/s/a.json", 3)));
}

#[tokio::test]
async fn two_databases_in_memory_are_two() {
    let (one, other) = (store().await, store().await);
    one.save(&[session("/s/a.json", "a", 3)]).await.unwrap();
    assert!(one.clone().grade("a").await.unwrap().is_some());
    assert!(other.grade("a").await.unwrap().is_none());
}

#[test]
fn many_may_open_a_fresh_database_at_the_same_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new/selftest.db").to_str().unwrap().to_owned();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let path = &path;
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                runtime.unwrap().block_on(async {
                    let store = Store::open(path).await.unwrap();
                    let name = format!("s{number}");
                    store.save(&[session(&name, &name, 3)]).await.unwrap();
                    store.close().await;
                });
            });
        }
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let grades = runtime.block_on(async {
        Store::open(&path).await.unwrap().find_grades("s").await.unwrap().items
    });
    assert_eq!(grades.len(), 8);
}

#[tokio::test]
async fn what_is_no_database_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    std::fs::write(&path, "just some notes\n".repeat(100)).unwrap();
    let error = refused(&path).await;
    assert!(matches!(error, StoreError::NotADatabase { .. }), "{error}");
    assert!(error.hint().unwrap().contains("--db"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "just some notes\n".repeat(100));
}

#[tokio::test]
async fn the_database_of_another_program_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let store = Store::open(path.to_str().unwrap()).await.unwrap();
    for sql in [
        "DROP TABLE session_grades",
        "DROP TABLE selftest_migrations",
        "CREATE TABLE messages (id INTEGER)",
    ] {
        execute(&store, sql).await;
    }
    store.close().await;
    let error = refused(&path).await;
    assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
}

#[tokio::test]
async fn a_newer_version_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new.db");
    let store = Store::open(path.to_str().unwrap()).await.unwrap();
    let later = "INSERT INTO selftest_migrations VALUES (99, 'later', '', 1, x'00', 0)";
    execute(&store, later).await;
    store.close().await;
    let error = refused(&path).await;
    assert!(matches!(error, StoreError::Newer { version: 99, .. }), "{error}");
    assert!(error.hint().unwrap().starts_with("update selftest"));
}

#[tokio::test]
async fn folders_that_cannot_be_made_are_named() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(refused(folder.path()).await, StoreError::Open { .. }));
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let error = refused(&file.join("selftest.db")).await;
    assert!(matches!(error, StoreError::Open { .. }), "{error}");
    assert!(error.hint().unwrap().contains("--db"));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_folder_that_cannot_be_written_to_is_named() {
    // Not even root can write there.
    let error = refused(Path::new("/proc/selftest.db")).await;
    assert!(matches!(error, StoreError::Open { .. }), "{error}");
}

#[tokio::test]
async fn another_writer_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db").to_str().unwrap().to_owned();
    let first = Store::open(&path).await.unwrap();
    let writing = first.begin().await.unwrap();
    let second = Store::open(&path);
    let release = async {
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        first.commit(writing).await.unwrap();
    };
    let (second, ()) = tokio::join!(second, release);
    second.unwrap().save(&[session("/s/a.json", "a", 3)]).await.unwrap();
    assert!(first.grade("a").await.unwrap().is_some());
}
