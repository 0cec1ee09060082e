//! The configuration snippets in `examples/README.md`.

use std::process::Command;

/// Further parts of the configuration.
const REST: &str = "version: 1
scenarios:
  - id: summary
    description: Summarise the project
    expected_status: COMPLETE
";

#[test]
fn every_snippet_is_a_configuration() {
    let page = include_str!("../../../examples/README.md");
    let snippets: Vec<&str> =
        page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(snippets.len(), 5);
    for snippet in snippets {
        let project = tempfile::tempdir().unwrap();
        std::fs::create_dir(project.path().join("config")).unwrap();
        std::fs::write(project.path().join("config/selftest.yaml"), format!("{REST}{snippet}"))
            .unwrap();
        let check = Command::new(env!("CARGO_BIN_EXE_selftest"))
            .args(["config", "check", "-C"])
            .arg(project.path())
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&check.stderr);
        assert!(check.status.success(), "{snippet}\n{stderr}");
    }
}
