//! Source of a device tree as lines without comments, with what it includes and without what its conditions leave out.
//!
//! As much of a preprocessor as the kernel's own trees need: `#include`, `/include/`, `#define` of a word, `#ifdef`,
//! `#ifndef`, `#if` of what is defined, `#else`, `#endif`, `#undef`, and the line marks that `cpp` leaves. A header that is
//! not there (`<dt-bindings/…>`) is passed over: its words stay words.

use risetime_model::InputError;
use std::collections::BTreeMap;

/// Files within files, at most.
const MAX_INCLUDES: usize = 32;
/// Size of all files together.
const MAX_BYTES: usize = 32 << 20;

/// Reads the file that `from` includes as `name`: its path and text; `None`: not there.
pub(in crate::import) type ReadInclude<'r> = dyn Fn(&str, &str) -> Option<(String, String)> + 'r;

/// Lines that were read.
pub(super) struct Lines {
    /// The text, a line each, with the comments gone.
    pub(super) text: String,
    /// File and line number of each line of `text`.
    pub(super) origin: Vec<(usize, usize)>,
    /// Names of the files.
    pub(super) files: Vec<String>,
    /// Words that stand for a text.
    pub(super) defines: BTreeMap<String, String>,
    /// Included files that were not there, headers apart.
    pub(super) missing: Vec<String>,
}

struct Reader<'r> {
    out: Lines,
    read: &'r ReadInclude<'r>,
}

/// Reads `text`, the file `file`, and what it includes.
///
/// Errors: a condition that only a preprocessor knows, files that include each other for ever.
pub(super) fn read(text: &str, file: &str, read: &ReadInclude<'_>) -> Result<Lines, InputError> {
    let out = Lines {
        text: String::new(),
        origin: Vec::new(),
        files: Vec::new(),
        defines: BTreeMap::new(),
        missing: Vec::new(),
    };
    let mut reader = Reader { out, read };
    reader.file(text, file, 0)?;
    Ok(reader.out)
}

impl Reader<'_> {
    fn file(&mut self, text: &str, file: &str, depth: usize) -> Result<(), InputError> {
        let mut of = self.number(file);
        let text = without_comments(text);
        // Of each condition that is open: whether its lines are read, and whether an `else` may still be.
        let mut open: Vec<(bool, bool)> = Vec::new();
        let (mut no, mut lines) = (0, text.lines());
        while let Some(line) = lines.next() {
            no += 1;
            let at = no;
            let mut whole = line.to_owned();
            while whole.ends_with('\\') && directive(&whole).is_some() {
                whole.pop();
                whole.push(' ');
                whole.push_str(lines.next().unwrap_or(""));
                no += 1;
            }
            let error = |what: String| {
                let hint = "run it through the preprocessor first: cpp -nostdinc -I include -undef -x assembler-with-cpp";
                Err(InputError::new(format!("{file}:{at}"), what).hint(hint))
            };
            let on = open.iter().all(|(on, _)| *on);
            match directive(&whole) {
                Some(("ifdef", name)) => self.open(&mut open, self.out.defines.contains_key(name)),
                Some(("ifndef", name)) => {
                    self.open(&mut open, !self.out.defines.contains_key(name))
                }
                Some(("if", _)) if !on => self.open(&mut open, false),
                Some(("if", what)) => match self.condition(what) {
                    Some(condition) => self.open(&mut open, condition),
                    None => return error(format!("`#if {what}` is not known here")),
                },
                Some(("elif", what)) => match open.last_mut() {
                    Some(last) if !last.1 => last.0 = false,
                    _ => return error(format!("`#elif {what}` is not known here")),
                },
                Some(("else", _)) => match open.last_mut() {
                    Some(last) => *last = (last.1, false),
                    None => return error("`#else` without `#if`".into()),
                },
                Some(("endif", _)) if open.pop().is_none() => {
                    return error("`#endif` without `#if`".into());
                }
                Some(("endif", _)) => {}
                _ if !on => {}
                Some(("define", what)) => self.define(what),
                Some(("undef", name)) => {
                    self.out.defines.remove(name);
                }
                Some(("include", name)) => self.include(name, file, at, depth)?,
                Some(("line", mark)) => {
                    if let Some((number, name)) = line_mark(mark) {
                        no = number.saturating_sub(1);
                        of = self.number(&name);
                    }
                }
                Some(_) => {}
                None => match included(&whole) {
                    Some(name) => self.include(&format!("\"{name}\""), file, at, depth)?,
                    None => self.line(&whole, of, at),
                },
            }
            // Lines that were joined stay counted, so that places fit.
            if self.out.text.len() > MAX_BYTES {
                return error("is more than 32 MiB with what it includes".into());
            }
        }
        Ok(())
    }

    fn open(&self, open: &mut Vec<(bool, bool)>, on: bool) {
        open.push((on, !on));
    }

    /// Whether the condition of an `#if` holds; `None`: it asks for a word that nothing here defines.
    fn condition(&self, what: &str) -> Option<bool> {
        let mut text = String::new();
        let mut rest = what;
        while let Some(at) = rest.find("defined") {
            text.push_str(&rest[..at]);
            rest = rest[at + "defined".len()..].trim_start();
            rest = rest.strip_prefix('(').unwrap_or(rest).trim_start();
            let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
            text.push_str(if self.out.defines.contains_key(&rest[..end]) { "1" } else { "0" });
            let after = rest[end..].trim_start();
            rest = after.strip_prefix(')').unwrap_or(after);
        }
        text.push_str(rest);
        super::cells::evaluate(&text, &self.out.defines).map(|n| n != 0)
    }

    fn number(&mut self, file: &str) -> usize {
        let known = self.out.files.iter().position(|f| f == file);
        known.unwrap_or_else(|| {
            self.out.files.push(file.to_owned());
            self.out.files.len() - 1
        })
    }

    fn line(&mut self, text: &str, file: usize, no: usize) {
        self.out.text.push_str(text.strip_suffix('\\').unwrap_or(text));
        self.out.text.push('\n');
        self.out.origin.push((file, no));
    }

    /// Remembers `NAME text`; `NAME(…)` takes arguments, which nothing here gives.
    fn define(&mut self, what: &str) {
        let end = what.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(what.len());
        if !what[end..].starts_with('(') && end > 0 {
            self.out.defines.insert(what[..end].to_owned(), what[end..].trim().to_owned());
        }
    }

    fn include(
        &mut self,
        name: &str,
        from: &str,
        at: usize,
        depth: usize,
    ) -> Result<(), InputError> {
        let name = name.trim_matches(|c| "<>\"".contains(c));
        match (self.read)(from, name) {
            Some(_) if depth >= MAX_INCLUDES => {
                let what = format!("includes `{name}`: more than {MAX_INCLUDES} files in files");
                Err(InputError::new(format!("{from}:{at}"), what))
            }
            Some((path, text)) => self.file(&text, &path, depth + 1),
            // What defines words only.
            None if name.ends_with(".h") => Ok(()),
            None => {
                self.out.missing.push(format!("{name} (included by {from}:{at}): not there"));
                Ok(())
            }
        }
    }
}

