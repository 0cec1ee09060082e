//! What a program leaves where its work folder was: links into other folders, pipes that wait, depth,
//! folders that are closed.

use std::time::Instant;

use selftest_checks::check::{FileChanges, FileContent};
use selftest_harness::sut::SystemUnderTest as _;
use selftest_harness::sut::sut_settings::WorkFolder;

use super::has_namespaces;
use crate::sut::world::{PATIENCE, World};

const ANSWER: &str =
    "print(json.dumps({'type': 'result', 'status': 'COMPLETE', 'output': 'done'}), flush=True)";

fn script(text: &str) -> World {
    let world = World::agent(&[]);
    let text = format!("import json, os, sys, time\nsys.stdin.readline()\n{text}\n{ANSWER}\n");
    world.file("script.py", &text);
    world.set(|settings| {
        settings.run = ["/usr/bin/python3", "script.py"].map(String::from).into();
        settings.work_folder = WorkFolder::Copy;
    })
}

/// What the harness sees of the work folder after the answer, asked so often. Nothing is left of it
/// then.
async fn seen(world: &World, named: &[&str], times: usize) -> Vec<FileChanges> {
    let named: Vec<String> = named.iter().map(ToString::to_string).collect();
    let mut session = world.sut().open(&world.task).await.unwrap();
    tokio::time::timeout(PATIENCE, session.submit("go")).await.unwrap().unwrap();
    let mut seen = Vec::new();
    for _ in 0..times {
        let changes = tokio::time::timeout(PATIENCE, session.files(&named)).await.unwrap();
        seen.push(changes.expect("a work folder"));
    }
    tokio::time::timeout(PATIENCE, session.close()).await.unwrap();
    world.assert_gone();
    seen
}

fn shows(changes: &FileChanges, words: &str) -> bool {
    let names = [&changes.created, &changes.changed, &changes.deleted];
    let is_read =
        |content: &FileContent| matches!(content, FileContent::Text(text) if text.contains(words));
    names.iter().any(|list| list.iter().any(|path| path.contains(words)))
        || changes.after.values().any(is_read)
}

#[tokio::test]
async fn a_link_to_another_project_shows_nothing_of_it() {
    if !has_namespaces() {
        return;
    }
    let world = script("");
    let other = world.outside("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("hushed.md"), "hushed").unwrap();
    let other = other.display();
    for swap in [
        format!(
            "here = os.getcwd()\nos.rename(here, here + '-aside')\nos.symlink('{other}', here)"
        ),
        format!("os.symlink('{other}', 'inner')\nos.symlink('{other}/hushed.md', 'file.md')"),
        format!("os.unlink('README.md')\nos.symlink('{other}/hushed.md', 'README.md')"),
    ] {
        let world = world.again();
        world.file(
            "script.py",
            &format!("import json, os, sys\nsys.stdin.readline()\n{swap}\n{ANSWER}\n"),
        );
        let named = ["hushed.md", "README.md", "file.md", "inner/hushed.md", "../other/hushed.md"];
        let seen = seen(&world, &named, 1).await;
        assert!(!shows(&seen[0], "hushed"), "{swap}: {seen:?}");
    }
}

#[tokio::test]
async fn a_race_of_links_and_pipes_shows_nothing_and_does_not_wait() {
    if !has_namespaces() {
        return;
    }
    let world = script("");
    let other = world.outside("hushed.md");
    std::fs::write(&other, "hushed").unwrap();
    // Goes on after the answer: what a name means changes all the time.
    let race = format!(
        "open('kept', 'w').write('mine')\nos.symlink('{}', 'link')\nos.mkfifo('pipe')\n\
         if os.fork() == 0:\n    \
         while True:\n        \
         for name in ('kept', 'link', 'pipe'):\n            \
         os.link(name, 'next', follow_symlinks=False)\n            os.rename('next', 'README.md')\n            \
         try: os.unlink('next')\n            except OSError: pass",
        other.display()
    );
    world.file(
        "script.py",
        &format!("import json, os, sys\nsys.stdin.readline()\n{race}\n{ANSWER}\n"),
    );
    let begun = Instant::now();
    for changes in seen(&world, &["README.md", "pipe", "link"], 200).await {
        assert!(!shows(&changes, "hushed"), "{changes:?}");
    }
    assert!(begun.elapsed() < PATIENCE);
}

#[tokio::test]
async fn depth_and_closed_folders_are_removed() {
    if !has_namespaces() {
        return;
    }
    // More takes a program long, because Landlock asks each folder above, and some disks longer than is
    // waited for. `anchored` removes 60,000.
    let deep = "for _ in range(1000):\n    os.mkdir('d')\n    os.chdir('d')";
    let closed = "os.makedirs('closed/inner')\nopen('closed/inner/file', 'w')\nos.chmod('closed', 0)\n\
                  os.chmod('.', 0)\nos.chmod(os.environ['HOME'], 0)";
    for words in [deep, closed] {
        seen(&script(words), &["README.md"], 1).await;
    }
}
