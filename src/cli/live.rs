//! The loop live in the terminal: a status block redrawn in place, and above it one line for each thing that happened.
//! Without a terminal, a plain line when something changed. What is shown is `live_view`'s; this only prints, and
//! whatever happens to the terminal never reaches the loop.
//!
//! The block and the log must not share a terminal: where this draws on stdout, the log belongs into a file or is off.

use std::io::{self, Stdout, Write};

pub use super::live_view::render;
use super::live_view::{self, BOOTING, LEAVING, NOT_READY, READY, ROOM};
use super::terminal;
use crate::{
    ports::{Journal, Tick},
    store::decision_log::{Headline, Record},
};

/// Columns of a terminal that does not tell.
const WIDTH_DEFAULT: usize = 80;

/// Where and how to print.
#[derive(Clone, Copy, Debug)]
pub enum Screen {
    /// A terminal that can be redrawn.
    Terminal {
        /// Asks for its present width in columns.
        width: fn() -> usize,
        /// Whether colours are wanted.
        colour: bool,
    },
    /// A file or a pipe.
    Plain,
}

/// A journal for a person who watches.
#[derive(Debug)]
pub struct Live<W> {
    out: W,
    screen: Screen,
    last: Option<Headline>,
    /// Columns of each line of the block that is on the screen.
    block: Vec<usize>,
    /// Nobody reads any more.
    closed: bool,
}

impl Live<Stdout> {
    /// On stdout: redrawn where it is a terminal, in colour unless `NO_COLOR` is set.
    pub fn stdout() -> Self {
        let (redraws, colour) = (terminal::can_redraw(&io::stdout()), terminal::wants_colour(&io::stdout()));
        let screen = if redraws { Screen::Terminal { width: stdout_width, colour } } else { Screen::Plain };
        Self::new(io::stdout(), screen)
    }
}

impl<W: Write> Live<W> {
    /// To any writer.
    pub fn new(out: W, screen: Screen) -> Self {
        Self { out, screen, last: None, block: Vec::new(), closed: false }
    }

    fn show(&mut self, tick: &Tick<'_>) -> String {
        let record = Record::of(tick);
        let headline = record.headline();
        let changed = record.acted() || self.last.as_ref() != Some(&headline);
        self.last = Some(headline);
        match self.screen {
            Screen::Plain if changed => live_view::plain(&record, tick.situation) + "\n",
            Screen::Plain => String::new(),
            Screen::Terminal { width, colour } => {
                let width = width();
                let news = if changed { live_view::news(&record, width) } else { Vec::new() };
                self.redraw(&news, &render(tick, width), width, colour)
            }
        }
    }

    /// Everything in one write, each line overwritten and then cleared to its end: nothing flickers.
    fn redraw(&mut self, news: &[String], block: &[String], width: usize, colour: bool) -> String {
        let up = rows(&self.block, width);
        let mut text = if up > 0 { format!("\x1b[{up}A\r") } else { "\r".into() };
        for line in news.iter().chain(block) {
            text += &if colour { paint(line) } else { line.clone() };
            text += "\x1b[K\n";
        }
        text += "\x1b[J";
        self.block = block.iter().map(|line| line.chars().count()).collect();
        text
    }
}

impl<W: Write> Journal for Live<W> {
    fn tick(&mut self, tick: &Tick<'_>) {
        if self.closed {
            return;
        }
        let text = self.show(tick);
        let written = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
        self.closed = written.is_err();
    }
}

fn stdout_width() -> usize {
    let columns = rustix::termios::tcgetwinsize(io::stdout()).map_or(0, |size| usize::from(size.ws_col));
    if columns == 0 { WIDTH_DEFAULT } else { columns }
}

/// Rows that the block takes on a terminal which may have become narrower since: long lines are wrapped then.
fn rows(block: &[usize], width: usize) -> usize {
    block.iter().map(|columns| columns.div_ceil(width.max(1)).max(1)).sum()
}

/// Colours the bar's cells and the words that name a decision.
fn paint(line: &str) -> String {
    let mut text = String::with_capacity(line.len() * 2);
    let mut colour = "";
    for c in line.chars() {
        let wanted = match c {
            READY => "\x1b[32m",
            BOOTING => "\x1b[33m",
            LEAVING => "\x1b[35m",
            NOT_READY => "\x1b[31m",
            ROOM => "\x1b[2m",
            _ => "",
        };
        if wanted != colour {
            text += if colour.is_empty() { "" } else { "\x1b[0m" };
            text += wanted;
            colour = wanted;
        }
        text.push(c);
    }
    text + if colour.is_empty() { "" } else { "\x1b[0m" }
}
