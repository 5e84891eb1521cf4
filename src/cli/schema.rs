//! `schema`: prints the JSON Schema of policy files, or of scenario files.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use super::exit;
use crate::{policy, sim::scenario};

/// Arguments of `schema`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The schema of scenario files
    #[arg(long)]
    pub scenario: bool,
}

/// Prints the schema to standard output. Ends with 0, or with 2 where standard output cannot be written to.
pub fn run(args: &Args) -> ExitCode {
    let schema = if args.scenario { scenario::schema() } else { policy::schema() };
    match writeln!(io::stdout(), "{:#}", schema.as_value()) {
        Ok(()) => exit::code(exit::OK),
        Err(_) => exit::code(exit::USAGE),
    }
}
