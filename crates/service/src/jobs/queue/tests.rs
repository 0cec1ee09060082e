//! Tests of the queue on SQLite tables. Workers are tested through the binary.

use tempfile::TempDir;

use super::*;

struct World {
    queue: GradingQueue,
    folder: TempDir,
}

async fn open(folder: &TempDir) -> Result<GradingQueue, StoreError> {
    let address = folder.path().join("grades.db");
    GradingQueue::open(&address.to_string_lossy(), &JobSettings::default()).await
}

async fn world() -> World {
    let folder = tempfile::tempdir().unwrap();
    World { queue: open(&folder).await.unwrap(), folder }
}

fn gradings(ids: &[&str]) -> Vec<GradingJob> {
    ids.iter().map(|id| GradingJob::new(id, None)).collect()
}

impl World {
    async fn sql(&self, statement: &'static str) {
        let QueuePool::Sqlite(pool) = &self.queue.database.pool else { unreachable!() };
        sqlx::query(statement).execute(pool).await.unwrap();
    }

    async fn counts(&self) -> [u64; 4] {
        let counts = self.queue.counts().await.unwrap();
        [counts.waiting, counts.running, counts.failed, counts.done]
    }
}

#[tokio::test]
async fn a_session_waits_once_for_each_model() {
    let world = world().await;
    let queue = &world.queue;
    assert_eq!(queue.enqueue(&gradings(&["a", "b", "a"])).await.unwrap(), 2);
    assert_eq!(queue.enqueue(&gradings(&["b", "c"])).await.unwrap(), 1);
    assert_eq!(queue.enqueue(&[GradingJob::new("a", Some("ollama/x"))]).await.unwrap(), 1);
    assert_eq!(world.counts().await, [4, 0, 0, 0]);
    assert_eq!(queue.request_state("a").await.unwrap(), Some(GradingState::Waiting));
    assert_eq!(queue.request_state("z").await.unwrap(), None);
    for (state, request) in [
        ("'Queued'", GradingState::Running),
        ("'Running'", GradingState::Running),
        ("'Done'", GradingState::Done),
    ] {
        let statement = format!("UPDATE Jobs SET status = {state}");
        world.sql(Box::leak(statement.into_boxed_str())).await;
        assert_eq!(queue.request_state("a").await.unwrap(), Some(request), "{state}");
    }
    assert!(world.folder.path().join("grades-jobs.db").is_file());
}

#[tokio::test]
async fn what_has_ended_may_be_asked_for_again() {
    let world = world().await;
    for state in ["'Done'", "'Killed'", "'Failed', attempts = max_attempts"] {
        world.sql("DELETE FROM Jobs").await;
        assert_eq!(world.queue.enqueue(&gradings(&["a"])).await.unwrap(), 1);
        let statement = format!("UPDATE Jobs SET status = {state}, done_at = 1");
        world.sql(Box::leak(statement.into_boxed_str())).await;
        assert_eq!(world.counts().await[0], 0, "{state}");
        assert_eq!(world.queue.enqueue(&gradings(&["a"])).await.unwrap(), 1, "{state}");
        assert_eq!(world.counts().await, [1, 0, 0, 0], "{state}");
    }
    // A first failed attempt is not final.
    world.sql("UPDATE Jobs SET status = 'Failed', attempts = 1").await;
    assert_eq!(world.queue.enqueue(&gradings(&["a"])).await.unwrap(), 0);
    assert_eq!(world.queue.request_state("a").await.unwrap(), Some(GradingState::Waiting));
}

