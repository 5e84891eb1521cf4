//! Exit codes: an interface that scripts and systemd units build on. A code never changes its meaning.

use std::{io::Write, process::ExitCode};

use super::connect::Failure;

/// All went well.
pub const OK: u8 = 0;

/// A bug of this program; with `plan --detailed-exitcode`, where 2 has another meaning, also what cannot be used.
pub const BUG: u8 = 1;

/// The command line, or a file that it names, cannot be used: a wrong flag, a file that cannot be read.
pub const USAGE: u8 = 2;

/// A policy or a scenario is invalid (or, with `--deny-warnings`, has warnings).
pub const INVALID_POLICY: u8 = 3;

/// What a scenario or a comparison expects did not come true.
pub const EXPECTATION_FAILED: u8 = 4;

/// Another controller holds the state.
pub const STATE_HELD: u8 = 5;

/// The cluster or the provider cannot be reached.
pub const UNREACHABLE: u8 = 6;

/// The process's end with one of these codes.
pub fn code(code: u8) -> ExitCode {
    ExitCode::from(code)
}

/// The end of a command: 0, or the failure's code after its words on stderr.
pub fn of(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => code(OK),
        Err(Failure { code: failed, error }) => {
            // A reader that went away changes nothing about the end.
            let _ = writeln!(std::io::stderr(), "error: {error:#}");
            code(failed)
        }
    }
}
