//! The improvement loop from end to end with the embedded model: what a Sunday morning's worker
//! makes of a week of recorded sessions, and where people see it. No server, no scripted model.

use serde_json::{Value, json};

use super::{turn, with_cache};
use crate::grade::recording::{Recording, id};
use crate::model_server::ModelServer;
use crate::server::site::Site;
use crate::workspace::{CLEAR, OPENAI, Workspace, config};

const MODEL: &str = "embedded/smollm2-135m";
const SUITE: &str = "config/suites/shop.yaml";

/// Everything by the embedded model; one drafted skill, tried once with and once without.
fn embedded() -> String {
    format!(
        "version: 1\n\
         generator: {{ model: \"{MODEL}\", temperature: 0.0 }}\n\
         judge: {{ model: \"{MODEL}\" }}\n\
         sut: {{ chat: {{ model: \"{MODEL}\", max_tokens: 80, project_tokens: 0 }} }}\n\
         gaps: {{ suite: {SUITE}, repeats: 1, proposals_per_run: 1, max_tokens: 1000 }}\n\
         scenarios:\n{CLEAR}"
    )
}

/// A session in which a skill is used and a file looked for that is not there.
fn session(number: u32, skill: &str, result: Result<&str, &str>, next: &str) -> Recording {
    let day = 16 + number % 6;
    let missing = Err("cat: stock.csv: No such file or directory");
    Recording::new(&id(number))
        .at(&format!("2026-11-{day}T10:{number:02}:00Z"))
        .asks("count what is left in the shop")
        .calls("Skill", &json!({ "skill": skill }), result)
        .calls("Read", &json!({ "file_path": "stock.csv" }), missing)
        .says("Done: everything is counted.")
        .asks(next)
        .says("The count is saved to count.txt.")
}

/// A week in which one skill fails twelve times and another works six times.
fn week(workspace: Workspace) -> Workspace {
    let failed = Err("<tool_use_error>the skill broke off</tool_use_error>");
    let bad = (1..=12)
        .map(|number| session(number, "count-shop", failed, "count what is left in the shop"));
    let good = (13..=18)
        .map(|number| session(number, "tidy-up", Ok("Launching skill: tidy-up"), "thank you!"));
    bad.chain(good).fold(workspace, |workspace, recording| workspace.session(&recording))
}

#[test]
fn a_sunday_morning() {
    let _turn = turn();
    // The cases that a drafted skill is tried on are those of an earlier run.
    let server = ModelServer::start();
    let workspace = with_cache(Workspace::new()).config(config(OPENAI, CLEAR)).server(&server);
    let _ = workspace.run().exit(0);
    let _ = workspace.clone().args(["suite", "freeze", "latest", "--output", SUITE]).run().exit(0);
    drop(server);

    let workspace = week(workspace).config(embedded());
    let words = ["worker", "--once", "--now=2026-11-22T04:00:00Z", "--source=sessions", "--json"];
    let run = workspace.clone().args(words).run().exit(0);
    let json = run.json();
    let ran: Vec<(&str, &Value)> = json["ran"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["job"].as_str().unwrap(), &one["summary"]))
        .collect();
    let [
        ("run_gap_detection", gaps),
        ("run_skill_generation_batch", drafts),
        ("run_weekly_digest", digest),
        ("run_skill_effectiveness_scoring", skills),
    ] = ran[..]
    else {
        panic!("{json:#}")
    };
    // Imported, and signals found: twelve people had to ask again.
    assert_eq!((&gaps["sessions_graded"], &gaps["repeated_requests"]), (&json!(18), &json!(12)));
    assert!(gaps["gaps_new"].as_u64().unwrap() >= 2, "{gaps}");
    let processed = (&drafts["gaps_processed"], &drafts["failures"]);
    assert_eq!(processed, (&json!(1), &json!(0)), "{}", run.stderr);
    assert_eq!(drafts["proposals_created"], 1);
    assert_eq!((&digest["week"], &digest["sessions"]), (&json!("2026-W47"), &json!(18)));
    assert_eq!(skills["executions_recorded"], 18);
    assert_eq!(
        (&skills["skills_scored"], &skills["disabled_names"]),
        (&json!(2), &json!(["count-shop"]))
    );

    let shows = |words: &[&str]| workspace.clone().args(words).run().exit(0);
    let proposals = shows(&["improve", "proposals", "list", "--json"]).json();
    let proposal = &proposals[0];
    assert_eq!((&proposal["status"], &proposal["model"]), (&json!("proposed"), &json!(MODEL)));
    let experiment = &proposal["experiment"];
    assert_eq!(experiment["state"], "tested", "{proposal:#}");
    let details = &experiment["details"];
    assert_eq!(details["trials"], json!({ "control": 1, "treatment": 1 }), "{experiment:#}");
    // One pair of trials proves nothing, whatever came of it. What a model says depends on the
    // processor in its last digits: on some, an answer is cut by `max_tokens`, which blocks.
    let is_cut = details["treatment"].get("silent").is_some();
    let expected = if is_cut { "blocked" } else { "not_enough_evidence" };
    assert_eq!(details["conclusion"], expected, "{experiment:#}");
    let disabled = shows(&["improve", "skills", "history", "count-shop"]).stdout;
    assert!(disabled.contains("auto_disable") || disabled.contains("disabled"), "{disabled}");
    let report = run.read("docs/reports/weekly/2026-W47.md");
    assert!(report.contains("18"), "{report}");

    // A second call does nothing, and puts nothing to use.
    assert_eq!(workspace.clone().args(words).run().exit(0).json()["ran"], json!([]));

    let site = Site::start(workspace);
    let page = |path: &str| site.get(path).text();
    let proposal_id = proposal["id"].as_str().unwrap();
    let name = proposal["skill_name"].as_str().unwrap();
    assert!(page("/").contains("count what is left in the shop"));
    let skills = page("/skills");
    assert!(skills.contains("count-shop") && skills.contains("disabled"), "{skills}");
    assert!(skills.contains("below 0.3"), "the reason: {skills}");
    let gaps = page("/gaps");
    assert!(gaps.contains("Read") && gaps.contains(proposal_id), "{gaps}");
    let shown = page(&format!("/proposals/{proposal_id}"));
    assert!(shown.contains(name) && shown.contains("Accept"), "{shown}");
    let arm = details["run_ids"]["treatment"].as_str().unwrap();
    assert!(page(&format!("/selftests/{arm}")).contains(name));
    assert!(page("/weekly/2026-W47").contains("18"));
    let jobs = page("/jobs");
    assert!(ran.iter().all(|(job, _)| jobs.contains(job)), "{jobs}");
}
