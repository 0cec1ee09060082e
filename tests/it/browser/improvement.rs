//! Gaps, proposals and job runs of the made-up team, and their pages in a browser.

use selftest_grading::grade::TaskType;
use selftest_grading::improve::gap::{
    DetectedGap, GapEvidence, GapKind, GapStatus, ProposalStatus, SkillProposal, SkillTest,
};
use selftest_harness::event::ExperimentRun;
use selftest_harness::experiment::Arm;
use selftest_harness::sut::SkillDelivery;
use selftest_reports::comparison::experiment::SkillExperiment;
use selftest_reports::document::ReportDocument;
use selftest_store::{ProposalDecision, Store};
use serde_json::{Value, json};
use thirtyfour::Key;

use super::chrome::{Chrome, browse};
use super::demo::{self, GRADED, SCRIPT, at};
use super::runs;
use super::site::{Contents, Site};

/// The proposal that an experiment was made for.
pub(super) const TESTED: &str = "proposal-00000000c0de";
/// A proposal whose texts try to be more than text.
pub(super) const HOSTILE: &str = "proposal-00000000bad0";
const NAME: &str = "look-before-you-read";
const WITHOUT: &str = "selftest-20261107-0330-aaaaab";
const WITH: &str = "selftest-20261107-0330-aaaaac";

fn skill_md(name: &str, rest: &str) -> String {
    format!(
        "---\nname: {name}\ndescription: Use it before a file is read that was not listed.\n---\n\n\
         # Look before you read\n\n1. List the folder first.\n2. Take the name as it is listed, \
         do not guess it.\n3. Where the file is not there, say so and ask.\n{rest}"
    )
}

/// One arm of the experiment with [`TESTED`].
fn arm(arm: Arm, failing: &[usize], took: u64) -> ReportDocument {
    let (id, other) = match arm {
        Arm::Control => (WITHOUT, WITH),
        Arm::Treatment => (WITH, WITHOUT),
    };
    let mut run = runs::run(id, "2026-11-07T03:30:02Z", 8, failing);
    run.experiment = Some(ExperimentRun {
        arm,
        other_run_id: other.to_owned().try_into().unwrap(),
        skill: NAME.to_owned(),
        skill_digest: "5c".repeat(32),
    });
    for (number, case) in (0..).zip(&mut run.cases) {
        let delivery = SkillDelivery { offered: "in the prompt".to_owned(), read: Some(true) };
        case.evidence.skill = (arm == Arm::Treatment).then_some(delivery);
        for step in &mut case.steps {
            step.duration_ms = took + (took - 2000) * number;
            let (reply, judgement) = (step.reply.as_mut().unwrap(), step.judgement.as_ref());
            let mut call = judgement.unwrap().calls[0].clone();
            call.usage.prompt_tokens = Some(took / 2 + 10 * number);
            reply.call = Some(call);
        }
    }
    run
}

fn arms() -> [ReportDocument; 2] {
    [arm(Arm::Control, &[0, 1, 2, 4, 5, 6, 7], 2100), arm(Arm::Treatment, &[], 2150)]
}

fn experiment() -> SkillTest {
    let [control, treatment] = arms();
    let found = SkillExperiment::new(&control, &treatment, Vec::new());
    let conclusion = found.sentence.clone();
    SkillTest::Tested { conclusion, details: serde_json::to_value(found).unwrap() }
}

fn gap(
    kind: GapKind,
    subject: &str,
    description: &str,
    sessions: &[u64],
    words: &str,
) -> DetectedGap {
    let evidence = sessions.iter().map(|number| {
        let session = demo::session(*number);
        GapEvidence {
            at: session.started_at().unwrap(),
            session_id: session.session_id,
            event: Some(7 + number),
            words: words.to_owned(),
        }
    });
    DetectedGap {
        kind,
        key: format!("{}|{subject}", kind.name()),
        subject: subject.to_owned(),
        detail: None,
        description: description.to_owned(),
        occurrences: 3 * sessions.len() as u64,
        sessions: sessions.len() as u64,
        task_types: vec![TaskType::Debugging],
        evidence: evidence.collect(),
    }
}

