//! The pages of `selftest serve`: as HTML, and in a real headless Chromium.

// What the tests stand on.
mod chrome;
mod demo;
mod improvement;
mod runs;
mod site;
mod skills;

// The page that a run writes for CI.
mod ci_report;

// The pages.
mod every_page;
mod html;
mod labels;
mod reflections;
mod sessions;
