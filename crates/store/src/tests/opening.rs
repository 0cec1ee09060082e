//! Tests of opening databases: new, existing, concurrently, and invalid ones.

use std::path::Path;

use super::*;
use crate::StoreError;
use crate::statement::DatabaseEngine;

on_every_engine! {
    two_fresh_databases_are_two,
    many_may_open_a_fresh_database_at_the_same_time,
    the_database_of_another_program_is_left_as_it_is,
    a_newer_version_is_named,
    another_writer_is_waited_for,
    a_reader_does_not_wait_for_a_writer,
}

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
    assert_eq!(store.location(), path.to_str().unwrap());
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

async fn two_fresh_databases_are_two(on: &Databases) {
    let (one, other) = (on.store().await, on.store().await);
    one.save(&[session("/s/a.json", "a", 3)]).await.unwrap();
    assert!(one.clone().grade("a").await.unwrap().is_some());
    assert!(other.grade("a").await.unwrap().is_none());
}

async fn many_may_open_a_fresh_database_at_the_same_time(on: &Databases) {
    let address = on.address().await;
    std::thread::scope(|scope| {
        for number in 0..8 {
            let address = &address;
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                runtime.unwrap().block_on(async {
                    let store = Store::open(address).await.unwrap();
                    let name = format!("s{number}");
                    store.save(&[session(&name, &name, 3)]).await.unwrap();
                    store.close().await;
                });
            });
        }
    });
    let store = Store::open(&address).await.unwrap();
    assert_eq!(store.find_grades("s").await.unwrap().items.len(), 8);
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

async fn the_database_of_another_program_is_left_as_it_is(on: &Databases) {
    let address = on.address().await;
    let store = Store::open(&address).await.unwrap();
    for sql in [
        "DROP TABLE session_transcripts",
        "DROP TABLE session_grades",
        "DROP TABLE selftest_migrations",
        "CREATE TABLE messages (id INTEGER)",
    ] {
        execute(&store, sql).await;
    }
    store.close().await;
    let error = Store::open(&address).await.unwrap_err();
    assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
    let hint = error.hint().unwrap();
    assert_eq!(hint.contains("--db"), on.engine() == DatabaseEngine::Sqlite, "{hint}");
    assert_eq!(hint.contains("schema"), on.engine() == DatabaseEngine::Postgres, "{hint}");
}

async fn a_newer_version_is_named(on: &Databases) {
    let address = on.address().await;
    let store = Store::open(&address).await.unwrap();
    let later = "INSERT INTO selftest_migrations \
                 SELECT 99, 'later', installed_on, success, checksum, 0 \
                 FROM selftest_migrations WHERE version = 1";
    execute(&store, later).await;
    store.close().await;
    let error = Store::open(&address).await.unwrap_err();
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

async fn a_reader_does_not_wait_for_a_writer(on: &Databases) {
    let address = on.address().await;
    let first = Store::open(&address).await.unwrap();
    first.save(&[session("/s/a.json", "a", 3)]).await.unwrap();
    let writing = first.begin_write().await.unwrap();
    let second = Store::open(&address).await.unwrap();
    assert!(second.grade("a").await.unwrap().is_some());
    writing.commit().await.unwrap();
}

async fn another_writer_is_waited_for(on: &Databases) {
    let address = on.address().await;
    let first = Store::open(&address).await.unwrap();
    let second = Store::open(&address).await.unwrap();
    let writing = first.begin_write().await.unwrap();
    let batch = [session("/s/a.json", "a", 3)];
    let release = async {
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        writing.commit().await.unwrap();
    };
    let (saved, ()) = tokio::join!(second.save(&batch), release);
    saved.unwrap();
    assert!(first.grade("a").await.unwrap().is_some());
}