fn proposal(
    id: &str,
    gap: &DetectedGap,
    name: &str,
    skill: String,
    test: SkillTest,
) -> SkillProposal {
    SkillProposal {
        id: id.to_owned(),
        gap_id: gap.id(),
        skill_name: name.to_owned(),
        description: "Use it before a file is read that was not listed.".to_owned(),
        skill_md: skill,
        status: ProposalStatus::Proposed,
        model: "ollama/qwen2.5-coder:7b".to_owned(),
        prompt_digest: "a7".repeat(32),
        experiment: Some(test),
        created_at: at("2026-11-08T03:15:20Z"),
        decided_at: None,
        reason: None,
        file: None,
    }
}

/// Puts gaps, proposals and job runs into the database of a site.
pub(super) async fn fill(store: &Store) {
    let files = "Bash failed with file_not_found 21 times in 7 sessions";
    let words = "cat: src/csv/reder.rs: No such file or directory";
    let files = gap(GapKind::ToolError, "Bash", files, &[3, 8, 15, 21, 30, 42, 51], words);
    let hostile = format!("no tool of the name {SCRIPT} in 4 sessions");
    let hostile = gap(GapKind::UnknownTool, SCRIPT, &hostile, &[3, 9, 20, 33], SCRIPT);
    let deploy = "deployment: 2 of 6 sessions were completed";
    let deploy = gap(GapKind::LowTaskType, "deployment", deploy, &[6, 18, 54], "not completed");
    let request = "\"add a changelog entry\" was repeated in 3 sessions";
    let request = gap(GapKind::RepeatedRequest, "changelog", request, &[1, 13, 25], "and add it");
    let time = at("2026-11-08T03:00:04Z");
    let gaps = [files.clone(), hostile.clone(), deploy.clone(), request.clone()];
    store.save_gaps(&gaps, &[], time).await.unwrap();
    store.record_gap_failure(&deploy.id(), &format!("the reply was cut {SCRIPT}")).await.unwrap();
    let not_tested =
        |reason: &str| SkillTest::NotTested { reason: format!("no suite is configured{reason}") };
    let breaks_out = skill_md("run-tool", &format!("\n</pre>{SCRIPT}\n"));
    for one in [
        proposal(TESTED, &files, NAME, skill_md(NAME, ""), experiment()),
        proposal(HOSTILE, &hostile, "run-tool", breaks_out, not_tested(SCRIPT)),
        proposal("proposal-0000000000ad", &request, "changelog", String::new(), not_tested("")),
    ] {
        assert!(store.add_proposal(&one).await.unwrap());
    }
    let decision = ProposalDecision {
        status: ProposalStatus::Accepted,
        gap: GapStatus::Closed,
        reason: None,
        file: Some(".selftest/skills/changelog/SKILL.md".to_owned()),
        at: at("2026-11-09T09:12:00Z"),
    };
    assert!(store.decide_proposal("proposal-0000000000ad", &decision).await.unwrap());
    for (job, slot, status, counts) in [
        (
            "run_weekly_digest",
            "2026-11-22T03:30:00Z",
            "completed",
            json!({ "week": "2026-W47", "sessions": 38 }),
        ),
        (
            "run_skill_effectiveness_scoring",
            "2026-11-22T04:00:00Z",
            "failed",
            json!({ "error": format!("the database is locked {SCRIPT}") }),
        ),
    ] {
        let slot = at(slot);
        let attempt = store.start_job(job, slot, "builder-4711-0000c0de", slot).await.unwrap();
        assert_eq!(attempt, Some(1));
        let mut summary: Value = json!({ "status": status, "elapsed_ms": 8240.5 });
        summary.as_object_mut().unwrap().extend(counts.as_object().unwrap().clone());
        store.finish_job(job, slot, slot, status, &summary.to_string()).await.unwrap();
    }
}

fn address(id: &str) -> String {
    format!("/proposals/{id}")
}

const STATUS: &str = ".title .badge";

/// The status of a gap in the list, by words of its description.
async fn gap_status(chrome: &Chrome, site: &Site, words: &str) -> String {
    chrome.open(&site.at("/gaps")).await;
    let rows = chrome.texts("section[aria-label=Gaps] tbody tr").await;
    let row = rows.iter().position(|row| row.contains(words)).unwrap();
    chrome.texts("section[aria-label=Gaps] tbody td .badge").await[row].clone()
}

