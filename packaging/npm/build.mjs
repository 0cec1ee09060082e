// Makes the npm packages: one for each platform that has a binary, and the one that people install,
// which has them all as optional dependencies. Needs nothing but node and npm.
//   node packaging/npm/build.mjs FOLDER PLATFORM=BINARY…     such as linux-x64=target/dist/selftest

import { execFileSync } from "node:child_process";
import { chmodSync, copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const root = resolve(here, "../..");
const json = (path) => JSON.parse(readFileSync(path, "utf8"));

function fail(message) {
  console.error(`error: ${message}`);
  process.exit(2);
}

/** The version of the workspace: the only place where it is written. */
function version() {
  const manifest = readFileSync(join(root, "Cargo.toml"), "utf8");
  const found = /^\[workspace\.package\]\n(?:[^[].*\n)*?version = "([^"]+)"/m.exec(manifest);
  return found?.[1] ?? fail("Cargo.toml has no [workspace.package] version");
}

/** Writes the folder of a package and packs it. */
function pack(out, manifest, files) {
  const folder = join(out, manifest.name);
  rmSync(folder, { recursive: true, force: true });
  for (const [to, from] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, to)), { recursive: true });
    copyFileSync(from, join(folder, to));
    if (to.startsWith("bin/") || to === "launcher.js") chmodSync(join(folder, to), 0o755);
  }
  for (const licence of ["LICENSE-MIT", "LICENSE-APACHE"]) {
    copyFileSync(join(root, licence), join(folder, licence));
  }
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  const words = ["pack", "--silent", "--ignore-scripts", "--pack-destination", out, folder];
  console.log(join(out, execFileSync("npm", words, { encoding: "utf8" }).trim()));
}

const [out, ...binaries] = process.argv.slice(2);
if (!out || binaries.length === 0) fail("usage: build.mjs FOLDER PLATFORM=BINARY…");
mkdirSync(out, { recursive: true });
const folder = resolve(out);
const main = json(join(here, "package.json"));
const platforms = json(join(here, "platforms.json"));
const shared = { version: version(), license: main.license, repository: main.repository };

for (const word of binaries) {
  const [platform, binary] = word.split(/=(.*)/s);
  if (!Object.hasOwn(platforms, platform)) {
    fail(`${platform}: expected one of ${Object.keys(platforms).join(", ")}`);
  }
  const name = `${main.name}-${platform}`;
  const description = `The program of ${main.name} for ${platform}`;
  const manifest = { name, description, ...shared, ...platforms[platform], files: ["bin"] };
  pack(folder, manifest, { "bin/selftest": resolve(binary) });
}
const names = Object.keys(platforms).map((platform) => `${main.name}-${platform}`);
const optionalDependencies = Object.fromEntries(names.map((name) => [name, shared.version]));
pack(folder, { ...main, ...shared, optionalDependencies }, {
  "launcher.js": join(here, "launcher.js"),
  "platforms.json": join(here, "platforms.json"),
  "README.md": join(root, "README.md"),
});
