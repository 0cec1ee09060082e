//! The page `/jobs`.

use regex::Regex;

use super::sessions;
use crate::grade::recording::id;
use crate::model_server::ModelServer;
use crate::server::site::Site;
use crate::workspace::Workspace;

#[test]
fn jobs_queue_and_failures() {
    let server = ModelServer::script().grader(|_| "<b>8</b> of 10").start();
    let workspace = sessions(Workspace::new(), &server, 3);
    let now = ["--once", "--now=2026-11-22T04:00:00Z", "--jobs=run_weekly_digest"];
    let _ = workspace.worker(&now).run().exit(0);
    let site = Site::with(workspace.clone(), &["--no-worker"]);
    site.post(&format!("/api/grades/session/{}", id(1))).status(202);
    let _ = workspace.worker(&["--once", "--no-schedule"]).run().exit(0);
    site.post(&format!("/api/grades/session/{}", id(2))).status(202);
    let text = site.get("/jobs").status(200).text();
    let main = text.split_once("<main").unwrap().1.split_once("</main>").unwrap().0;
    let main = Regex::new(r"\d{4}-\d\d-\d\d \d\d:\d\d").unwrap().replace_all(main, "[minute]");
    let main = Regex::new(r"\b01[0-9A-Z]{24}\b").unwrap().replace_all(&main, "[id]");
    let run = workspace.jobs(&["jobs"]).run().exit(0);
    let _ = run.snapshot_of("jobs_page", &main);
}