#[test]
fn gaps_lead_to_sessions_and_proposals() {
    let site = Site::with(demo::contents());
    browse(async |chrome| {
        chrome.open(&site.at("/gaps")).await;
        assert_eq!(chrome.text("nav a[aria-current]").await, "Gaps");
        let gaps = chrome.texts("section[aria-label=Gaps] tbody th").await;
        assert_eq!(gaps.len(), 4, "{gaps:?}");
        assert!(gaps[0].starts_with("Bash failed with file_not_found"), "{gaps:?}");
        let all = chrome.text("main").await;
        assert!(all.contains(&format!("no tool of the name {SCRIPT}")), "as text: {all}");
        assert!(all.contains(&format!("The last draft failed: the reply was cut {SCRIPT}")));
        assert!(all.contains("and 4 more"), "{all}");
        chrome.click("section[aria-label=Gaps] tbody tr:first-child .ids a").await;
        chrome.until(&format!("location.pathname === '/sessions/{GRADED}'")).await;
        chrome.open(&site.at("/gaps")).await;
        chrome.click(&format!("a[href='{}']", address(TESTED))).await;
        chrome.shows("main h1", NAME).await;
        let evidence = chrome.texts("section[aria-label=Evidence] tbody tr").await;
        assert_eq!(evidence.len(), 7);
        assert!(evidence[0].contains("#10") && evidence[0].contains("reder.rs"), "{evidence:?}");
    });
}

#[test]
fn a_proposal_shows_what_its_experiment_came_to() {
    let site = Site::with(Contents { runs: arms().into(), ..demo::contents() });
    browse(async |chrome| {
        chrome.open(&site.at(&address(TESTED))).await;
        let test = chrome.text("section[aria-label=Test]").await;
        assert_eq!(chrome.text("section[aria-label=Test] .badge").await, "helps");
        assert!(test.contains("is better than the system without it beyond chance"), "{test}");
        let rows = chrome.texts("section[aria-label=Test] tbody tr").await;
        assert_eq!(rows.len(), 4, "{rows:?}");
        assert!(rows[0].starts_with("Mean score") && rows[0].ends_with("7108"), "{rows:?}");
        assert!(rows[2].contains("+0.2 s"), "{rows:?}");
        assert!(rows[3].contains("+25"), "{rows:?}");
        for (id, which) in [(WITHOUT, "without"), (WITH, "with")] {
            chrome.open(&site.at(&address(TESTED))).await;
            chrome.click(&format!("section[aria-label=Test] a[href$='{id}']")).await;
            let facts = format!("Experiment: {which} the skill {NAME}");
            chrome.shows("main", &facts).await;
        }
    });
}

#[test]
fn hostile_proposals_are_text() {
    let site = Site::with(demo::contents());
    browse(async |chrome| {
        chrome.open(&site.at(&address(HOSTILE))).await;
        assert!(chrome.text("pre").await.contains(&format!("</pre>{SCRIPT}")));
        let test = chrome.text("section[aria-label=Test]").await;
        assert!(test.contains(&format!("not tested no suite is configured{SCRIPT}")), "{test}");
        let lead = chrome.text(".lead").await;
        assert!(lead.ends_with(&format!("the name {SCRIPT} in 4 sessions")), "{lead}");
        assert_eq!(chrome.texts("section[aria-label=Evidence] td.words").await, [SCRIPT; 4]);
        assert_eq!(chrome.run("return document.scripts.length", Vec::new()).await, 1);
    });
}

#[test]
fn a_proposal_is_accepted_once() {
    let site = Site::with(demo::contents());
    browse(async |chrome| {
        let file = site.path(&format!(".selftest/skills/{NAME}/SKILL.md"));
        chrome.open(&site.at(&address(TESTED))).await;
        let folder = chrome.text("section[aria-label=Decision] .remark").await;
        assert!(folder.contains(".selftest/skills") && !file.exists(), "{folder}");
        let accept = "form[action$=accept]";
        chrome.find(&format!("{accept} input")).await.send_keys("does what it says").await.unwrap();
        chrome.click(&format!("{accept} button")).await;
        chrome.shows(STATUS, "accepted").await;
        assert_eq!(std::fs::read_to_string(file).unwrap(), skill_md(NAME, ""));
        let facts = chrome.text(".facts").await;
        assert!(facts.contains("does what it says") && facts.contains("SKILL.md"), "{facts}");
        chrome.until("!document.querySelector('form')").await;
        assert_eq!(gap_status(chrome, &site, "Bash failed").await, "closed");
    });
}

