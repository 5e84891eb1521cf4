//! The report page on disk: what goes into it beside the figures (the command, the checksums of the files that it was
//! made of), and where it lies.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;
use sha2::{Digest, Sha256};

use super::connect::Failure;
use crate::{
    report::{Figures, page},
    sim::outcome::Outcome,
};

/// One run that is drawn.
#[derive(Clone, Copy, Debug)]
pub struct Drawn<'a> {
    /// What happened.
    pub outcome: &'a Outcome,
    /// What it comes to.
    pub figures: &'a Figures,
}

/// What a page says of where it comes from.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// What the scenario shows.
    pub description: String,
    /// The command that makes the page again.
    pub command: String,
    /// The files that went in.
    pub files: Vec<PathBuf>,
}

/// Writes the page; returns its address for a browser.
///
/// # Errors
/// It cannot be written, or a file that went in cannot be read any more.
pub fn write(file: &Path, drawn: &[Drawn<'_>], origin: &Origin) -> Result<String, Failure> {
    let runs: Vec<_> = drawn.iter().map(|run| page::Run { outcome: run.outcome, figures: run.figures }).collect();
    let inputs = origin.files.iter().map(|file| checksum(file)).collect::<Result<Vec<_>, _>>()?;
    let page =
        page::Page { runs: &runs, description: &origin.description, command: Some(&origin.command), inputs: &inputs };
    let text = page::html(&page);
    fs::write(file, text).with_context(|| format!("the report {} cannot be written", file.display()))?;
    let path = fs::canonicalize(file).unwrap_or_else(|_| file.to_path_buf());
    Ok(address(&path))
}

/// A file's name and its SHA-256.
fn checksum(file: &Path) -> Result<(String, String), Failure> {
    let bytes = fs::read(file).with_context(|| format!("{} cannot be read", file.display()))?;
    let sum = Sha256::digest(&bytes);
    let hex: String = sum.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok((file.display().to_string(), hex))
}

/// `file://` with everything escaped that a terminal or a browser would stumble over.
fn address(path: &Path) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/-_.~".contains(c);
    let mut text = "file://".to_owned();
    for c in path.display().to_string().chars() {
        if plain(c) {
            text.push(c);
        } else {
            let mut bytes = [0; 4];
            c.encode_utf8(&mut bytes).bytes().for_each(|byte| text += &format!("%{byte:02X}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_can_be_clicked() {
        assert_eq!(address(Path::new("/tmp/a b/ü.html")), "file:///tmp/a%20b/%C3%BC.html");
    }
}
