//! The command line: one file a command; `connect` and `journals` put the adapters together.

pub mod connect;
pub mod demo;
pub mod exit;
pub mod explain;
pub mod google;
pub mod journals;
pub mod live;
mod live_view;
pub mod place;
pub mod plan;
pub mod plan_view;
pub mod policy_file;
mod policy_source;
pub mod provider;
pub mod publish;
pub mod record;
pub mod run;
pub mod schema;
mod sim_faults;
mod sim_input;
mod sim_report;
mod sim_runs;
pub mod simulate;
pub mod site;
pub mod standing;
mod state;
mod terminal;
pub mod validate;
pub mod wall_clock;

use std::{panic::AssertUnwindSafe, process::ExitCode};

use clap::{Parser, Subcommand, ValueEnum};

/// An autoscaler for shared YARN clusters with GPUs.
#[derive(Debug, Parser)]
#[command(name = "yarn-autoscaler", version, about)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// How log lines are written, to stderr; RUST_LOG says which (default: info)
    #[arg(long, global = true, value_enum, env = "YARN_AUTOSCALER_LOG_FORMAT", default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// A JSON object a line.
    Json,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// The daemon: watch YARN and resize the cluster by the policy
    Run(Box<run::Args>),
    /// Look once at the cluster: what would be done now, and why; changes nothing
    Plan(Box<plan::Args>),
    /// Record the cluster's load as a workload CSV, to be replayed in the simulator; changes nothing
    Record(Box<record::Args>),
    /// Explain decisions from the decision log: time, pending, workers, decision, reason
    Explain(explain::Args),
    /// The conference scene on an embedded cluster, live and sped up; ends with a report
    Demo(demo::Args),
    /// Try policies on a scenario or a trace: the daemon's own loop over a simulated cluster
    Simulate(Box<simulate::Args>),
    /// Check policy and scenario files: every error with line, column and a caret, and warnings about what will hurt
    Validate(validate::Args),
    /// Put files where clusters fetch them (init actions, policies, this program): a bucket or a folder, with a manifest
    Publish(Box<publish::Args>),
    /// Print the JSON Schema of policy files, or of scenario files, for editors
    Schema(schema::Args),
}

/// Reads the command line and runs the command. A wrong command line ends with code 2 and clap's words.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    // The live display redraws the terminal; a log in between would tear it. The display tells the same.
    let is_live = match &cli.command {
        Command::Run(args) => args.journals.live,
        Command::Demo(_) => true,
        _ => false,
    };
    let is_torn = is_live && terminal::shares_a_screen();
    run::start_log(cli.log_format == LogFormat::Json, is_torn);
    // The panic's own words are on stderr already.
    std::panic::catch_unwind(AssertUnwindSafe(|| execute(cli.command))).unwrap_or_else(|_| exit::code(exit::BUG))
}

fn execute(command: Command) -> ExitCode {
    match command {
        Command::Run(args) => run::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Record(args) => record::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Simulate(args) => simulate::run(&args),
        Command::Validate(args) => validate::run(&args),
        Command::Publish(args) => publish::run(&args),
        Command::Schema(args) => schema::run(&args),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_contradicts_itself_nowhere() {
        super::Cli::command().debug_assert();
    }
}
