//! The rules of the house that a machine can check: layers, lengths, opening lines, forbidden words. Each finding
//! says where, and what to do.

use std::{fs, path::Path};

/// Which top-level modules each one may name (design §4), and which crates and parts of std it never does.
/// A new folder under `src/` gets a line here.
const LAYERS: &[(&str, &[&str], &[&str])] = &[
    ("policy", &["policy", "model"], NO_WORLD),
    ("model", &["policy", "model"], NO_WORLD),
    ("decide", &["policy", "model", "decide"], NO_WORLD),
    ("ports", &["policy", "model", "ports"], NO_WORLD),
    ("controller", &["policy", "model", "decide", "ports", "controller"], NO_WORLD),
    ("process_group", &["process_group"], &[]),
    ("yarn", &["policy", "model", "ports", "process_group", "yarn"], &[]),
    ("google", &["ports", "google"], &[]),
    ("cloud", &["policy", "model", "ports", "process_group", "google", "cloud"], &[]),
    ("store", &["policy", "model", "ports", "google", "store"], &[]),
    ("sim", &["policy", "model", "decide", "ports", "controller", "sim"], NO_WORLD),
    ("cli", ALL, &[]),
    ("http", ALL, &[]),
    ("report", ALL, &[]),
    ("main", ALL, &[]),
    ("lib", ALL, &[]),
];

const ALL: &[&str] = &[
    "policy",
    "model",
    "decide",
    "ports",
    "controller",
    "process_group",
    "google",
    "yarn",
    "cloud",
    "store",
    "sim",
    "cli",
    "http",
    "report",
];

/// No I/O, no network, no runtime, no clock.
const NO_WORLD: &[&str] =
    &["tokio", "reqwest", "std::fs", "std::net", "std::process", "std::env", "Utc::now", "Instant::now"];

/// Longest file and longest function, in lines.
const FILE_MAX: usize = 500;
const FUNCTION_MAX: usize = 70;

/// Tables that rustfmt would tear apart, and why they are tables.
const TABLES: &[(&str, &str)] = &[("src/model/reason.rs", "one sentence a reason, side by side")];

/// Where code may panic on a broken promise of its own, and why.
const MAY_PANIC: &[(&str, &str)] = &[];

/// Names that say nothing of what is inside.
const CATCH_ALL: &[&str] = &["utils", "util", "helpers", "helper", "common", "misc", "stuff"];

/// A source file.
struct Source {
    /// Relative to the repository.
    path: String,
    text: String,
    /// The text with comments, strings and characters blanked out, line by line as before.
    code: String,
}

impl Source {
    fn finding(&self, line: usize, what: &str) -> String {
        format!("{}:{line}: {what}", self.path)
    }

    /// The module that the file is, from the crate's root: `src/a/b.rs` and `src/a/b/mod.rs` are `a`, `b`.
    fn module(&self) -> Vec<&str> {
        let path = self.path.trim_start_matches("src/").trim_end_matches(".rs").trim_end_matches("/mod");
        path.split('/').collect()
    }
}

fn sources(folder: &str) -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut sources = Vec::new();
    let mut folders = vec![root.join(folder)];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(folder) else { continue };
        for path in entries.map(|entry| entry.expect("an entry").path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("source is text");
                let path = path.strip_prefix(root).expect("inside").to_string_lossy().replace('\\', "/");
                sources.push(Source { code: blank(&text), path, text });
            }
        }
    }
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    sources
}

fn everything() -> Vec<Source> {
    ["src", "tests", "benches"].into_iter().flat_map(sources).collect()
}

/// Blanks comments, strings and character literals, and keeps every line where it is.
fn blank(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            '"' => string(rest),
            'r' if raw_hashes(rest).is_some() && !code.ends_with(|c: char| c.is_alphanumeric() || c == '_') => {
                raw(rest)
            }
            '\'' => character(rest),
            _ => 0,
        };
        let keep = if length == 0 { first.len_utf8() } else { 0 };
        code.push_str(&rest[..keep]);
        code.extend(rest[keep..length.max(keep)].chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        rest = &rest[length.max(keep)..];
    }
    code
}

/// Length of the string literal that begins here.
fn string(rest: &str) -> usize {
    let mut escaped = false;
    for (index, c) in rest.char_indices().skip(1) {
        match c {
            '"' if !escaped => return index + 1,
            _ => escaped = c == '\\' && !escaped,
        }
    }
    rest.len()
}

/// How many hashes a raw string that begins here has; `None` where none begins.
fn raw_hashes(rest: &str) -> Option<usize> {
    let after = rest.strip_prefix('r')?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    after[hashes..].starts_with('"').then_some(hashes)
}

