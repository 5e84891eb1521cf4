//! `schema`: prints the JSON Schema of policy files.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use super::exit;
use crate::policy;

/// Arguments of `schema`: none.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Prints the schema to standard output. Ends with 0, or with 2 where standard output cannot be written to.
pub fn run(_: &Args) -> ExitCode {
    match writeln!(io::stdout(), "{:#}", policy::schema().as_value()) {
        Ok(()) => exit::code(exit::OK),
        Err(_) => exit::code(exit::USAGE),
    }
}