/// The name and the rest of a line that is for the preprocessor; a property such as
/// `#address-cells` is none.
fn directive(line: &str) -> Option<(&str, &str)> {
    let rest = line.trim_start().strip_prefix('#')?.trim_start();
    if rest.starts_with(|c: char| c.is_ascii_digit()) && line.starts_with('#') {
        return Some(("line", rest));
    }
    const KNOWN: [&str; 12] = [
        "include", "define", "undef", "ifdef", "ifndef", "if", "elif", "else", "endif", "error",
        "warning", "pragma",
    ];
    let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
    let (name, rest) = rest.split_at(end);
    if rest.starts_with('-') {
        return None;
    }
    KNOWN.contains(&name).then(|| (name, rest.trim()))
}

/// The line number and file of `12 "file" 1 2`.
fn line_mark(mark: &str) -> Option<(usize, String)> {
    let (number, rest) = mark.split_once(' ')?;
    let name = rest.split('"').nth(1)?;
    Some((number.parse().ok()?, name.to_owned()))
}

/// The file of a line `/include/ "file"`.
fn included(line: &str) -> Option<&str> {
    line.trim().strip_prefix("/include/")?.split('"').nth(1)
}

/// `text` with blanks in place of comments; lines stay where they are.
fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut quoted = false;
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('"', _) => {
                quoted = !quoted;
                out.push(c);
            }
            ('\\', Some(_)) if quoted => {
                out.push(c);
                out.extend(chars.next());
            }
            // A quote that its line does not close is a fault of that line alone.
            ('\n', _) => {
                quoted = false;
                out.push(c);
            }
            ('/', Some('/')) if !quoted => while chars.next_if(|c| *c != '\n').is_some() {},
            ('/', Some('*')) if !quoted => {
                chars.next();
                let mut last = ' ';
                for c in chars.by_ref() {
                    if c == '\n' {
                        out.push('\n');
                    }
                    if last == '*' && c == '/' {
                        break;
                    }
                    last = c;
                }
                out.push(' ');
            }
            _ => out.push(c),
        }
    }
    out
}
