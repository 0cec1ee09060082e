# The front door: continuous integration and scripts/test call these recipes. They expect their
# programs on PATH; `./scripts/test RECIPE` installs what is missing and runs the recipe.

set shell := ["bash", "-euo", "pipefail", "-c"]
set positional-arguments := true

[private]
default:
    @just --list --unsorted

# Everything that must hold before a change is merged
[group('check')]
ci: lint docs test

# Format, spelling, scripts, dependencies and clippy
[group('check')]
lint: format-check spelling shellcheck workflows dependencies clippy fuzz-check

# Tests; arguments go to the runner: `just test -E 'test(/grade/)'`
[group('check')]
test *arguments:
    ./scripts/run-tests "$@"

# API documentation without warnings, and its examples; `<name>` in the help of an option is no HTML
[group('check')]
docs:
    RUSTDOCFLAGS="-D warnings -A rustdoc::invalid-html-tags" cargo doc --locked --workspace --no-deps
    cargo test --locked --workspace --doc

[group('lint')]
format-check:
    cargo fmt --all --check

[group('lint')]
spelling:
    typos

[group('lint')]
shellcheck:
    shellcheck --external-sources .ci/run examples/*.sh packaging/{formula,make-wheel} scripts/{action-install,postgres,prepare,red-team,run-tests,selftest,test,test-prepare,tools}

# The workflows of this repository and the one that `selftest init` writes
[group('lint')]
workflows:
    actionlint .github/workflows/*.yml src/commands/init/workflow.yml

# Licences, sources and banned crates; advisories where their database can be fetched
[group('lint')]
dependencies:
    cargo deny --workspace --locked --log-level error check bans licenses sources
    if cargo deny --workspace --locked fetch db > /dev/null 2>&1; then just advisories; \
    else echo "warning: the database of advisories cannot be reached" >&2; fi

# Known vulnerabilities of dependencies; needs a network
[group('lint')]
advisories:
    cargo deny --workspace --locked --log-level error check advisories

[group('lint')]
clippy:
    cargo clippy --locked --workspace --all-targets -- -D warnings
    cargo clippy --locked --workspace --no-default-features -- -D warnings

# Without the fuzzer's own C++ part, which needs its own compiler run
[group('lint')]
fuzz-check:
    cargo check --manifest-path fuzz/Cargo.toml --no-default-features

# The oldest compiler that Cargo.toml promises
[group('check')]
msrv:
    version=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml); \
    rustup toolchain install --profile minimal --no-self-update "$version"; \
    cargo "+$version" check --locked --workspace --all-targets --no-default-features --features postgres

# Each fuzz target for some seconds, or only the one that is named
[group('check')]
fuzz seconds='60' target='':
    cargo fuzz --version > /dev/null 2>&1 || cargo install --locked cargo-fuzz
    for target in ${2:-$(cargo +nightly fuzz list)}; do \
        cargo +nightly fuzz run "$target" -- -max_total_time={{ seconds }}; \
    done

# Runs under simulated faults of disk, power, model and process, `count` seeds from `from` on
[group('check')]
simulate count='1000' from='0':
    SELFTEST_SIMULATE={{ count }} SELFTEST_SIMULATE_FROM={{ from }} \
        cargo test --locked --profile quick --package selftest-reports --lib -- --nocapture simulation

# The same for the database and the queue, under kills
[group('check')]
simulate-store count='1000' from='0':
    SELFTEST_SIMULATE={{ count }} SELFTEST_SIMULATE_FROM={{ from }} \
        cargo test --locked --package selftest-service --lib -- --nocapture simulation

# Faults in what decides and protects, one at a time: each must fail a test. Hours for all of them;
# `just mutants --package selftest-text` for some
[group('check')]
mutants *arguments:
    cargo mutants --version > /dev/null 2>&1 || cargo install --locked cargo-mutants
    env -u CARGO_TARGET_DIR cargo mutants --jobs 1 "$@"

# Probes of the sandbox as root and as a user: they try to get out, and fail
[group('check')]
red-team *arguments:
    ./scripts/red-team "$@"

# scripts/prepare in real Debian roots; needs root and debootstrap
[group('check')]
test-prepare *cases:
    ./scripts/test-prepare "$@"

[group('develop')]
build *arguments:
    cargo build --locked --workspace "$@"

[group('develop')]
format:
    cargo fmt --all

# Benchmarks, all or by name; each fails above its limits
[group('develop')]
bench name='*':
    cargo bench --locked --workspace --bench '{{ name }}'

# The same, and writes the numbers into the table of benches/README.md
[group('develop')]
bench-table name='*':
    SELFTEST_BENCH_WRITE=1 cargo bench --locked --workspace --bench '{{ name }}'

# Snapshots that differ, one after the other
[group('develop')]
review-snapshots:
    INSTA_UPDATE=new just test || cargo insta review

# The program, built and run: `just selftest --scenarios=2`
[group('develop')]
selftest *arguments:
    ./scripts/selftest "$@"

# New versions of the programs that these recipes call; needs uv
[group('develop')]
tools:
    { echo '# Made by `just tools` from tools.in.'; \
      uv pip compile --upgrade --universal --generate-hashes --no-header --no-annotate scripts/tools.in; \
    } > scripts/tools.txt.new && mv scripts/tools.txt.new scripts/tools.txt
