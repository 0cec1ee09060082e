#!/usr/bin/env node
// Starts the program of the package for this platform. Nothing is downloaded, and nothing is run at
// install time: npm has put the right package beside this one, as an optional dependency.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");

const source = "cargo install --git https://github.com/selftest-dev/selftest";
const platform = `${process.platform}-${process.arch}`;

function program() {
  if (!Object.hasOwn(require("./platforms.json"), platform)) {
    throw new Error(`there is no build for ${platform}\nhint: ${source}`);
  }
  try {
    return require.resolve(`agent-selftest-${platform}/bin/selftest`);
  } catch {
    throw new Error(
      `the package agent-selftest-${platform} is not installed\n` +
        `hint: install again without --omit=optional; on musl (Alpine): ${source}`,
    );
  }
}

let child;
try {
  child = spawn(program(), process.argv.slice(2), { stdio: "inherit" });
} catch (error) {
  console.error(`error: ${error.message}`);
  process.exit(5);
}
// A terminal sends its signals to both; others send them here only.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => child.kill(signal));
}
child.on("error", (error) => {
  console.error(`error: cannot start selftest: ${error.message}`);
  process.exitCode = 5;
});
child.on("exit", (code, signal) => {
  process.exitCode = signal ? 128 + (constants.signals[signal] ?? 0) : code;
});