fn raw(rest: &str) -> usize {
    let hashes = raw_hashes(rest).unwrap_or(0);
    let end = format!("\"{}", "#".repeat(hashes));
    let body = hashes + 2;
    rest[body..].find(&end).map_or(rest.len(), |at| body + at + end.len())
}

/// Length of the character literal that begins here; 0 for a lifetime.
fn character(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        (Some((_, '\\')), Some(_)) => rest[2..].find('\'').map_or(0, |at| if at == 0 { 4 } else { at + 3 }),
        (Some(_), Some((index, '\''))) => index + 1,
        _ => 0,
    }
}

/// Fails with all findings at once.
fn none(findings: impl IntoIterator<Item = String>) {
    let findings: Vec<_> = findings.into_iter().collect();
    assert!(findings.is_empty(), "\n{}\n", findings.join("\n"));
}

/// The top-level modules that a line of code names: `crate::a`, `crate::{a, b::c}`, `super::super::a`. An import that
/// goes on over lines is joined to one before.
fn named(line: &str, depth: usize) -> Vec<&str> {
    let mut named = Vec::new();
    for (index, _) in line.match_indices("crate::") {
        named.extend(heads(&line[index + "crate::".len()..]));
    }
    let climb = "super::".repeat(depth);
    for (index, _) in line.match_indices(&climb) {
        let within = line[..index].ends_with("super::") || line[index + climb.len()..].starts_with("super::");
        if !within {
            named.extend(heads(&line[index + climb.len()..]));
        }
    }
    named
}

/// The first words of a path, or of each path of a list in braces.
fn heads(path: &str) -> Vec<&str> {
    let word = |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_').len();
    let Some(list) = path.strip_prefix('{') else { return vec![&path[..word(path)]] };
    let mut heads = Vec::new();
    let (mut deep, mut fresh) = (0, true);
    for (index, c) in list.char_indices() {
        match c {
            '{' => deep += 1,
            '}' if deep == 0 => break,
            '}' => deep -= 1,
            ',' if deep == 0 => fresh = true,
            _ if fresh && !c.is_whitespace() => {
                heads.push(&list[index..index + word(&list[index..])]);
                fresh = false;
            }
            _ => {}
        }
    }
    heads
}

#[test]
fn lower_layers_never_name_higher_ones() {
    let mut findings = Vec::new();
    for source in sources("src") {
        let module = source.module();
        let Some((_, may, never)) = LAYERS.iter().find(|(name, ..)| *name == module[0]) else {
            findings.push(source.finding(1, "give this folder a line in LAYERS of tests/it/tidy.rs"));
            continue;
        };
        let mut statement = String::new();
        for (index, line) in source.code.lines().enumerate() {
            // `use crate::{` … `};` is one statement.
            statement.push_str(line.trim());
            if statement.starts_with("use ") && !statement.ends_with(';') {
                continue;
            }
            for name in named(&statement, module.len()) {
                if ALL.contains(&name) && !may.contains(&name) {
                    let what =
                        format!("`{}` may not name `{name}`: see the table in src/lib.rs; move the code", module[0]);
                    findings.push(source.finding(index + 1, &what));
                }
            }
            for word in never.iter().filter(|word| statement.contains(*word)) {
                let what =
                    format!("`{}` may not know `{word}`: hand the figure in, or put it behind a port", module[0]);
                findings.push(source.finding(index + 1, &what));
            }
            statement.clear();
        }
    }
    none(findings);
}

#[test]
fn the_layer_check_sees_every_form_of_path() {
    assert_eq!(named("use crate::ports::Clock;", 2), ["ports"]);
    assert_eq!(named("use crate::{model::{A, B}, yarn::rest, cli};", 2), ["model", "yarn", "cli"]);
    assert_eq!(named("let x = super::super::cloud::dry_run();", 2), ["cloud"]);
    assert_eq!(named("let x = super::roster::of();", 2), [""; 0]);
    assert_eq!(named("use super::model::State;", 1), ["model"]);
    assert_eq!(blank("a(\"{\"); // {\nb('{', 'x', '\\'', r#\"\"{\"#) }").matches('{').count(), 0);
}

#[test]
fn files_are_short_and_open_with_their_purpose() {
    let mut findings = Vec::new();
    for source in everything() {
        let lines = source.text.lines().count();
        if lines > FILE_MAX {
            findings.push(source.finding(lines, &format!("{lines} lines, {FILE_MAX} at most: split it by subject")));
        }
        if !source.text.starts_with("//! ") {
            findings.push(source.finding(1, "open the file with `//!` and one sentence that says what it is for"));
        }
        let stem = source.path.rsplit('/').next().unwrap_or("").trim_end_matches(".rs");
        if CATCH_ALL.contains(&stem) {
            findings.push(source.finding(1, "name the file after what is in it"));
        }
    }
    none(findings);
}

