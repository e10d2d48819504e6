//! The console in a real browser, on the real service: what a reviewer sees, presses and loses nothing of.
//!
//! Chromium and its driver are needed, and npm for the checks of accessibility; `.ci/run` installs them. Nothing is
//! skipped: a test that lacks one says so and fails.

#[path = "../support/mod.rs"]
mod support;

mod browser;
mod desk;
mod docs;
mod late;
mod pages;
mod review;
mod session;
mod tasks;
