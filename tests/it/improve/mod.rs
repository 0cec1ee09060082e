//! `selftest improve gaps`, `proposals` and `route`: what could make the agent better.

mod gaps;
mod proposals;
pub(crate) mod routing;
mod tested;

use serde_json::json;

use crate::grade::recording::{Recording, id};
use crate::model_server::ModelServer;
use crate::workspace::{OPENAI, Workspace, config, scenarios};

/// Three sessions in each of which four tools failed.
pub(crate) fn four_gaps(workspace: Workspace) -> Workspace {
    let session = |workspace: Workspace, number: u32| {
        let mut recording = Recording::new(&id(number)).asks("Summarise the shop");
        for (tool, error) in [
            ("Read", "cat: shop.md: No such file or directory"),
            ("Fetch", "curl: connection refused"),
            ("Write", "shop.md: Permission denied"),
            ("Wait", "the request timed out"),
        ] {
            recording = recording.calls(tool, &json!({ "x": 1 }), Err(error));
        }
        workspace.session(&recording.says("I was unable to find the shop."))
    };
    (1..=3).fold(workspace, session)
}

/// The same with a model that drafts skills, after a look for gaps.
pub(crate) fn detected(workspace: Workspace, server: &ModelServer) -> Workspace {
    let workspace = four_gaps(workspace).config(config(OPENAI, &scenarios(1))).server(server);
    let _ = detect(&workspace).run().exit(0);
    workspace
}

pub(crate) fn detect(workspace: &Workspace) -> Workspace {
    workspace.clone().args(["improve", "gaps", "detect", "--source=sessions", "--json"])
}