#[tokio::test]
async fn failures_are_listed_with_their_reason_and_tried_again() {
    let world = world().await;
    let queue = &world.queue;
    let hostile = "id\u{1b}[31m\"'\n%";
    queue.enqueue(&gradings(&["a", hostile])).await.unwrap();
    world
        .sql(
            "UPDATE Jobs SET status = 'Killed', attempts = 2, done_at = 1795000000, \
             last_result = '{\"Err\":\"AbortError: the file\\nis gone\"}'",
        )
        .await;
    let failed = queue.failed(10).await.unwrap();
    assert_eq!(failed.len(), 2);
    assert!(failed.iter().any(|one| one.grading.session_id == hostile));
    assert_eq!((failed[0].attempts, failed[0].why.as_str()), (2, "the file is gone"));
    assert_eq!(failed[0].at.unwrap().as_second(), 1_795_000_000);
    assert_eq!(queue.failed(1).await.unwrap().len(), 1);
    let request = GradingState::Failed("the file is gone".to_owned());
    assert_eq!(queue.request_state(hostile).await.unwrap(), Some(request));

    assert_eq!(queue.retry_failed(Some("01J0000000000000000000000")).await.unwrap(), 0);
    assert_eq!(queue.retry_failed(Some(&failed[0].id)).await.unwrap(), 1);
    assert_eq!(world.counts().await, [1, 0, 1, 0]);
    assert_eq!(queue.retry_failed(None).await.unwrap(), 1);
    assert_eq!(world.counts().await, [2, 0, 0, 0]);
}

#[test]
fn reasons_that_are_none() {
    for result in [None, Some(""), Some("{\"Ok\":null}"), Some("[1"), Some("{\"Err\":7}")] {
        assert_eq!(failure_reason(result), "no reason");
    }
}

#[tokio::test]
async fn work_of_the_dead_and_of_those_that_stop() {
    let world = world().await;
    let queue = &world.queue;
    queue.enqueue(&gradings(&["a", "b", "c"])).await.unwrap();
    world
        .sql(
            "INSERT INTO Workers (id, worker_type, storage_name, last_seen) VALUES \
             ('dead', 'selftest gradings', 's', strftime('%s', 'now') - 31), \
             ('alive', 'selftest gradings', 's', strftime('%s', 'now') - 5), \
             ('old', 'selftest gradings', 's', strftime('%s', 'now') - 100000)",
        )
        .await;
    world
        .sql(
            "UPDATE Jobs SET status = 'Queued', attempts = 1, lock_at = 1, lock_by = \
             CASE WHEN CAST(job AS TEXT) LIKE '%\"a\"%' THEN 'dead' ELSE 'alive' END",
        )
        .await;
    assert_eq!((queue.workers().await.unwrap(), world.counts().await), (1, [0, 3, 0, 0]));
    assert!(!queue.is_busy("dead-2").await.unwrap());
    assert!(queue.is_busy("alive").await.unwrap());
    // A worker that died counts as an attempt, one that was stopped does not.
    assert_eq!(queue.requeue_abandoned().await.unwrap(), 1);
    assert_eq!(world.counts().await, [1, 2, 0, 0]);
    world.sql("UPDATE Jobs SET attempts = 7 WHERE status = 'Pending' AND attempts = 2").await;
    queue.release_worker("alive").await.unwrap();
    assert_eq!((queue.workers().await.unwrap(), world.counts().await), (0, [3, 0, 0, 0]));
    world
        .sql("UPDATE Jobs SET status = 'Done', done_at = 1, lock_by = 'dead' WHERE attempts = 7")
        .await;
    queue.prune().await.unwrap();
    assert_eq!(world.counts().await, [2, 0, 0, 0], "what was done long ago is gone");
    let QueuePool::Sqlite(pool) = &queue.database.pool else { unreachable!() };
    let left: Vec<String> =
        sqlx::query_scalar("SELECT id FROM Workers ORDER BY id").fetch_all(pool).await.unwrap();
    assert_eq!(left, ["dead"], "what refers to it is still there");
}

#[tokio::test]
async fn many_at_once_and_by_many() {
    let folder = tempfile::tempdir().unwrap();
    let ids: Vec<String> = (0..1200).map(|number| number.to_string()).collect();
    let opened = futures_util::future::join_all((0..4).map(|_| open(&folder))).await;
    let queues: Vec<GradingQueue> = opened.into_iter().map(Result::unwrap).collect();
    let all: Vec<GradingJob> = ids.iter().map(|id| GradingJob::new(id, None)).collect();
    let added = queues.iter().map(|queue| queue.enqueue(&all));
    let added = futures_util::future::join_all(added).await;
    assert_eq!(added.into_iter().map(Result::unwrap).sum::<u64>(), 1200);
    assert_eq!(queues[0].counts().await.unwrap().waiting, 1200);
}
