//! Text by models cannot change the Markdown report: it has the outline of an honest run.

use pulldown_cmark::{Event, Options, Parser, Tag};
use serde_json::json;

use crate::model_server::{ModelServer, grounded, verdict, words};
use crate::run::Run;
use crate::workspace::{FLOW, OPENAI, Workspace, config};

const ATTACKS: [&str; 18] = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "![pixel](http://evil.example/p.png)",
    "[click](javascript:alert(1))",
    "http://evil.example/auto-link",
    "<http://evil.example/auto-link>",
    "\n\n# Forged heading\n\n",
    "\n\nForged heading\n===\n\n",
    "\r\r## Forged by carriage return\r\r",
    "| a | b |\n|---|---|\n| PASS | 1.00 |",
    "``` \n````\n~~~~\n",
    "\n\n- a list\n\n1. another\n\n> a quote\n\n---\n\n",
    "</details></td></table><h1>Out</h1>",
    "<!-- a comment that is never closed",
    "[ref]: http://evil.example \"title\"\n\n[ref]",
    "&lt;b&gt; &#x3c;script&#x3e; &colon;",
    "\u{1b}[2J\u{1b}]8;;http://evil.example\u{7}\u{0}\u{202e}\u{200b}",
    "*bold* _it_ ~~gone~~ `code` $x$ @someone #1 \\",
];

/// A run whose models write `text` wherever they may and `prompt` into the prompt. Both steps
/// fail, so that all parts of a report are there.
fn run(prompt: &'static str, text: &'static str) -> Run {
    let server = ModelServer::script()
        .generator(move |call| {
            let said =
                format!("Explain {} and ask me back. {prompt} Is it so?", words(call.number));
            let mut case = grounded(call, &said);
            case["hints"] = format!("Look at it. {text}").into();
            case
        })
        .sut(move |call| {
            json!({
                "status": if call.is_first_answer() { "AWAITING_RESPONSE" } else { "COMPLETE" },
                "output": format!("Answer. {text}"),
            })
        })
        .judge(move |call| {
            let mut verdict = verdict(call, 0.5);
            verdict["explanation"] = format!("Because. {text}").into();
            verdict
        })
        .start();
    Workspace::new().config(config(OPENAI, FLOW)).server(&server).run().exit(1)
}

/// Everything of a run's Markdown report that is not plain text.
fn outline(run: &Run) -> Vec<String> {
    let markdown = run.markdown().replace(&run.report().run_id(), "[run-id]");
    // The harness's own note on line ends and colour codes that it changed.
    let is_own = |line: &&str| !line.contains(": normalised before it was checked: ");
    let markdown: String = markdown.split_inclusive('\n').filter(is_own).collect();
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_FOOTNOTES;
    let mut outline = Vec::new();
    for event in Parser::new_ext(&markdown, options) {
        match event {
            Event::Start(Tag::Paragraph) => {}
            // The language of a code block is text, too.
            Event::Start(Tag::CodeBlock(_)) => outline.push("CodeBlock".to_owned()),
            Event::Start(tag) => outline.push(format!("{tag:?}")),
            Event::Html(html) | Event::InlineHtml(html) => outline.push(format!("Html {html}")),
            Event::Code(_) | Event::Rule | Event::HardBreak => outline.push(format!("{event:?}")),
            _ => {}
        }
    }
    outline
}

#[track_caller]
fn assert_honest(run: &Run, expected: &[String]) {
    assert_eq!(outline(run), expected, "{}", run.markdown());
    let strange = run.markdown().chars().any(|c| c.is_control() && c != '\n');
    assert!(!strange, "control characters in {:?}", run.markdown());
}

#[test]
fn the_outline_of_a_report_is_that_of_an_honest_run() {
    let honest = run("", "Nothing special.");
    let expected = outline(&honest);
    let is_table = |entry: &String| entry.starts_with("Table");
    assert!(expected.iter().any(is_table), "{}", honest.markdown());
    for attack in ATTACKS {
        assert_honest(&run("", attack), &expected);
    }
}

#[test]
fn a_prompt_cannot_change_the_outline_either() {
    let expected = outline(&run("", "Nothing special."));
    // Those that the safety rules let through.
    for attack in [
        "\n\n# Forged heading\n\n",
        "\n\nForged heading\n===\n\n",
        "| a | b |\n|---|---|\n| PASS | 1.0 |",
        "\n``` \n````\n~~~~\n",
        "\n\n- a list\n\n1. another\n\n> a quote\n\n---\n\n",
    ] {
        assert_honest(&run(attack, "Nothing special."), &expected);
    }
}

#[test]
fn the_terminal_shows_no_control_characters_of_models() {
    let run = run("", "\u{1b}[2J\u{1b}]0;title\u{7}\u{9b}31m");
    for text in [&run.stdout, &run.stderr] {
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
    }
}

#[test]
fn the_json_keeps_what_was_said() {
    let report = run("", "<script>\u{1b}[2J</script>").report();
    assert!(report.case().0["output"].as_str().unwrap().contains("<script>"), "{report}");
}
