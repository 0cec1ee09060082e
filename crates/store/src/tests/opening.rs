//! Tests of opening databases (new, existing, concurrently, and invalid ones), of a server that
//! rejects logins, is missing, or goes away, and of concurrent writers, each of which has its own
//! connections, like a separate process.

use std::path::Path;

use futures_util::future::join_all;
use sqlx::any::AnyConnectOptions;

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
    of_files_saved_at_once_the_one_with_most_messages_counts,
    files_may_come_and_go_while_others_are_saved,
    an_average_is_of_all_grades_however_they_come,
    a_change_is_noticed_whoever_made_it,
    columns_may_be_added_while_an_older_version_reads,
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

async fn refused_by_server(address: &str) -> StoreError {
    let error = Store::open(address).await.unwrap_err();
    for text in [error.to_string(), format!("{error:?}")] {
        assert!(!text.contains("s3cret"), "{text}");
    }
    assert!(error.to_string().contains("postgres"), "{error}");
    error
}

/// Returns the address with another password and database name.
fn other(address: &str, password: Option<&str>, database: Option<&str>) -> String {
    let mut url = address.parse::<AnyConnectOptions>().unwrap().database_url;
    if let Some(password) = password {
        url.set_password(Some(password)).unwrap();
    }
    if let Some(database) = database {
        url.set_path(database);
    }
    url.to_string()
}

#[tokio::test]
async fn nobody_listens() {
    let address = "postgres://me:s3cret@127.0.0.1:1/grades";
    let error = refused_by_server(address).await;
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error}");
    assert!(error.to_string().contains("postgres://me@127.0.0.1:1/grades"), "{error}");
    assert!(error.hint().unwrap().contains("server runs"));
}

#[tokio::test]
async fn a_wrong_password_a_database_or_schema_that_is_not_there_and_missing_rights() {
    let Some(on) = Databases::postgres() else { return };
    let address = on.address().await;
    let schema = address.rsplit("%3D").next().unwrap();
    for (address, why) in [
        (other(&address, Some("s3cret"), None), "password"),
        (other(&address, None, Some("nowhere")), "nowhere"),
        (address.replace(schema, "nowhere"), "no schema"),
        (address.replacen('?', "?sslmode=nonsense&", 1), "nonsense"),
    ] {
        let error = refused_by_server(&address).await;
        let expected = matches!(error, StoreError::Refused { .. } | StoreError::Address { .. });
        assert!(expected && error.to_string().contains(why), "{error}");
        assert!(error.hint().is_some());
    }
    let (store, made) = (on.store().await, on.address().await);
    Store::open(&made).await.unwrap();
    let made_schema = made.rsplit("%3D").next().unwrap();
    execute(&store, &format!("REVOKE CREATE ON SCHEMA {made_schema} FROM CURRENT_USER")).await;
    Store::open(&made).await.expect("the tables are there");
    execute(&store, &format!("REVOKE CREATE ON SCHEMA {schema} FROM CURRENT_USER")).await;
    let error = refused_by_server(&address).await;
    assert!(matches!(error, StoreError::Refused { .. }), "{error}");
    assert!(error.to_string().contains("permission denied"), "{error}");
}

/// Disconnects all clients, as a restarting server does.
async fn end_connections(killer: &Store, victims: &str) {
    let sql = format!(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity \
         WHERE application_name = '{victims}'"
    );
    execute(killer, &sql).await;
}

#[tokio::test]
async fn after_a_restart_the_next_call_works_and_what_was_running_changed_nothing() {
    let Some(on) = Databases::postgres() else { return };
    let (killer, address) = (on.store().await, on.address().await);
    let schema = address.rsplit("%3D").next().unwrap();
    let address = format!("{address}&application_name={schema}");
    let store = Store::open(&address).await.unwrap();
    store.save(&[session("/s/a.json", "a", 3)]).await.unwrap();
    for _ in 0..3 {
        end_connections(&killer, schema).await;
        assert!(store.grade("a").await.unwrap().is_some());
        end_connections(&killer, schema).await;
        store.save(&[session("/s/a.json", "a", 4)]).await.unwrap();
    }
    let mut changes = store.watch_changes().await.unwrap().unwrap();
    let mut writing = store.begin_write().await.unwrap();
    let delete = "DELETE FROM session_grades";
    writing.execute(delete, []).await.unwrap();
    end_connections(&killer, schema).await;
    let error = writing.execute(delete, []).await.unwrap_err();
    assert!(matches!(error, StoreError::Unreachable { .. }));
    drop(writing);
    assert!(store.grade("a").await.unwrap().is_some());
    let error = changes.version().await.unwrap_err();
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error}");
}

#[tokio::test]
async fn a_writer_that_never_ends_is_not_waited_for_forever() {
    let Some(on) = Databases::postgres() else { return };
    let address = on.address().await;
    let (first, second) =
        (Store::open(&address).await.unwrap(), Store::open(&address).await.unwrap());
    let writing = first.begin_write().await.unwrap();
    // All errors, each after less than the 10 s.
    let mut connections = Vec::new();
    for _ in 0..second.pool.options().get_max_connections() {
        let mut connection = second.pool.acquire().await.unwrap();
        sqlx::query("SET lock_timeout = '100ms'").execute(&mut *connection).await.unwrap();
        connections.push(connection);
    }
    drop(connections);
    for _ in 0..5 {
        let error = second.save(&[session("/s/a.json", "a", 3)]).await.unwrap_err();
        assert!(matches!(error, StoreError::Busy { .. }), "{error}");
    }
    writing.commit().await.unwrap();
    // Connections that failed are as good as new.
    second.save(&[session("/s/a.json", "a", 3)]).await.unwrap();
    assert!(first.grade("a").await.unwrap().is_some());
}

