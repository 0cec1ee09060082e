//! `selftest doctor`: checks everything that a run needs, with advice for each fault.

use selftest_app::{AppError, doctor};

use crate::args::GlobalArgs;
use crate::exit::Exit;
use crate::ui;
use crate::ui::print;

pub(super) async fn execute(json: bool, global: &GlobalArgs) -> Result<Exit, AppError> {
    let findings = doctor::check(&ui::open(global)?).await?;
    let healthy = findings.is_healthy();
    let text = if json {
        format!("{:#}\n", serde_json::json!({ "healthy": healthy, "findings": findings.0 }))
    } else {
        findings.text()
    };
    print(&text)?;
    Ok(if healthy { Exit::Passed } else { Exit::Setup })
}
