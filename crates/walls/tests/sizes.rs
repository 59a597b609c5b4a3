//! How long files and functions are: nobody wants to live in one that has no end.

use std::path::Path;

/// Most lines of a file.
pub(crate) const FILE: usize = 800;
/// Most lines of a function, from its head to its closing brace.
pub(crate) const FUNCTION: usize = 100;

/// Complains of files and functions under `crates` that are too long.
pub(crate) fn complaints(crates: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let rust = |path: &std::path::PathBuf| path.extension().is_some_and(|e| e == "rs");
    for path in crate::sources::files(crates).into_iter().filter(rust) {
        let text = std::fs::read_to_string(&path).expect("a file that was just listed");
        let name = path.strip_prefix(crates).expect("inside").display().to_string();
        found.extend(too_long(&name, &text));
    }
    found.into_iter().map(|(name, lines)| format!("{name}: {lines} lines")).collect()
}

/// Returns what is too long in a file, by its name, a function's behind it.
fn too_long(name: &str, text: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    if lines.len() > FILE {
        found.push((name.to_string(), lines.len()));
    }
    for (i, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let indent = &line[..line.len() - code.len()];
        let Some(function) = function(code).filter(|_| !code.ends_with('}')) else { continue };
        let end = format!("{indent}}}");
        let rest = lines[i..].iter();
        let Some(last) = rest.clone().position(|l| **l == end || l.trim_end().ends_with(';'))
        else {
            continue;
        };
        // A head without a body ends in a semicolon, which a body's first line may do, too.
        let last = match lines[i + last] == end {
            true => last,
            false => match rest.clone().position(|l| **l == end) {
                Some(last) => last,
                None => continue,
            },
        };
        if last + 1 > FUNCTION && !code.trim_end().ends_with(';') {
            found.push((format!("{name}: {function}"), last + 1));
        }
    }
    found
}

/// Returns the name of the function whose head begins in this line.
fn function(code: &str) -> Option<&str> {
    let mut rest = code;
    for word in ["pub(crate) ", "pub(super) ", "pub ", "const ", "unsafe ", "async "] {
        rest = rest.strip_prefix(word).unwrap_or(rest);
    }
    let name = rest.strip_prefix("fn ")?;
    name.split(|c: char| !c.is_alphanumeric() && c != '_').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_file_and_a_long_function_are_told() {
        let body = |lines: usize| format!("pub fn long() {{\n{}}}\n", "    x();\n".repeat(lines));
        assert_eq!(too_long("a.rs", &body(98)), []);
        assert_eq!(too_long("a.rs", &body(99)), [("a.rs: long".to_string(), 101)]);
        assert_eq!(too_long("a.rs", &"// x\n".repeat(800)), []);
        assert_eq!(too_long("a.rs", &"// x\n".repeat(801)), [("a.rs".to_string(), 801)]);
    }
}
