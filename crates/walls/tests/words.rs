//! The beginnings of doc comments (STYLE.md): with what they are about, not with a pronoun for it; those of
//! functions with a verb that says what the function does, or a noun that says what it returns; those of
//! fields, variants, constants, types and modules with a noun.
//!
//! A textual search: nothing here knows grammar. A first word that ends in s counts as a verb in the third
//! person unless it is listed among those that are none, so that a plural noun may pass; a reader objects.

use crate::sources::{files, text};
use std::path::Path;

/// Words that stand for a noun, and never begin a comment.
const PRONOUN: &str = "\
    it it's its itself that those these they them themselves their theirs he she his her who \
    whom whose whoever whomever likewise ditto";

/// Words that are pronouns where no noun follows: "This is …", but "This CPU as an index".
const DETERMINER: &str = "this one ones another others both either neither what";

/// Words after "the" that are pronouns where no noun follows: "The same, once."
const THE: &str = "same one ones other others former latter";

/// Words that are no noun, so that a determiner before them is a pronoun.
const NO_NOUN: &str = "\
    a after again alone also an and are as at before between by can could did do does else for \
    from had has have here if in is it its itself may might more must never not of on once \
    only or per shall should so than that the their there these they this those to was were \
    when where which who whose will with would";

/// Words that end like a verb in the third person and are none, after "what" and "one".
const NO_VERB_AFTER: &str = "\
    blocks classes cpus deadlines entities events figures governors groups helpers jobs \
    kernels less periods policies runs tasks threads ticks timers times utilisations";

/// Words that end in s and are no verb.
const NO_VERB: &str = "\
    across afterwards always as besides does has is its others ours perhaps this thus towards \
    unless was";

/// Words that may be all of a comment only together with a noun: "When.", "It has."
const EMPTY: &str = "\
    after again all always before both does has here how is it later likewise never no none \
    not now once so then there what when where whether which who whose why yes";

/// Words with which no noun phrase begins, as the doc of a field, variant, constant, type or module is one.
const NO_PHRASE: &str = "\
    also as at by for from how if in nobody of on since so somebody to until up what when where \
    which why with";

/// A doc comment and what it is about.
struct Doc {
    line: usize,
    text: String,
    item: Item,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Item {
    /// A module, by `//!`.
    Module,
    /// A function that is no test.
    Function,
    /// A test.
    Test,
    /// A field, variant, constant or type.
    Thing,
}

/// Lists the docs below `crates/*/src` that break a rule, each with the rule.
pub(crate) fn complaints(crates: &Path) -> Vec<String> {
    let rust = |f: &std::path::PathBuf| f.extension().is_some_and(|e| e == "rs");
    let rooms = std::fs::read_dir(crates).expect("crates").map(|e| e.expect("a room").path());
    let sources = rooms.map(|room| room.join("src")).filter(|src| src.is_dir());
    let mut all: Vec<String> = sources
        .flat_map(|src| files(&src))
        .filter(rust)
        .flat_map(|file| {
            let place = file.strip_prefix(crates).unwrap_or(&file).display().to_string();
            let told = |doc: Doc| Some(format!("{place}:{}: {}", doc.line, complaint(&doc)?));
            docs(&text(&file)).into_iter().filter_map(told).collect::<Vec<_>>()
        })
        .collect();
    all.sort();
    all
}

/// The rule that a doc comment breaks, with the comment; `None`: it is well.
fn complaint(doc: &Doc) -> Option<String> {
    let text = &doc.text;
    let rule = match () {
        () if begins_with_pronoun(text) => "begins with a pronoun",
        () if is_fragment(text) => "is a fragment that names nothing",
        () if doc.item == Item::Function && !says_what_it_does(text) => {
            "is a function's and begins neither with a verb nor with the noun that it returns"
        }
        () if matches!(doc.item, Item::Thing | Item::Module) && is(NO_PHRASE, &word(text, 0).0) => {
            "is no noun phrase, as that of a field, variant, constant, type or module has to be"
        }
        () => return None,
    };
    Some(format!("`{text}` {rule}"))
}

/// The doc comments of `source`, the items' (`///`) and the modules' (`//!`).
fn docs(source: &str) -> Vec<Doc> {
    let lines: Vec<&str> = source.lines().map(str::trim_start).collect();
    let mark = |line: &str| match line {
        _ if line.starts_with("////") => None,
        _ if line.starts_with("///") => Some("///"),
        _ if line.starts_with("//!") => Some("//!"),
        _ => None,
    };
    let (mut found, mut n) = (Vec::new(), 0);
    while n < lines.len() {
        let Some(slashes) = mark(lines[n]) else {
            n += 1;
            continue;
        };
        let end = (n..lines.len()).find(|l| mark(lines[*l]) != Some(slashes));
        let end = end.unwrap_or(lines.len());
        let words = lines[n..end].iter().map(|l| l[3..].trim());
        let text = words.take_while(|l| !l.is_empty()).collect::<Vec<_>>().join(" ");
        let (item, is_test) = item_after(&lines[end..]);
        let item = match (slashes, is_function(item), is_test) {
            ("//!", ..) => Item::Module,
            (_, true, true) => Item::Test,
            (_, true, false) => Item::Function,
            _ => Item::Thing,
        };
        found.push(Doc { line: n + 1, text, item });
        n = end;
    }
    found
}

/// The first line that is neither an attribute nor a comment, and whether an attribute says `#[test]`.
fn item_after<'a>(lines: &[&'a str]) -> (&'a str, bool) {
    let (mut depth, mut is_test) = (0, false);
    for line in lines {
        let attribute = depth > 0 || line.starts_with("#[");
        if attribute {
            is_test |= line.starts_with("#[test]");
            depth += line.matches('[').count() as isize - line.matches(']').count() as isize;
        } else if !line.is_empty() && !line.starts_with("//") {
            return (line, is_test);
        }
    }
    ("", is_test)
}

