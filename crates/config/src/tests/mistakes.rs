//! Tests of complete error messages, as printed.

use std::path::Path;

use serde_json::json;

use super::{BROKEN, SPEC, resolved};
use crate::{Environment, ParsedFileCache, load, yaml};

fn errors(file: &str) -> String {
    resolved(Some(file), &[], &[]).unwrap_err().to_string()
}

#[test]
fn many_errors_are_reported_at_once() {
    let environment = [("SELFTEST_SAFETY_FLOOR", "2"), ("SELFTEST_CONCURRENCY", "many")];
    let flags = [("/reports/json_folder", "--json-folder", json!(""))];
    let errors = resolved(Some(BROKEN), &environment, &flags).unwrap_err();
    insta::assert_snapshot!(errors.render(false));
}

#[test]
fn meaning_is_checked_beside_structure() {
    insta::assert_snapshot!(errors(&format!(
        "{SPEC}
colour: red
sut:
  http:
    base_url: localhost:5678
    task_id: id
    poll: {{method: GET, path: /tasks}}
rubric:
  - {{id: pass, weight: 0.5, description: a, anchors: []}}
  - {{id: tone, weight: 0.25, description: a, anchors: []}}
grade: {{quality: {{weights: {{problem_solved: 0.5}}}}}}
"
    )));
}

#[test]
fn colour_is_the_callers_choice() {
    let errors = resolved(Some("version: 2\nscenarios: []\n"), &[], &[]).unwrap_err();
    assert!(errors.render(true).contains('\u{1b}') && !errors.render(false).contains('\u{1b}'));
}

#[test]
fn thousands_of_errors_are_cut_and_quick() {
    let started = std::time::Instant::now();
    let unknown = (0..15_000).map(|index| format!("strictnes{index}: 1\n"));
    let unknown = unknown.collect::<Vec<_>>().concat();
    let twice = "judge: {}\n".repeat(5000);
    let shown = errors(&format!("{SPEC}{unknown}{twice}"));
    assert!(shown.contains("… and 19950 more") && shown.ends_with(": 20000 errors"), "{shown}");
    // A quadratic algorithm would take far longer.
    assert!(started.elapsed().as_secs() < 60, "{:?}", started.elapsed());
}

#[test]
fn unreadable_files() {
    let folder = tempfile::tempdir().unwrap();
    let load = |name: &str, bytes: Option<&[u8]>| {
        let path = folder.path().join(name);
        if let Some(bytes) = bytes {
            std::fs::write(&path, bytes).unwrap();
        }
        let error = load(
            Path::new("."),
            Some(&path),
            &Environment::default(),
            vec![],
            &ParsedFileCache::default(),
        )
        .unwrap_err();
        error.render(false).replace(&folder.path().display().to_string(), "<folder>")
    };
    std::fs::create_dir(folder.path().join("folder")).unwrap();
    let bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n\
                b: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\n\
                c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]\n\
                d: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]\n\
                e: &e [*d, *d, *d, *d, *d, *d, *d, *d, *d, *d]\n";
    let huge = vec![b' '; yaml::CONFIG.max_bytes + 1];
    let files: [(&str, Option<&[u8]>); 12] = [
        ("absent.yaml", None),
        ("folder", None),
        ("empty.yaml", Some(b"")),
        ("comments.yaml", Some(b"# nothing here\n")),
        ("latin1.yaml", Some(b"version: 1\n# caf\xe9\n")),
        ("huge.yaml", Some(&huge)),
        ("bomb.yaml", Some(bomb.as_bytes())),
        ("two.yaml", Some(b"version: 1\n---\nversion: 1\n")),
        ("syntax.yaml", Some(b"version: 1\nscenarios: [a, b\n")),
        ("tab.yaml", Some(b"judge:\n\tmodel: x\n")),
        ("binary.yaml", Some(b"version: 1\n\0\x07\x1b[31m\n")),
        ("prose.yaml", Some(b"hello\n")),
    ];
    let all: Vec<String> =
        files.iter().map(|(name, bytes)| format!("## {name}\n{}", load(name, *bytes))).collect();
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn probable_mistakes_are_warnings() {
    let file = SPEC.replace(
        "    reply_flow:\n",
        "    reply_flow:\n      - {reply: Yes, expected_status: COMPLETE}\n",
    ) + "models: {context_tokens: 4096}\n"
        + "rubric: [{id: tone, weight: 1, description: a, anchors: []}]\n";
    let resolved = resolved(Some(&file), &[("SELFTEST_STRICTNES", "1")], &[]).unwrap();
    insta::assert_snapshot!(resolved.warnings.join("\n"));
}

#[test]
fn a_network_is_granted_in_one_way() {
    let of = |section: &str, granted: &str| {
        errors(&format!("version: 1\nsut:\n  {section}:\n    run: [\"a\"]\n{granted}"))
    };
    for section in ["command", "acp"] {
        let both = of(section, "    tcp_ports: [80]\n    local_ports: true\n");
        assert!(both.contains("has both `tcp_ports` and `local_ports`"), "{both}");
        assert!(both.contains("hint: list what it connects to as `addresses`"), "{both}");
        let both = of(section, "    addresses: [\"a:1\"]\n    tcp_ports: [80]\n");
        assert!(both.contains("has both `addresses` and `tcp_ports`"), "{both}");
    }
}
