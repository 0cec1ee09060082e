//! The integration tests: the real binary in throw-away projects. One file per feature, one
//! test program, so that linking is paid for once.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should panic where it stands")]
#![expect(clippy::float_cmp, reason = "reports hold the very numbers that were computed")]

// What the tests stand on.
mod clock;
mod databases;
mod github;
mod model_server;
mod report;
mod require;
mod run;
mod task_server;
mod workspace;

// A run, from its start to its reports.
mod again;
mod baseline;
mod calibration;
mod cassette;
mod changed;
mod checks;
mod checks_doc;
mod ci;
mod ci_reports;
mod comment;
mod doc_blocks;
mod evals;
mod experiment;
#[cfg(unix)]
mod first_suite;
mod gate;
#[cfg(unix)]
mod gate_doc;
mod generation;
mod interrupt;
mod labelled_runs;
mod limits;
mod merge;
mod narrowing;
mod otlp;
#[cfg(unix)]
mod pooled_gate;
mod reply_flow;
#[cfg(unix)]
mod resume;
mod resumed_commands;
mod selftest_run;
mod statistics;
mod suite;
mod suite_check;
mod task_types;
mod terminal;
mod watch;

// Models.
mod broken_judge;
#[cfg(feature = "embedded")]
mod embedded;
mod envelope;
mod first_token;
mod judge;
mod judge_prompt;
mod judge_samples;
mod ollama;
mod openai;
mod outage;
mod panel;
mod transport;

// Systems under test.
mod sut;

// Recorded sessions, and reflections.
mod db;
mod grade;
mod improve;
mod jobs;
mod reflect;
mod signals;
mod skill_test;
mod skills;

// Servers.
mod browser;
mod mcp;
mod server;

// What goes wrong.
mod bad_input;
mod bad_server;
mod blame;
#[cfg(unix)]
mod faults;
#[cfg(unix)]
mod foreign_files;
mod hostile;
mod hostile_output;

// Everything around it.
#[cfg(unix)]
mod action;
mod architecture;
mod cli;
mod init;
mod packages;
#[cfg(unix)]
mod prepare;
mod readme;
mod real_sessions;
mod recipes;
mod redaction;
