//! The binary: everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    yarn_autoscaler::cli::main()
}
