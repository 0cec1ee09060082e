//! Tests with a server that rejects logins, is missing, or goes away.

use sqlx::any::AnyConnectOptions;

use super::*;
use crate::StoreError;

async fn refused(address: &str) -> StoreError {
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
    let error = refused(address).await;
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
        let error = refused(&address).await;
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
    let error = refused(&address).await;
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
