//! Tests of how commands are recognised.

use super::*;

fn shown(command: &str) -> Vec<String> {
    let step = |step: CommandStep| match step {
        CommandStep::Check(check) => format!(
            "{:?}{}{}",
            check.kind,
            if check.targets.is_empty() { String::new() } else { format!(" {:?}", check.targets) },
            if check.exit_code_is_reliable { "" } else { " ?" }
        ),
        CommandStep::Change => "change".to_owned(),
        CommandStep::Merge => "merge".to_owned(),
    };
    parse_steps(command).into_iter().map(step).collect()
}

#[test]
fn checks_are_known_behind_whatever_starts_them() {
    for (command, expected) in [
        ("pytest", "Tests"),
        ("cd /repo && python3 -m pytest -x -q", "Tests"),
        (
            "PYTHONPATH=. timeout 60 uv run pytest tests/test_a.py::test_x -q 2>&1",
            "Tests [\"tests/test_a.py\"]",
        ),
        ("PYTHONPATH=/repo/src PATH=\"/a b/bin:$PATH\" pytest", "Tests"),
        ("docker exec -it -u root -w /app api pytest", "Tests"),
        ("docker compose -f dev.yml exec -T -e CI=1 api pytest", "Tests"),
        ("docker-compose run --rm --user me api npm test", "Tests"),
        ("python manage.py test app", "Tests [\"manage.py\"]"),
        ("./tests/runtests.py admin", "Tests"),
        ("cargo nextest run --workspace", "Tests"),
        ("cargo test --no-run", "Build"),
        ("cargo clippy --all-targets -- -D warnings", "Lint"),
        ("go test ./...", "Tests"),
        ("npm test", "Tests"),
        ("npm run test:unit -- --run", "Tests"),
        ("pnpm --filter web run build", "Build"),
        ("yarn lint", "Lint"),
        ("npx tsc --noEmit", "Build"),
        ("npx vitest run src/a.test.ts", "Tests [\"src/a.test.ts\"]"),
        ("./gradlew :app:test", "Tests"),
        ("mvn -q package -DskipTests", "Build"),
        ("make test", "Tests"),
        ("make", "Build"),
        ("docker compose exec -T web pytest", "Tests"),
        ("docker exec -it app npm test", "Tests"),
        ("gh pr checks 12 --fail-fast", "Ci"),
        ("gh pr merge 12 --squash", "merge"),
        ("ruff check .", "Lint"),
        ("bin/test", "Tests"),
    ] {
        assert_eq!(shown(command), [expected], "{command}");
    }
}

#[test]
fn what_is_no_check_is_none() {
    for command in [
        "",
        "ls tests",
        "cat test.py",
        "pytest --version",
        "pytest --collect-only",
        "echo pytest",
        "grep -rn pytest .",
        "pip install pytest",
        "git commit -m 'make test pass'",
        "python reproduce.py",
        "npm install",
        "npm run dev",
        "git merge main",
        "git merge origin/main",
        "cat > /tmp/x <<'EOF'\npytest\nEOF",
        "npm run start",
    ] {
        assert_eq!(shown(command), [""; 0], "{command}");
    }
}

#[test]
fn codes_tell_only_where_they_are_those_of_the_check() {
    for (command, expected) in [
        ("pytest | tail -5", "Tests ?"),
        ("set -o pipefail; pytest | tail -5", "Tests"),
        ("pytest; echo done", "Tests ?"),
        ("pytest || true", "Tests ?"),
        ("pytest && echo ok", "Tests"),
        ("cd a; pytest", "Tests"),
        ("test -f x || pytest", "Tests ?"),
        ("pytest > result.txt 2>&1; cat result.txt", "Tests ?"),
        ("pytest | tee result.txt", "Tests ?"),
    ] {
        assert_eq!(shown(command), [expected], "{command}");
    }
}

#[test]
fn changes_are_told_from_looking() {
    for (command, expected) in [
        ("sed -i s/a/b/ x.py && pytest", &["change", "Tests"][..]),
        ("pytest && git checkout -- src/a.py", &["Tests", "change"]),
        ("cat > src/a.py <<'EOF'\nimport pytest\nEOF\npytest", &["change", "Tests"]),
        ("pytest > /tmp/out.txt 2>&1", &["Tests"]),
        ("pytest &> test.log", &["Tests"]),
        ("echo x >> notes.md", &[]),
        ("sed -n 1,5p x.py", &[]),
        ("git checkout -b topic", &[]),
        ("git checkout main", &[]),
        ("git checkout -q feature/login", &[]),
        ("git checkout v1.2 && pytest", &["Tests"]),
        ("git checkout -", &[]),
        ("git checkout .", &["change"]),
        ("git checkout src/a.py", &["change"]),
        ("git checkout HEAD~1 Makefile", &["change"]),
        ("git checkout --theirs Makefile", &["change"]),
        ("git reset HEAD~1", &[]),
        ("git reset --hard origin/main", &["change"]),
        ("git restore --staged a.py", &[]),
        ("git restore a.py", &["change"]),
        ("git stash list", &[]),
        ("rm -rf /tmp/x", &[]),
        ("rm src/a.py", &["change"]),
        ("git stash", &["change"]),
        ("pytest > result.txt && echo a > a.py", &["Tests", "change"]),
        ("pytest; echo a | tee a.py", &["Tests ?", "change"]),
        ("echo $((1<<4)) > a.py\npytest", &["change", "Tests"]),
        ("cat > a.py <<\\EOF\nrm b.py\nEOF\npytest", &["change", "Tests"]),
        ("grep x <<< \"$y\"\npytest", &["Tests"]),
        ("cat<<<x;pytest", &["Tests"]),
    ] {
        assert_eq!(shown(command), expected, "{command}");
    }
}

#[test]
fn nothing_panics() {
    for command in [
        "'",
        "\\",
        "<<",
        "<<EOF\n",
        "docker exec",
        "docker compose exec",
        "docker compose -f",
        "docker exec -u",
        "<<<",
        "$((1<<",
        "timeout",
        "a >",
        "&&&&||;|",
        "é<<é\né",
        "npm run",
        "$(pytest",
        "cargo",
    ] {
        parse_steps(command);
    }
    parse_steps(&"a && ".repeat(5000));
}