fn is_function(item: &str) -> bool {
    let before = item.split("fn ").next().unwrap_or_default();
    let word = |w: &str| {
        w.starts_with("pub")
            || w.starts_with('"')
            || w.ends_with(')')
            || ["const", "async", "unsafe", "extern", "default", "in"].contains(&w)
    };
    before.len() < item.len() && before.split_whitespace().all(word)
}

/// Whether `word` is one of the words of `list`.
fn is(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|w| w == word)
}

/// The `n`th word in lower case without punctuation, and whether punctuation follows it.
fn word(text: &str, n: usize) -> (String, bool) {
    let word = text.split_whitespace().nth(n).unwrap_or_default();
    let ends = word.ends_with(['.', ',', ':', ';', '?']);
    let plain = |c: char| ".,:;!?()[]*_\"…".contains(c);
    (word.trim_matches(plain).to_lowercase(), ends || word.is_empty())
}

fn begins_with_pronoun(text: &str) -> bool {
    let ((first, ends), (second, ends_too), (third, _)) =
        (word(text, 0), word(text, 1), word(text, 2));
    let verb = |w: &str| {
        let letters = w.chars().all(|c| c.is_ascii_lowercase());
        letters && (w.ends_with('s') || w.ends_with("ed")) && !is(NO_VERB_AFTER, w)
    };
    if is(PRONOUN, &first) {
        return true;
    }
    if first == "the" && is(THE, &second) {
        let verb_follows = ["one", "other"].contains(&second.as_str()) && verb(&third);
        return ends_too || third.is_empty() || is(NO_NOUN, &third) || verb_follows;
    }
    let noun_needed = ["what", "one"].contains(&first.as_str());
    let article = first == "what" && ["a", "an", "the"].contains(&second.as_str());
    is(DETERMINER, &first)
        && !article
        && (ends || is(NO_NOUN, &second) || (noun_needed && verb(&second)))
}

/// Whether the first sentence of `text` has at most two words, none of which names anything.
fn is_fragment(text: &str) -> bool {
    let sentence = text.split_inclusive(['.', ':', ';']).next().unwrap_or_default();
    let words = sentence.split_whitespace().count();
    (1..=2).contains(&words) && (0..words).all(|n| is(EMPTY, &word(sentence, n).0))
}

