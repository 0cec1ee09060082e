//! Tests that the migrations of both engines create the same tables.

use sqlx::{AssertSqlSafe, Row as _};

use super::*;
use crate::statement::DatabaseEngine;

/// One text of each row.
async fn lines(store: &Store, sql: &str) -> Vec<String> {
    let rows = sqlx::query(AssertSqlSafe(sql)).fetch_all(&store.pool).await.unwrap();
    rows.iter().map(|row| row.try_get(0).unwrap()).collect()
}

async fn tables(store: &Store) -> Vec<String> {
    let mut tables = lines(store, store.engine.tables_query()).await;
    // The tables of the full-text index differ by engine.
    tables.retain(|table| table != "selftest_migrations" && !table.starts_with("session_words"));
    tables.sort();
    tables
}

/// The type of a column, whatever the engine calls it.
fn kind(written: &str) -> &'static str {
    match &*written.to_lowercase() {
        "integer" | "bigint" | "smallint" => "number",
        "double precision" | "real" => "fraction",
        "text" => "text",
        other => panic!("`{other}` cannot be read from one of the engines"),
    }
}

/// `<table>.<column> <kind> <default>`, in order, with `?` where it may be null.
async fn columns(store: &Store) -> Vec<String> {
    let mut columns = Vec::new();
    for table in tables(store).await {
        let sql = match store.engine {
            DatabaseEngine::Sqlite => format!(
                "SELECT name || ';' || type || ';' || ('notnull' = 0 AND pk = 0) || ';' || \
                 COALESCE(dflt_value, '') FROM pragma_table_info('{table}') ORDER BY cid"
            )
            .replace("'notnull'", "\"notnull\""),
            DatabaseEngine::Postgres => format!(
                "SELECT column_name || ';' || data_type || ';' || \
                 CASE is_nullable WHEN 'YES' THEN '1' ELSE '0' END || ';' || \
                 COALESCE(column_default, '') FROM information_schema.columns \
                 WHERE table_schema = current_schema() AND table_name = '{table}' \
                 ORDER BY ordinal_position"
            ),
        };
        for line in lines(store, &sql).await {
            let parts: Vec<&str> = line.splitn(4, ';').collect();
            let [name, written, nullable, default] = parts[..] else { panic!("{line}") };
            // A null default means no default, and PostgreSQL does not store it.
            let default = default.trim_end_matches("::text").trim_start_matches("NULL");
            let mark = if nullable == "1" { "?" } else { "" };
            columns.push(format!("{table}.{name}{mark} {} {default}", kind(written)));
        }
    }
    columns
}

/// `<table>(<columns>)` of each key.
async fn keys(store: &Store) -> Vec<String> {
    let mut keys = Vec::new();
    for table in tables(store).await {
        let sql = match store.engine {
            DatabaseEngine::Sqlite => format!(
                "SELECT (SELECT group_concat(info.name, ',') FROM pragma_index_info(list.name) \
                 AS info) FROM pragma_index_list('{table}') AS list WHERE list.\"unique\" = 1 \
                 UNION SELECT name FROM pragma_table_info('{table}') WHERE pk = 1 AND \
                 (SELECT MAX(pk) FROM pragma_table_info('{table}')) = 1"
            ),
            DatabaseEngine::Postgres => format!(
                "SELECT string_agg(CAST(attname AS TEXT), ',' ORDER BY place) \
                 FROM pg_index, unnest(indkey) WITH ORDINALITY AS key (number, place), \
                 pg_attribute WHERE indisunique AND indrelid = CAST('{table}' AS regclass) \
                 AND attrelid = indrelid AND attnum = key.number GROUP BY indexrelid"
            ),
        };
        keys.extend(lines(store, &sql).await.iter().map(|columns| format!("{table}({columns})")));
    }
    keys.sort();
    keys
}

#[tokio::test]
async fn both_engines_have_the_same_columns_and_keys() {
    let (sqlite, Some(on)) = (Databases::sqlite(), Databases::postgres()) else { return };
    let (sqlite, postgres) = (sqlite.store().await, on.store().await);
    assert!(tables(&sqlite).await.len() >= 5);
    assert_eq!(columns(&postgres).await, columns(&sqlite).await);
    assert_eq!(keys(&postgres).await, keys(&sqlite).await);
}

/// docs/spec/skills-and-signals.md#skill-tables: what each column may hold, its default, and the
/// columns of both indexes.
#[tokio::test]
async fn columns_defaults_and_indexes_are_as_specified() {
    for on in [Some(Databases::sqlite()), Databases::postgres()].into_iter().flatten() {
        let store = on.store().await;
        let columns = columns(&store).await;
        let of = |table: &str| -> Vec<&str> {
            let names =
                columns.iter().filter_map(|line| line.strip_prefix(table)?.strip_prefix('.'));
            names.map(str::trim_end).collect()
        };
        assert_eq!(
            of("skill_executions"),
            [
                "id text",
                "skill_version_id text",
                "user_id text",
                "session_id? text",
                "execution_status text",
                "user_edited_output? number 0",
                "user_sent_thank_you? number 0",
                "user_repeated_request? number 0",
                "conversation_turns? number",
                "execution_time_ms? number",
                "error_message? text",
                // The specified default is the current time; here the writer supplies it.
                "created_at text",
            ]
        );
        let versions = of("skill_versions");
        assert_eq!(
            versions[versions.len() - 3..],
            ["effectiveness_score? fraction", "total_executions? number 0", "last_scored_at? text"]
        );
        let indexes = lines(
            &store,
            match store.engine {
                DatabaseEngine::Sqlite => {
                    "SELECT sql FROM sqlite_master WHERE name LIKE 'idx_skill_%'"
                }
                DatabaseEngine::Postgres => {
                    "SELECT indexdef FROM pg_indexes WHERE schemaname = current_schema()"
                }
            },
        );
        let indexes = indexes.await;
        for (name, columns) in [
            ("idx_skill_executions_version", "(skill_version_id, created_at DESC)"),
            ("idx_skill_executions_user", "(user_id, created_at DESC)"),
        ] {
            let is_it = |index: &&String| index.contains(name) && index.ends_with(columns);
            assert_eq!(indexes.iter().filter(is_it).count(), 1, "{name} in {indexes:?}");
        }
    }
}

/// For the reasons that `migrations/postgres/0001_grades.sql` gives.
#[tokio::test]
async fn postgres_compares_bytes_and_keeps_64_bits() {
    let Some(on) = Databases::postgres() else { return };
    let other = "SELECT table_name || '.' || column_name FROM information_schema.columns \
                 WHERE table_schema = current_schema() AND table_name <> 'selftest_migrations' AND \
                 (data_type = 'real' OR data_type = 'text' AND collation_name IS DISTINCT FROM 'C')";
    assert_eq!(lines(&on.store().await, other).await, [""; 0]);
}