/// Somebody else was faster: the page that still has its forms decides nothing.
#[test]
fn a_stale_page_does_not_decide_again() {
    let site = Site::with(demo::contents());
    browse(async |chrome| {
        chrome.open(&site.at(&address(TESTED))).await;
        let (status, _) = site.post(&format!("{}/reject", address(TESTED)), "reason=too+vague");
        assert_eq!(status, 303);
        chrome.refused(409);
        chrome.click("form[action$=accept] button").await;
        chrome.shows("main", &format!("{TESTED} is rejected already")).await;
        assert!(!site.path(".selftest/skills").join(NAME).exists());
        assert_eq!(gap_status(chrome, &site, "Bash failed").await, "dismissed");
    });
}

#[test]
fn a_proposal_is_rejected_with_a_reason() {
    let site = Site::with(demo::contents());
    browse(async |chrome| {
        let reject = "form[action$=reject]";
        chrome.open(&site.at(&address(HOSTILE))).await;
        // Without words the browser does not send it.
        chrome.click(&format!("{reject} button")).await;
        chrome.until("document.activeElement.matches('form[action$=reject] input:invalid')").await;
        let reason = format!("it is no skill {SCRIPT}");
        chrome.press(&reason).await;
        chrome.click(&format!("{reject} input[type=checkbox]")).await;
        chrome.click(&format!("{reject} button")).await;
        chrome.shows(STATUS, "rejected").await;
        let facts = chrome.text(".facts").await;
        assert!(facts.contains(&reason), "as text: {facts}");
        // A draft is wanted again.
        assert_eq!(gap_status(chrome, &site, "no tool of the name").await, "open");
    });
}

#[test]
fn decisions_need_no_javascript() {
    let site = Site::with(demo::contents());
    browse(async |chrome| {
        chrome.tool("Emulation.setScriptExecutionDisabled", json!({ "value": true })).await;
        chrome.open(&site.at(&address(TESTED))).await;
        chrome.click("form[action$=accept] button").await;
        chrome.shows(STATUS, "accepted").await;
        assert!(site.path(&format!(".selftest/skills/{NAME}/SKILL.md")).exists());
        chrome.open(&site.at(&address(HOSTILE))).await;
        let reason = chrome.find("form[action$=reject] input[name=reason]").await;
        reason.send_keys("no").await.unwrap();
        chrome.click("form[action$=reject] button").await;
        chrome.shows(STATUS, "rejected").await;
    });
}

#[test]
fn decisions_need_no_mouse() {
    let site = Site::with(demo::contents());
    browse(async |chrome| {
        chrome.open(&site.at("/gaps")).await;
        let tab_to = async |selector: &str| {
            for _ in 0..80 {
                chrome.press(String::from(char::from(Key::Tab))).await;
                let script = "return document.activeElement?.matches(arguments[0]) === true";
                if chrome.run(script, vec![json!(selector)]).await == true {
                    return;
                }
            }
            panic!("no way to {selector} by Tab");
        };
        tab_to(&format!("a[href='{}']", address(TESTED))).await;
        chrome.press(String::from(char::from(Key::Enter))).await;
        chrome.shows("main h1", NAME).await;
        for field in ["accept input", "accept button", "reject input[name=reason]"] {
            let (form, field) = field.split_once(' ').unwrap();
            tab_to(&format!("form[action$={form}] {field}")).await;
        }
        chrome.press("not yet").await;
        tab_to("form[action$=reject] input[type=checkbox]").await;
        chrome.press(" ").await;
        chrome.until("document.activeElement.checked").await;
        tab_to("form[action$=reject] button").await;
        chrome.press(String::from(char::from(Key::Enter))).await;
        chrome.shows(STATUS, "rejected").await;
        assert_eq!(gap_status(chrome, &site, "Bash failed").await, "open");
    });
}

#[test]
fn job_runs_are_shown() {
    let site = Site::with(demo::contents());
    browse(async |chrome| {
        chrome.open(&site.at("/jobs")).await;
        assert_eq!(chrome.text("nav a[aria-current]").await, "Jobs");
        let jobs = chrome.texts("section[aria-label='Scheduled jobs'] tbody tr").await;
        let job = |name: &str| jobs.iter().find(|job| job.starts_with(name)).unwrap();
        let digest = job("run_weekly_digest");
        assert!(digest.contains("completed") && digest.contains("sessions 38"), "{digest}");
        let scoring = job("run_skill_effectiveness_scoring");
        assert!(scoring.contains("failed") && scoring.contains(SCRIPT), "as text: {scoring}");
    });
}