/// Whether a function's doc begins with a verb in the third person, "Whether", "The NOUN", "A NOUN", "True",
/// "False", "None", or a name or formula of the code or the kernel in backticks.
fn says_what_it_does(text: &str) -> bool {
    let first = text.split_whitespace().next().unwrap_or_default();
    let (word, _) = word(text, 0);
    let letters = word.chars().all(|c| c.is_alphabetic() || c == '-');
    text.is_empty()
        || first.chars().take(3).any(|c| c == '`')
        || word.contains('_')
        || ["whether", "the", "a", "an", "true", "false", "none"].contains(&word.as_str())
        || (letters && word.ends_with('s') && !is(NO_VERB, &word))
}

#[cfg(test)]
mod tests {
    use super::{Doc, Item, begins_with_pronoun, complaint, docs, is_fragment, says_what_it_does};

    #[test]
    fn a_pronoun_without_its_noun_is_told() {
        for bad in [
            "It has.",
            "Its clock.",
            "Those of `text`.",
            "That of the task.",
            "Who hears of jobs.",
            "Whose turn it is.",
            "The same, once.",
            "The one that runs.",
            "The other waits.",
            "One that is queued.",
            "One of the two.",
            "This is known.",
            "What is left.",
            "What it was.",
            "What stands above.",
            "Both, in order.",
            "(Its place.)",
        ] {
            assert!(begins_with_pronoun(bad), "{bad}");
        }
        for good in [
            "The same task, woken.",
            "The other CPUs.",
            "One CPU's part.",
            "This CPU as an index.",
            "What a task costs, in µs.",
            "What `menu` remembers.",
            "What tasks share.",
            "Both clamps in force.",
            "Italic letters.",
            "Theory of queues.",
        ] {
            assert!(!begins_with_pronoun(good), "{good}");
        }
    }

    #[test]
    fn a_fragment_is_told() {
        for bad in ["When.", "There", "It is.", "Never, once."] {
            assert!(is_fragment(bad), "{bad}");
        }
        for good in ["Hz.", "Time of the event.", "Never idle.", "Once it has slept, a task runs."]
        {
            assert!(!is_fragment(good), "{good}");
        }
    }

    #[test]
    fn a_function_that_says_neither_what_it_does_nor_what_it_returns_is_told() {
        for bad in
            ["When it ends.", "From `text`.", "Of a CPU.", "How many.", "Always so.", "As is."]
        {
            assert!(!says_what_it_does(bad), "{bad}");
        }
        for good in [
            "Queues `task`.",
            "Whether `task` runs.",
            "The time left, in ns.",
            "An empty queue.",
            "True if nothing is queued.",
            "`pick_next_task`: the deadline class first.",
            "[`Rq::pick`] without accounting.",
        ] {
            assert!(says_what_it_does(good), "{good}");
        }
    }

    #[test]
    fn a_thing_that_is_no_noun_phrase_is_told() {
        let told = |text: &str, item| complaint(&Doc { line: 1, text: text.to_string(), item });
        let what = "What a group is classified by.";
        for bad in [what, "How often.", "In ns.", "From where.", "By CPU.", "Which.", "So few."] {
            assert!(told(bad, Item::Thing).is_some(), "{bad}");
            assert!(told(bad, Item::Module).is_some(), "{bad}");
        }
        for good in ["Number of tasks.", "True if it runs.", "Time in ns.", "Owner of the lock."] {
            assert_eq!(told(good, Item::Thing), None);
        }
    }

    #[test]
    fn comments_are_found_with_what_they_are_about() {
        let source = "//! A room.\n\n/// A task:\n/// long.\n///\n/// More.\n#[derive(\n    Debug,\n)]\n\
                      pub struct Task {\n    /// Runs.\n    pub fn_: u8,\n}\n    /// Runs it.\n    \
                      #[inline]\n    pub(crate) const fn run() {}\n/// Because.\n#[test]\nfn t() {}\n";
        let found: Vec<_> = docs(source).into_iter().map(|d| (d.line, d.text, d.item)).collect();
        let doc = |line, text: &str, item| (line, text.to_string(), item);
        assert_eq!(
            found,
            [
                doc(1, "A room.", Item::Module),
                doc(3, "A task: long.", Item::Thing),
                doc(11, "Runs.", Item::Thing),
                doc(14, "Runs it.", Item::Function),
                doc(17, "Because.", Item::Test),
            ]
        );
    }
}