const WRITERS: u64 = 6;

async fn stores(on: &Databases) -> Vec<Store> {
    let address = on.address().await;
    let mut stores = Vec::new();
    for _ in 0..WRITERS {
        stores.push(Store::open(&address).await.unwrap());
    }
    stores
}

async fn of_files_saved_at_once_the_one_with_most_messages_counts(on: &Databases) {
    let stores = stores(on).await;
    for round in 0..5 {
        let shared = format!("shared-{round}");
        let path = |writer: u64| format!("/s/{round}/{writer}.json");
        let saving = (0..).zip(&stores).map(async |(writer, store)| {
            // More sessions, so that statements of other writers can come in between.
            let own = (0..40).map(|number| grade(&format!("{round}-{writer}-{number}"), "", 1));
            let one = file(&path(writer), vec![grade(&shared, "", 10 + writer % 4)]);
            let all = file(&format!("/s/{round}/{writer}-own.json"), own.collect());
            store.save(&[all, one]).await.unwrap().len()
        });
        let lost: usize = join_all(saving).await.into_iter().sum();
        assert_eq!(lost as u64, WRITERS - 1, "each loses once, when it comes or when it is beaten");
        let kept = stores[0].grade(&shared).await.unwrap().unwrap();
        assert_eq!(kept.details.messages, 13);
        for writer in 0..WRITERS {
            let file = stores[0].file(&path(writer)).await.unwrap().unwrap();
            let expected = if file.path == kept.session_file {
                (FileOutcome::Graded, 1)
            } else {
                (FileOutcome::Duplicate, 0)
            };
            assert_eq!((file.outcome, file.graded), expected, "{}", file.path);
        }
    }
}

async fn files_may_come_and_go_while_others_are_saved(on: &Databases) {
    let stores = stores(on).await;
    let working = (0..).zip(&stores).map(async |(writer, store): (usize, _)| {
        for turn in 0..6 {
            // The same rows in different orders would deadlock if locks were taken one by one.
            let mut files: Vec<_> = (0..8).collect();
            files.rotate_left((writer + turn) % 8);
            let names: Vec<String> =
                files.iter().map(|number| format!("/s/{number}.json")).collect();
            let batch: Vec<_> =
                names.iter().map(|name| session(name, "shared", turn as u64 + 1)).collect();
            store.save(&batch).await.unwrap();
            let known = store.known_files(RULES).await.unwrap();
            let touched =
                names.iter().filter_map(|name| Some((name.clone(), known.get(name)?.clone())));
            store.touch_files(&touched.collect::<Vec<_>>()).await.unwrap();
            store.release_files(&names[..2]).await.unwrap();
        }
    });
    join_all(working).await;
    let kept = stores[0].grade("shared").await.unwrap().unwrap();
    let file = stores[0].file(&kept.session_file).await.unwrap().unwrap();
    assert_eq!((file.outcome, file.graded), (FileOutcome::Graded, 1));
}

async fn an_average_is_of_all_grades_however_they_come(on: &Databases) {
    let stores = stores(on).await;
    stores[0].save(&[session("/s/a.json", "a", 3)]).await.unwrap();
    for round in 0..5_u8 {
        let saving = (0..).zip(&stores).map(async |(writer, store): (u8, _)| {
            let mut grade = browsing::quality("a", Some(f64::from(writer + round) / 16.0));
            grade.model = format!("m-{writer}");
            store.save_quality(&grade).await.unwrap();
        });
        join_all(saving).await;
        let page = stores[0].sessions(&crate::SessionQuery::default()).await.unwrap();
        assert_eq!(page.items[0].quality, Some((2.5 + f64::from(round)) / 16.0));
    }
}

async fn a_change_is_noticed_whoever_made_it(on: &Databases) {
    let stores = stores(on).await;
    let mut changes = stores[0].watch_changes().await.unwrap().unwrap();
    let mut seen = changes.version().await.unwrap();
    if on.engine() == DatabaseEngine::Sqlite {
        // Other tests write to the same server.
        assert_eq!(changes.version().await.unwrap(), seen);
    }
    for (number, store) in stores.iter().enumerate() {
        store.save(&[session("/s/a.json", "a", number as u64)]).await.unwrap();
        let now = changes.version().await.unwrap();
        assert_ne!(now, seen);
        seen = now;
    }
    changes.close().await;
}

async fn columns_may_be_added_while_an_older_version_reads(on: &Databases) {
    let stores = stores(on).await;
    let older = &stores[0];
    older.save(&[session("/s/a.json", "a", 3)]).await.unwrap();
    older.save_quality(&browsing::quality("a", Some(0.5))).await.unwrap();
    for round in 0..2 {
        // Twice, so that all statements are prepared.
        for _ in 0..2 {
            assert!(older.grade("a").await.unwrap().is_some());
            assert_eq!(older.latest_grades(9, None).await.unwrap().items.len(), 1);
            assert!(older.file("/s/a.json").await.unwrap().is_some());
            assert_eq!(older.known_files(RULES).await.unwrap().len(), 1);
            assert_eq!(older.session_quality_grades("a").await.unwrap().items.len(), 1);
            assert_eq!(older.recent_quality(None, 9, None).await.unwrap().items.len(), 1);
            assert_eq!(older.overrides().await.unwrap().items, []);
            assert_eq!(older.weekly_reports(9).await.unwrap().items, []);
        }
        let tables = ["session_grades", "session_files", "session_quality_grades"];
        for table in tables.iter().chain(&["grade_overrides", "weekly_reports"]) {
            let sql = format!("ALTER TABLE {table} ADD COLUMN later_{round} TEXT");
            execute(&stores[1], &sql).await;
        }
    }
}
