//! `selftest improve route`: what was seen of each type of task, its score, and the tier of models
//! that it needs.

use selftest_app::AppError;
use selftest_grading::grade::TaskType;
use selftest_grading::report::improvement;
use selftest_service::grader::{routing, type_evidence};
use selftest_store::Store;
use serde_json::json;

use crate::args::sessions::database;
use crate::args::{GlobalArgs, StoreArgs};
use crate::exit::Exit;
use crate::ui;
use crate::ui::{eprint, print};

pub(super) async fn execute(
    task_type: Option<TaskType>,
    agent: Option<&str>,
    store: &StoreArgs,
    global: &GlobalArgs,
) -> Result<Exit, AppError> {
    let project = ui::open(global)?;
    let settings = project.load(Vec::new())?.config.routing;
    let opened = Store::open(&database(&project, &store.database)).await?;
    let now = selftest_clock::now();
    let found = routing(&opened, &settings, task_type, agent, now).await;
    let seen = type_evidence(&opened, &settings, task_type, agent, now).await;
    opened.close().await;
    let (found, seen) = (found?, seen?);
    if store.json {
        let mut all = json!(found);
        all["evidence"] = json!(seen);
        print(&format!("{all:#}\n"))?;
    } else if found.items.is_empty() {
        eprint("no grades of these days; `selftest grade latest` makes some\n");
    } else {
        print(&improvement::evidence(&seen))?;
        print(&improvement::routing(&found))?;
    }
    let nothing = found.items.iter().all(|advice| advice.sessions == 0);
    Ok(if nothing { Exit::NothingRan } else { Exit::Passed })
}
