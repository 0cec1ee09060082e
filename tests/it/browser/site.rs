//! The site as a whole: pages, login, and a page that follows a run.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use jiff::Timestamp;
use tempfile::TempDir;

use super::chrome::browse;
use super::reflections::Scored;
use super::runs::run;
use crate::workspace::{CLEAR, OPENAI, config};
use selftest_grading::grade::{GradeOverride, GradeRecord, QualityGrade, WeeklyReport};
use selftest_reports::document::ReportDocument;
use selftest_service::search::SearchIndex;
use selftest_sessions::SessionFormat;
use selftest_store::{FileOutcome, FileRecord, FileResult, Store, StoredReport};
use selftest_text::redact::Redactor;

/// The content of the site.
#[derive(Default)]
pub(super) struct Contents {
    pub(super) grades: Vec<GradeRecord>,
    pub(super) quality: Vec<QualityGrade>,
    pub(super) overrides: Vec<GradeOverride>,
    pub(super) weeks: Vec<WeeklyReport>,
    pub(super) runs: Vec<ReportDocument>,
    pub(super) reflections: Vec<Scored>,
    /// When those of `skills.rs` are looked at; `None` for no skills.
    pub(super) skills: Option<Timestamp>,
    /// Whether there are the gaps, proposals and job runs of `improvement.rs`.
    pub(super) improvement: bool,
    /// Contents of the files of some of the sessions, by id.
    pub(super) recorded: Vec<(&'static str, String)>,
    /// The credentials that visitors are asked for.
    pub(super) token: Option<&'static str>,
}

/// A running server. Ends with the test.
pub(super) struct Site {
    folder: TempDir,
    server: Child,
    address: String,
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn file(grades: Vec<GradeRecord>, path: &str) -> FileResult {
    let file = FileRecord {
        path: path.to_owned(),
        size: 1,
        modified_ns: 1,
        digest: String::new(),
        scanned_at: Timestamp::UNIX_EPOCH,
        outcome: FileOutcome::Graded,
        reason: None,
        format: Some(SessionFormat::ClaudeCode),
        sessions: grades.len() as u64,
        graded: grades.len() as u64,
        notes_json: None,
        rules: None,
    };
    FileResult { file, grades }
}

/// Files in `project` stand for those that were recorded; of all other sessions there is none.
async fn fill(database: &str, project: &Path, contents: Contents) {
    let store = Store::open(database).await.unwrap();
    let is_recorded = |grade: &GradeRecord| {
        contents.recorded.iter().any(|(session_id, _)| *session_id == grade.session_id)
    };
    let (recorded, others): (Vec<GradeRecord>, Vec<GradeRecord>) =
        contents.grades.iter().cloned().partition(is_recorded);
    for (number, grades) in others.chunks(2000).enumerate() {
        let path = format!("/sessions/{number}.jsonl");
        store.save(&[file(grades.to_vec(), &path)]).await.unwrap();
    }
    for grade in recorded {
        let path = project.join(format!("{}.jsonl", grade.session_id));
        let text = contents.recorded.iter().find(|(id, _)| *id == grade.session_id);
        fs::write(&path, &text.unwrap().1).unwrap();
        store.save(&[file(vec![grade], path.to_str().unwrap())]).await.unwrap();
    }
    if !contents.recorded.is_empty() {
        let index = SearchIndex::new(store.clone(), Redactor::default());
        index.fill(&mut ()).await.unwrap();
    }
    for grade in &contents.quality {
        store.save_quality(grade).await.unwrap();
    }
    for made in &contents.overrides {
        store.add_override(made).await.unwrap();
    }
    for week in &contents.weeks {
        let report = StoredReport {
            week_start: week.week_start,
            week_end: week.week_end,
            generated_at: week.generated_at,
            report_json: serde_json::to_string(week).unwrap(),
        };
        store.save_weekly_report(&report).await.unwrap();
    }
    for (reflection, score) in &contents.reflections {
        let (kept, _) = store.add_reflection(reflection).await.unwrap();
        store.save_reflection_score(kept.number, score).await.unwrap();
    }
    if let Some(now) = contents.skills {
        super::skills::fill(&store, now).await;
    }
    if contents.improvement {
        super::improvement::fill(&store).await;
    }
    store.close().await;
}

impl Site {
    pub(super) fn with(contents: Contents) -> Self {
        let folder = tempfile::Builder::new().prefix("selftest-site-").tempdir().unwrap();
        let project = folder.path();
        fs::create_dir_all(project.join("config")).unwrap();
        fs::create_dir_all(project.join("reports/selftest")).unwrap();
        fs::write(project.join("config/selftest.yaml"), config(OPENAI, CLEAR)).unwrap();
        for run in &contents.runs {
            write(&project.join("reports/selftest"), run);
        }
        let database = project.join("grades.db");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let token = contents.token.map(|token| ("SELFTEST_TOKEN", token));
        runtime.block_on(fill(database.to_str().unwrap(), project, contents));
        let mut server = Command::new(env!("CARGO_BIN_EXE_selftest"))
            .args(["serve", "--port", "0", "--db", "grades.db"])
            .current_dir(project)
            .env_clear()
            .envs(crate::clock::environment())
            .env("HOME", project)
            .envs(token)
            .env("OLLAMA_HOST", crate::workspace::NOBODY)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let mut address = String::new();
        let mut stdout = BufReader::new(server.stdout.take().unwrap());
        stdout.read_line(&mut address).unwrap();
        let address = address.trim().trim_end_matches('/').to_owned();
        let site = Self { folder, server, address };
        assert!(site.address.starts_with("http://127.0.0.1:"), "{:?}", site.address);
        site
    }

