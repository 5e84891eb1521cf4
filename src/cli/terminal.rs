//! What the terminal and its user want: colour, redrawing. The one place that reads the environment by itself; all
//! other settings come through clap.

use std::{env, io::IsTerminal};

/// Whether to colour what goes to `stream`: a terminal, and no `NO_COLOR` (<https://no-color.org>).
pub fn wants_colour(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && is_unset("NO_COLOR")
}

/// Whether `stream` is a terminal that can be redrawn.
pub fn can_redraw(stream: &impl IsTerminal) -> bool {
    #[expect(clippy::disallowed_methods, reason = "TERM is the terminal's, not a setting of ours")]
    let is_dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
    stream.is_terminal() && !is_dumb
}

/// Whether stdout and stderr are the same kind of thing, a terminal: what one draws, the other tears.
pub fn shares_a_screen() -> bool {
    std::io::stdout().is_terminal() && std::io::stderr().is_terminal()
}

/// How wide stdout is, in columns, where it is a terminal.
pub fn columns() -> Option<u16> {
    let stdout = std::io::stdout();
    let columns = rustix::termios::tcgetwinsize(&stdout).ok().map(|size| size.ws_col).filter(|columns| *columns > 0);
    if stdout.is_terminal() { columns.or(Some(80)) } else { None }
}

/// Writes to stdout. A reader that has seen enough (`| head`) is no error; a disk that is full is.
///
/// # Errors
/// It cannot be written, for another reason than that nobody reads it.
pub fn tell(text: &str) -> std::io::Result<()> {
    use std::io::Write as _;
    let mut out = std::io::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

fn is_unset(variable: &str) -> bool {
    #[expect(clippy::disallowed_methods, reason = "NO_COLOR is everybody's, not a setting of ours")]
    let value = env::var_os(variable);
    value.is_none_or(|value| value.is_empty())
}
