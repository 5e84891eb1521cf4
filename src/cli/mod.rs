//! The command line: one file a command.

pub mod exit;
pub mod schema;
pub mod validate;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// An autoscaler for shared YARN clusters with GPUs.
#[derive(Debug, Parser)]
#[command(name = "yarn-autoscaler", version, about)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Check policy files: every error with line, column and a caret, and warnings about what will hurt.
    Validate(validate::Args),
    /// Print the JSON Schema of policy files, for editors.
    Schema(schema::Args),
}

/// Reads the command line and runs the command. A wrong command line ends with code 2 and clap's words.
pub fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Validate(args) => validate::run(&args),
        Command::Schema(args) => schema::run(&args),
    }
}
pub mod explain;
pub mod live;
mod live_view;
pub mod policy_file;
