//! Transcripts: what a user reads for each input, kept in a file that a reviewer reads too.

/// Compares `got` with `tests/NAME`, line by line. `BLESS=1 cargo test` writes the file anew.
pub(crate) fn check_transcript(name: &str, got: &str) {
    let path = format!("{}/tests/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, got).unwrap_or_else(|e| panic!("{path}: {e}"));
    }
    let want = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    for (n, (got, want)) in got.lines().zip(want.lines()).enumerate() {
        assert_eq!(got, want, "tests/{name}, line {}", n + 1);
    }
    assert_eq!(got.lines().count(), want.lines().count(), "tests/{name} has another length");
}

/// One entry: the input (a long one cut) and what is said of it.
pub(crate) fn entry(input: &str, said: &str) -> String {
    let cut: String = input.chars().take(110).collect();
    let more = if cut.len() < input.len() { " …" } else { "" };
    let mut shown = String::new();
    for c in cut.chars() {
        match c.is_control() {
            true => shown.extend(c.escape_debug()),
            false => shown.push(c),
        }
    }
    format!("{shown}{more}\n    {}\n", said.replace('\n', "\n    "))
}