#[test]
fn functions_are_short() {
    none(everything().iter().flat_map(long_functions));
}

fn long_functions(source: &Source) -> Vec<String> {
    let is_table = TABLES.iter().any(|(path, _)| *path == source.path);
    let mut findings = Vec::new();
    let lines: Vec<_> = source.code.lines().collect();
    for (first, line) in lines.iter().enumerate() {
        let words: Vec<_> = line.split_whitespace().collect();
        let is_fn = words.iter().position(|word| *word == "fn").is_some_and(|at| {
            words[..at].iter().all(|word| ["const", "async", "extern"].contains(word) || word.starts_with("pub"))
        });
        let skipped = first > 0 && lines[first - 1].trim_start().starts_with("#[rustfmt::skip]");
        if skipped && !is_table {
            findings
                .push(source.finding(first, "let rustfmt lay it out, or name the table in TABLES of tests/it/tidy.rs"));
        }
        if !is_fn || skipped {
            continue;
        }
        let length = body_length(&lines[first..]);
        if length > FUNCTION_MAX {
            let what = format!("a function of {length} lines, {FUNCTION_MAX} at most: take a part out and name it");
            findings.push(source.finding(first + 1, &what));
        }
    }
    findings
}

/// Lines from a function's head to the brace that ends it.
fn body_length(lines: &[&str]) -> usize {
    let mut depth = 0_i32;
    for (index, line) in lines.iter().enumerate() {
        for c in line.chars() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ';' if depth == 0 && !line.contains('[') => return index + 1,
                _ => {}
            }
        }
        if depth == 0 && line.contains('}') {
            return index + 1;
        }
    }
    lines.len()
}

#[test]
fn the_length_check_counts_lines() {
    let long = format!("//! x\nfn f() {{\n{}}}\n", "    g('{', \"}\");\n".repeat(FUNCTION_MAX));
    let source = Source { path: "x.rs".into(), code: blank(&long), text: long };
    assert_eq!(long_functions(&source).len(), 1, "{:?}", long_functions(&source));
}

#[test]
fn production_code_does_not_panic_by_unwrap() {
    let findings = sources("src").into_iter().filter(|source| MAY_PANIC.iter().all(|(path, _)| *path != source.path));
    none(findings.flat_map(|source| {
        // A file's own tests, at its end, may.
        let production = source.code.lines().take_while(|line| line.trim() != "#[cfg(test)]").count();
        let panics = |line: &&str| line.contains(".unwrap()") || line.contains(".expect(");
        let lines = source.code.lines().take(production).enumerate().filter(|(_, line)| panics(line));
        let what = "return an error, or add the file to MAY_PANIC of tests/it/tidy.rs with its reason";
        lines.map(|(index, _)| source.finding(index + 1, what)).collect::<Vec<_>>()
    }));
}

#[test]
fn nothing_names_the_workplace() {
    let forbidden = concat!("/wo", "rk/");
    none(everything().iter().flat_map(|source| {
        let named = source.text.lines().enumerate().filter(|(_, line)| line.contains(forbidden));
        let finding =
            |(index, _)| source.finding(index + 1, "a path of one workplace: make it relative, or a parameter");
        named.map(finding).collect::<Vec<_>>()
    }));
}

#[test]
fn every_test_file_is_named_in_main_with_a_line_on_what_it_is() {
    let all = sources("tests/it");
    let main = all.iter().find(|source| source.path == "tests/it/main.rs").expect("tests/it/main.rs");
    let lines: Vec<_> = main.text.lines().collect();
    let mut findings = Vec::new();
    for source in &all {
        let name = source.path.trim_start_matches("tests/it/").trim_end_matches("/mod.rs").trim_end_matches(".rs");
        if name != "main" && !name.contains('/') && !lines.contains(&format!("mod {name};").as_str()) {
            findings.push(source.finding(1, &format!("add `mod {name};` to tests/it/main.rs, with a line above it")));
        }
    }
    for (index, line) in lines.iter().enumerate().filter(|(_, line)| line.starts_with("mod ")) {
        let above = lines[..index].iter().rev().find(|line| !line.starts_with("#["));
        if !above.is_some_and(|line| line.starts_with("// ")) {
            findings.push(main.finding(index + 1, &format!("a comment above `{line}` says what it tests")));
        }
    }
    none(findings);
}
