//! Files that packages are made of: what they must agree on, and what they say where something is
//! missing. Installs nothing: `embedded/packages.rs` does.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

#[test]
fn the_version_is_written_in_one_place() {
    let version = env!("CARGO_PKG_VERSION");
    let manifest = read("Cargo.toml");
    let own = manifest.split("[workspace.package]").nth(1).unwrap();
    assert!(own.trim_start().starts_with(&format!("version = \"{version}\"")), "{own}");
    for path in [
        "pyproject.toml",
        "packaging/npm/package.json",
        "packaging/npm/build.mjs",
        "packaging/homebrew/selftest.rb.in",
        "packaging/docker/Dockerfile",
        "src/commands/init/workflow.yml",
        ".github/workflows/release.yml",
    ] {
        let text = read(path);
        assert!(!text.contains(version), "{path} holds the version too");
    }
    assert!(read("pyproject.toml").contains("dynamic = [\"version\"]"));
}

#[test]
fn packages_have_one_name_and_the_platforms_of_the_release() {
    let package: Value = serde_json::from_str(&read("packaging/npm/package.json")).unwrap();
    let name = package["name"].as_str().unwrap();
    for (path, words) in [
        ("pyproject.toml", format!("\nname = \"{name}\"\n")),
        ("packaging/npm/launcher.js", format!("{name}-${{platform}}/bin/selftest")),
    ] {
        assert!(read(path).contains(&words), "{path}");
    }
    let platforms: Value = serde_json::from_str(&read("packaging/npm/platforms.json")).unwrap();
    let release = read(".github/workflows/release.yml");
    let formula = read("packaging/homebrew/selftest.rb.in");
    for (platform, what) in platforms.as_object().unwrap() {
        let system = if what["os"][0] == "darwin" { "apple-darwin" } else { "unknown-linux-gnu" };
        let processor = if what["cpu"][0] == "x64" { "x86_64" } else { "aarch64" };
        let target = format!("{processor}-{system}");
        assert!(release.contains(&format!("- target: {target}\n")), "{target}");
        assert!(release.contains(&format!("{platform}=built/{target}/selftest")), "{target}");
        assert!(formula.contains(&format!("selftest-{target}.tar.gz")), "{target}");
    }
    assert_eq!(release.matches("- target: ").count(), platforms.as_object().unwrap().len());
}

/// Whoever builds by `scripts/prepare` and cargo alone gets a program that runs elsewhere too.
#[test]
fn no_build_is_made_for_the_processor_at_hand() {
    for path in [".cargo/config.toml", "Cargo.toml", "scripts/selftest", "scripts/prepare"] {
        assert!(!read(path).contains("target-cpu"), "{path}");
    }
    let release = read(".github/workflows/release.yml");
    let commands = release.lines().filter(|line| !line.trim_start().starts_with('#'));
    assert_eq!(commands.filter(|line| line.contains("target-cpu")).count(), 0);
}

#[cfg(unix)]
#[test]
fn the_formula_has_the_digest_of_every_archive() {
    let folder = tempfile::tempdir().unwrap();
    let sums = folder.path().join("SHA256SUMS");
    let made = |names: &[&str]| {
        let lines: Vec<String> = names
            .iter()
            .zip(1..)
            .map(|(name, digit)| {
                format!("{}  selftest-{name}.tar.gz", digit.to_string().repeat(64))
            })
            .collect();
        fs::write(&sums, lines.join("\n") + "\n").unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/formula");
        let output = Command::new(script).arg(&sums).output().unwrap();
        let [stdout, stderr] =
            [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        (output.status.success(), stdout, stderr)
    };
    let all = [
        "aarch64-apple-darwin",
        "x86_64-apple-darwin",
        "aarch64-unknown-linux-gnu",
        "x86_64-unknown-linux-gnu",
    ];
    let (good, formula, _) = made(&all);
    assert!(good && !formula.contains('@'), "{formula}");
    assert!(formula.contains(&format!("version \"{}\"", env!("CARGO_PKG_VERSION"))));
    assert_eq!(formula.matches(&"4".repeat(64)).count(), 1);
    let (good, _, error) = made(&all[..3]);
    assert!(!good && error.contains("no digest of selftest-x86_64-unknown-linux-gnu"), "{error}");
}

#[cfg(unix)]
#[test]
fn the_launcher_says_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    for file in ["launcher.js", "platforms.json"] {
        fs::write(folder.path().join(file), read(&format!("packaging/npm/{file}"))).unwrap();
    }
    let Ok(output) = Command::new("node").arg(folder.path().join("launcher.js")).output() else {
        crate::require::skip("the launcher of the npm package: there is no node");
        return;
    };
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(5), "{stderr}");
    assert!(stderr.starts_with("error: the package agent-selftest-"), "{stderr}");
    assert_eq!(stderr.matches("hint:").count(), 1, "{stderr}");
}
