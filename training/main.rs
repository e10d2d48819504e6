//! The trainer.
fn main() {}
