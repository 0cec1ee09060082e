//! docs/first-suite.md: its files and commands do what the page prints.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;

use regex::Regex;

/// The fenced blocks of the page: what stands behind the backticks, and the text.
fn blocks() -> Vec<(String, String)> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/first-suite.md");
    let page = fs::read_to_string(page).unwrap();
    let parts: Vec<&str> = page.split("```").collect();
    let fenced = parts.iter().skip(1).step_by(2);
    fenced.map(|part| part.split_once('\n').unwrap()).map(|(a, b)| (a.into(), b.into())).collect()
}

#[test]
fn the_page_prints_what_the_program_prints() {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("project");
    fs::create_dir_all(folder.path().join("bin")).unwrap();
    fs::create_dir_all(project.join("config/suites")).unwrap();
    symlink(env!("CARGO_BIN_EXE_selftest"), folder.path().join("bin/selftest")).unwrap();
    let path =
        format!("{}:{}", folder.path().join("bin").display(), std::env::var("PATH").unwrap());
    let times = Regex::new(r"[\d.]+ m?s\b").unwrap();
    // Columns are as wide as their longest time.
    let plain = |text: &str| {
        let words: Vec<&str> = text.split_whitespace().collect();
        times.replace_all(&words.join(" "), "N ms").into_owned()
    };
    let mut commands = 0;
    for (info, text) in blocks() {
        if let Some((_, file)) = info.split_once(' ') {
            fs::write(project.join(file), &text).unwrap();
            fs::set_permissions(project.join(file), fs::Permissions::from_mode(0o755)).unwrap();
        }
        for part in text.split("$ ").skip(1).filter(|_| info == "console") {
            let (command, printed) = part.split_once('\n').unwrap();
            let output = Command::new("bash")
                .args(["-c", command])
                .current_dir(&project)
                .env("PATH", &path)
                .env("HOME", folder.path())
                .env("OLLAMA_HOST", crate::workspace::NOBODY)
                .env_remove("CI")
                .env_remove("GITHUB_ACTIONS")
                .output()
                .unwrap();
            let stdout = String::from_utf8_lossy(&output.stdout);
            for line in printed.lines().filter(|line| !line.is_empty()) {
                let is_there = stdout.lines().any(|own| plain(own) == plain(line));
                assert!(is_there, "`{command}` does not print `{line}`:\n{stdout}");
            }
            commands += 1;
        }
    }
    assert_eq!(commands, 3);
}
