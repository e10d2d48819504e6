//! The service and its subcommands.

use std::process::ExitCode;

fn main() -> ExitCode {
    vat_classification::app::main()
}
