//! `scripts/action-install`, which action.yml calls: a release is fetched and checked.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};

use crate::model_server::wire::Connection;

/// A server of release files, on a thread that ends with the test program.
fn releases(files: Vec<(String, Vec<u8>)>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut connection = Connection::new(stream.unwrap());
            while let Some(request) = connection.read() {
                let found = files.iter().find(|(path, _)| *path == request.path);
                match found {
                    Some((_, bytes)) => connection.write(200, &[], bytes),
                    None => connection.write(404, &[], b"no"),
                }
            }
        }
    });
    format!("http://{address}")
}

/// A release whose program says its name.
fn archive(folder: &Path) -> Vec<u8> {
    let platform = "selftest-x86_64-unknown-linux-gnu";
    let inside = folder.join(platform);
    fs::create_dir(&inside).unwrap();
    fs::write(inside.join("selftest"), "#!/bin/sh\necho selftest 9.9.9\n").unwrap();
    let made = Command::new("tar")
        .args(["-czf", "release.tar.gz", platform])
        .current_dir(folder)
        .status()
        .unwrap();
    assert!(made.success());
    fs::read(folder.join("release.tar.gz")).unwrap()
}

fn install(folder: &Path, releases: &str, version: &str) -> Output {
    // The platform of the release, whatever this machine is.
    let uname = folder.join("bin/uname");
    if !uname.exists() {
        fs::create_dir(folder.join("bin")).unwrap();
        let script = "printf '#!/bin/sh\\n[ \"$1\" = -s ] && echo Linux || echo x86_64\\n' > bin/uname && chmod +x bin/uname";
        assert!(
            Command::new("sh").args(["-c", script]).current_dir(folder).status().unwrap().success()
        );
    }
    let path = format!("{}:{}", folder.join("bin").display(), std::env::var("PATH").unwrap());
    Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/action-install"))
        .env("PATH", path)
        .env("RUNNER_TEMP", folder.join("temp"))
        .env("GITHUB_PATH", folder.join("path"))
        .env("REPOSITORY", "acme/selftest")
        .env("VERSION", version)
        .env("SELFTEST_RELEASES", releases)
        .env("NO_PROXY", "127.0.0.1")
        .env_remove("BUILD")
        .output()
        .unwrap()
}

#[test]
fn a_release_is_checked_before_it_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = archive(folder.path());
    let name = "selftest-x86_64-unknown-linux-gnu.tar.gz";
    let digest = selftest_text::digest::sha256_hex(&bytes);
    let wrong = "0".repeat(64);
    let file =
        |release: &str, name: &str, bytes: &[u8]| (format!("/{release}/{name}"), bytes.to_vec());
    let sums = |digest: &str| format!("{wrong}  other.tar.gz\n{digest}  {name}\n");
    let address = releases(vec![
        file("download/v9.9.9", "SHA256SUMS", sums(&digest).as_bytes()),
        file("download/v9.9.9", name, &bytes),
        file("latest/download", "SHA256SUMS", sums(&wrong).as_bytes()),
        file("latest/download", name, &bytes),
        file("download/v8.0.0", "SHA256SUMS", b""),
        file("download/v8.0.0", name, &bytes),
    ]);
    let done = install(folder.path(), &address, "v9.9.9");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(String::from_utf8_lossy(&done.stdout), "selftest 9.9.9\n");
    let path = fs::read_to_string(folder.path().join("path")).unwrap();
    assert!(Path::new(path.trim()).join("selftest").is_file(), "{path}");
    // A branch is no release, so that the newest one is taken.
    for (version, why) in [
        ("main", "and its release says 0000"),
        ("v8.0.0", "does not name selftest-x86_64"),
        ("v7.0.0", "cannot fetch http://127.0.0.1"),
    ] {
        let done = install(folder.path(), &address, version);
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(!done.status.success() && said.contains(why), "{version}: {said}");
    }
}
