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
        CommandStep::Change | CommandStep::Delete(_) => "change".to_owned(),
        CommandStep::Write(_) => "write".to_owned(),
        CommandStep::Merge => "merge".to_owned(),
    };
    parse_steps(command).into_iter().map(step).filter(|step| step != "write").collect()
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
        ("./tests/runtests.py admin", "Tests [\"./tests/runtests.py\"]"),
        ("cargo nextest run --workspace", "Tests"),
        ("cargo test --no-run", "Build"),
        ("coverage run -m pytest && coverage report", "Tests"),
        ("php artisan test", "Tests"),
        ("npx nx run-many -t test", "Tests"),
        ("npx nx run app:test", "Tests"),
        ("turbo run test --filter=web", "Tests"),
        ("hatch test", "Tests"),
        ("forge test -vvv", "Tests"),
        ("ng test --watch=false", "Tests"),
        ("gotestsum ./...", "Tests"),
        ("crystal spec", "Tests"),
        ("julia --project -e 'using Pkg; Pkg.test()'", "Tests"),
        ("Rscript -e 'devtools::test()'", "Tests"),
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
        ("bin/test", "Tests [\"bin/test\"]"),
        ("bash ./run_tests.sh", "Tests [\"./run_tests.sh\"]"),
    ] {
        assert_eq!(shown(command), [expected], "{command}");
    }
}

#[test]
fn a_part_of_the_tests_is_told_from_the_whole_suite() {
    let is_part = |command: &str| {
        let steps = parse_steps(command);
        let checks = steps.iter().filter_map(|step| match step {
            CommandStep::Check(check) => Some(check.is_part),
            _ => None,
        });
        checks.collect::<Vec<_>>()
    };
    for whole in [
        "pytest",
        "cd /w && python -m pytest -q --tb=short -n 4 tests/",
        "pytest -x -p no:warnings . 2>&1 | tail -3",
        "python -m unittest",
        "python -m unittest discover -s tests",
        "python manage.py test",
        "cargo test --workspace --all-features -- --test-threads=1",
        "cargo nextest run",
        "go test -race ./...",
        "npm test",
        "npm run test -- --run",
        "npx vitest run",
        "npx jest --coverage",
        "./gradlew clean test --info",
        "mvn -q -B test",
        "dotnet test My.sln -c Release",
        "bundle exec rspec",
        "vendor/bin/phpunit",
        "ctest --test-dir build -j 8 --output-on-failure",
        "bats tests/",
        "make test",
        "tox",
        "./run_tests.sh",
    ] {
        assert_eq!(is_part(whole), [false], "{whole}");
    }
    for part in [
        "pytest tests/test_a.py",
        "pytest -k swap",
        "pytest tests/unit",
        "pytest --lf",
        "python -m pytest -m 'not slow'",
        "python -m unittest tests.test_a",
        "python tests/runtests.py migrations2",
        "python manage.py test app",
        "cargo test parser",
        "cargo test -p a",
        "cargo nextest run -E 'test(a)'",
        "go test ./pkg",
        "go test ./... -run TestA",
        "npm test -- login",
        "npm run test:unit",
        "npx jest src/a.test.js",
        "npx vitest run -t login",
        "./gradlew :app:test",
        "./gradlew test --tests FooTest",
        "mvn test -Dtest=FooTest",
        "mvn -pl core test",
        "dotnet test --filter Name~Foo",
        "bundle exec rspec spec/a_spec.rb:12",
        "vendor/bin/phpunit --filter testFoo",
        "ctest -R foo",
        "make test-unit",
    ] {
        assert_eq!(is_part(part), [true], "{part}");
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