    /// The address of a page.
    pub(super) fn at(&self, path: &str) -> String {
        format!("{}{path}", self.address)
    }

    /// A path in the site's project.
    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// Writes the report of a run anew, as a run does.
    pub(super) fn report(&self, run: &ReportDocument) {
        write(&self.folder.path().join("reports/selftest"), run);
    }

    /// Status, and text of the answer.
    pub(super) fn get(&self, path: &str) -> (u16, String) {
        ask(|client| client.get(self.at(path)).header("accept", "text/html"))
    }

    /// The same of a form that is sent. No redirect is followed.
    pub(super) fn post(&self, path: &str, form: &'static str) -> (u16, String) {
        let kind = "application/x-www-form-urlencoded";
        ask(|client| {
            let headed = client.post(self.at(path)).header("content-type", kind);
            headed.header("accept", "text/html").body(form)
        })
    }
}

fn ask(request: impl FnOnce(reqwest::Client) -> reqwest::RequestBuilder + Send) -> (u16, String) {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let stay = reqwest::redirect::Policy::none();
    let client = reqwest::Client::builder().no_proxy().redirect(stay).build().unwrap();
    let request = request(client);
    let ask = async {
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    // A thread of its own: some ask while they drive the browser.
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(ask)
        });
        asked.join().unwrap()
    })
}

fn write(folder: &std::path::Path, run: &ReportDocument) {
    let target: PathBuf = folder.join(format!("{}.json", run.run_id));
    let fresh = folder.join("fresh");
    fs::write(&fresh, serde_json::to_string_pretty(run).unwrap()).unwrap();
    fs::rename(fresh, target).unwrap();
}

#[test]
fn a_form_takes_the_token_once() {
    let site = Site::with(Contents { token: Some("open sesame"), ..Contents::default() });
    browse(async |chrome| {
        chrome.open(&site.at("/gaps")).await;
        chrome.until("location.pathname === '/login'").await;
        chrome.find("input[name=token]").await.send_keys("open sesame").await.unwrap();
        chrome.click("button").await;
        chrome.until("location.pathname === '/'").await;
        chrome.click("nav a[href='/gaps']").await;
        chrome.shows("main h1", "Gaps").await;
    });
}

const RUNNING: &str = "selftest-20261122-0600-aaaaab";

#[test]
fn a_run_is_watched_to_its_end() {
    let growing = |finished| run(RUNNING, "2026-11-22T06:00:12Z", finished, &[2]);
    let site = Site::with(Contents { runs: vec![growing(1)], ..Contents::default() });
    browse(async |chrome| {
        chrome.open(&site.at(&format!("/selftests/{RUNNING}"))).await;
        assert_eq!(chrome.texts("#cases tbody tr").await.len(), 1);
        assert!(chrome.text("#said").await.starts_with("not finished: 1 of 8 cases"));
        for finished in [2, 4, 7] {
            site.report(&growing(finished));
            chrome
                .until(&format!(
                    "document.querySelector('.finished').textContent === '{finished}' \
                     && document.querySelectorAll('#cases tbody tr').length === {finished}"
                ))
                .await;
        }
        site.report(&growing(8));
        chrome
            .until("document.querySelector('#said').textContent.startsWith('failed: 8 of 8')")
            .await;
        assert_eq!(chrome.text("#progress .badge").await, "failed");
        let cases = chrome.texts("#cases tbody th a").await;
        assert_eq!(cases[..3], ["contradiction_detect", "three_line_summary", "ambiguous_request"]);
        assert_eq!(cases.len(), 8, "those that did not pass come first");
        assert_eq!(chrome.texts("#cases .badge").await[0], "FAIL");
    });
}

#[test]
fn events_say_it_without_a_browser() {
    let finished = run(RUNNING, "2026-11-22T06:00:12Z", 8, &[]);
    let site = Site::with(Contents { runs: vec![finished], ..Contents::default() });
    let (status, events) = site.get(&format!("/live/runs/{RUNNING}"));
    assert_eq!(status, 200);
    let kinds: Vec<&str> = events.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    assert_eq!(kinds.len(), 11, "{events}");
    assert_eq!((kinds[0], kinds[1], kinds[9], kinds[10]), ("progress", "case", "said", "end"));
}
