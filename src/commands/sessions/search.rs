//! `selftest sessions search`: finds words in texts and tool calls. Grades new sessions and fills the
//! index first, unless `--no-scan` is given.

use crate::args::sessions::{database, moment, nothing_found, options};
use anyhow::anyhow;
use selftest_app::{AppError, Project};
use selftest_service::grader::SelfGrader;
use selftest_service::search::{
    IndexSummary, SearchError, SearchIndex, SearchRequest, SearchResults,
};
use selftest_store::Store;
use selftest_text::escape::terminal;
use selftest_text::one_line;
use selftest_text::wording::{date_time, plural};

use crate::args::{DatabaseArgs, SessionArgs};
use crate::exit::Exit;
use crate::ui::{ScanBar, eprint, print};

/// Files that are named where they cannot be read.
const MAX_NAMED: usize = 5;

/// Arguments of a search on the command line.
pub(super) struct Asked<'a> {
    pub(super) request: SearchRequest,
    pub(super) until: Option<&'a str>,
    pub(super) no_scan: bool,
    pub(super) as_json: bool,
    pub(super) database: &'a DatabaseArgs,
}

pub(super) async fn search(
    project: &Project,
    args: &SessionArgs,
    asked: Asked<'_>,
) -> Result<Exit, AppError> {
    let now = selftest_clock::now();
    let moment = |text: &str| moment(text, now);
    let request = SearchRequest {
        agent: args.agent.clone(),
        since: args.since.as_deref().map(moment).transpose()?,
        until: asked.until.map(moment).transpose()?,
        ..asked.request.clone()
    };
    let address = database(project, asked.database);
    if asked.no_scan {
        let store = Store::open(&address).await?;
        let done = find(&store, &request, asked.as_json).await;
        store.close().await;
        return done;
    }
    let options = options(project, args)?;
    let (roots, redactor) = (options.sources.clone(), options.redactor.clone());
    let grader = SelfGrader::open(&address, options).await?;
    let store = grader.store().clone();
    // In a block of its own, so that the database is closed after an error too.
    let done = async {
        let mut bar = ScanBar::new(&project.environment);
        let scan = grader.grade_new_sessions(&mut bar).await?;
        bar.finish();
        if scan.found == 0 && store.graded_sessions().await? == 0 {
            nothing_found(&roots);
            return Ok(Exit::NothingRan);
        }
        let mut bar = ScanBar::new(&project.environment);
        let indexing = SearchIndex::new(store.clone(), redactor).fill(&mut bar).await?;
        bar.finish();
        warn(&indexing);
        find(&store, &request, asked.as_json).await
    };
    let done = done.await;
    store.close().await;
    done
}

/// Says what could not be indexed.
fn warn(indexing: &IndexSummary) {
    if indexing.is_busy {
        eprint("another process fills the index: some sessions are not found yet\n");
    }
    for (_, why) in indexing.unreadable.iter().take(MAX_NAMED) {
        eprint(&format!("warning: {}\n", one_line(why, 400)));
    }
    let more = indexing.unreadable.len().saturating_sub(MAX_NAMED);
    if more > 0 {
        eprint(&format!("  and {} more\n", plural(more as u64, "file")));
    }
}

async fn find(store: &Store, request: &SearchRequest, as_json: bool) -> Result<Exit, AppError> {
    let found = match request.run(store).await {
        Ok(found) => found,
        Err(SearchError::Store(error)) => return Err(error.into()),
        Err(fault @ SearchError::NoWords) => {
            let shown = one_line(&request.words, 80);
            return Err(AppError::usage(anyhow!("{fault} in {shown:?}"))
                .hint(Some("letters or digits make words; quotation marks make phrases")));
        }
        Err(fault @ SearchError::Cursor) => {
            return Err(AppError::usage(anyhow!("--cursor: {fault}")));
        }
    };
    if as_json {
        print(&format!("{:#}\n", serde_json::json!(found)))?;
    } else {
        print(&text(&found))?;
    }
    if found.files_not_indexed > 0 {
        let files = plural(found.files_not_indexed, "file");
        eprint(&format!("{files} with graded sessions cannot be searched yet\n"));
    }
    Ok(Exit::Passed)
}

fn text(found: &SearchResults) -> String {
    if found.items.is_empty() {
        return "nothing was found\n".to_owned();
    }
    let mut text = String::new();
    for one in &found.items {
        let session = &one.session;
        text += &terminal(&session.session_id, 200);
        let outcome = session.outcome.map(|outcome| outcome.name().to_owned());
        let facts = [session.counts_at.map(date_time), session.agent.clone(), outcome];
        for fact in facts.into_iter().flatten() {
            text += &format!("  {}", terminal(&fact, 60));
        }
        text.push('\n');
        if let Some(summary) = &session.task_summary {
            text += &format!("  {}\n", terminal(summary, 120));
        }
        for hit in &one.hits {
            text += &format!("  #{:<5} {}\n", hit.event, hit.marked("«", "»"));
        }
        if one.has_more {
            text += "  and more in this session\n";
        }
    }
    if let Some(next) = &found.next {
        text += &format!("more: --cursor {next}\n");
    }
    text
}
