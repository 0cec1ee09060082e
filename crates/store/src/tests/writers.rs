//! Tests of concurrent writers. Each store here has its own connections, like a separate process.

use futures_util::future::join_all;

use super::*;
use crate::statement::DatabaseEngine;

on_every_engine! {
    of_files_saved_at_once_the_one_with_most_messages_counts,
    files_may_come_and_go_while_others_are_saved,
    an_average_is_of_all_grades_however_they_come,
    a_change_is_noticed_whoever_made_it,
    columns_may_be_added_while_an_older_version_reads,
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
