//! Which of some words was meant by one that is none of them. Knows no words of its own.

/// A word without what people mix up: capitals, `_` and `-`.
fn plain(word: &str) -> String {
    word.replace(['_', '-'], "").to_ascii_lowercase()
}

/// The word that differs in capitals, `_` and `-` only.
pub fn same<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = plain(word);
    known.into_iter().find(|known| plain(known) == wanted)
}

/// The word that differs least, if it does not differ much.
pub fn similar<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = plain(word);
    let distances = known.into_iter().map(|known| (strsim::damerau_levenshtein(&plain(known), &wanted), known));
    // A third of the letters wrong is still a slip of the fingers; more is another word.
    let most = (wanted.chars().count() / 3).max(1);
    distances.min().filter(|(distance, _)| *distance <= most).map(|(_, known)| known)
}

/// The word that was meant, for "did you mean".
pub fn meant<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    same(word, known.iter().copied()).or_else(|| similar(word, known.iter().copied()))
}

/// The words in backticks, with commas.
pub fn quoted<T: AsRef<str>>(words: &[T]) -> String {
    words.iter().map(|word| format!("`{}`", word.as_ref())).collect::<Vec<_>>().join(", ")
}
