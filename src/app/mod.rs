//! The programs: settings and subcommands, which put the rooms together.

mod accounts;
mod check;
mod database;
mod demonstration;
mod first_token;
mod logging;
mod memory;
mod metrics;
mod models;
mod queue;
mod reindex;
mod reload;
pub mod remembered;
mod serve;
mod settings;
mod transfer;

use std::process::ExitCode;

use serve::Then;
use settings::{Cli, Command};

/// Reads the command line and runs what it asks for. Answers 0, or 1 with a message on stderr; wrong usage ends with 2.
pub fn main() -> ExitCode {
    let cli = Cli::read(std::env::args_os().collect()).unwrap_or_else(|error| error.exit());
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: no runtime: {error}");
            return ExitCode::FAILURE;
        }
    };
    let done = runtime.block_on(async {
        match cli.command {
            None => serve::run(cli.serve, Then::Serve).await,
            Some(Command::Serve(settings)) => serve::run(settings, Then::Serve).await,
            Some(Command::Account { command }) => accounts::account(command).await,
            Some(Command::Token { command }) => accounts::token(command).await,
            Some(Command::Migrate { database }) => check::migrate(&database).await,
            Some(Command::CheckConfig(settings)) => check::config(&settings).await,
            Some(Command::Queue { command }) => queue::run(command).await,
            Some(Command::Import { file, command }) => transfer::import(&file, &command).await,
            Some(Command::Export { file, settings }) => transfer::export(&file, &settings).await,
            Some(Command::Reindex { verify, database, search }) => reindex::run(verify, &database, &search).await,
            Some(Command::Demo { url: Some(url), token: Some(token), serve }) => {
                demonstration::remote(&url, &token, &serve).await
            }
            Some(Command::Demo { serve, .. }) => serve::run(serve, Then::Demonstrate).await,
        }
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", told_once(&error));
            ExitCode::FAILURE
        }
    }
}

/// An error with its causes. Many tell their cause themselves: what was said already is not said again.
fn told_once(error: &anyhow::Error) -> String {
    let mut told = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !told.contains(&cause) {
            told.push_str(": ");
            told.push_str(&cause);
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_told_once() {
        let plain = anyhow::anyhow!("refused").context("cannot connect");
        assert_eq!(told_once(&plain), "cannot connect: refused");
        assert_eq!(
            told_once(&plain.context("the answer was: cannot connect: refused")),
            "the answer was: cannot connect: refused"
        );
    }
}
