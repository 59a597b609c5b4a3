//! May a crate under this SPDX expression be part of a GPL-2.0-or-later program, passed on as
//! GPL-2.0?
//!
//! ```text
//! any     = all { ("OR" | "/") all }        one of them is enough; "/" is cargo's old spelling of OR
//! all     = licence { "AND" licence }       every one has to fit
//! licence = "(" any ")" | ID [ "WITH" ID ]
//! ```

/// Licences whose terms add nothing that the GPL-2.0 forbids to add.
const FIT: &[&str] = &[
    "0BSD",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "GPL-2.0-only",
    "GPL-2.0-or-later",
    "ISC",
    "LGPL-2.1-only",
    "LGPL-2.1-or-later",
    "MIT",
    "MIT-0",
    // Its section 3.3 allows the GPL as secondary licence.
    "MPL-2.0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
    // The exception waives what the GPL-2.0 conflicts with.
    "Apache-2.0 WITH LLVM-exception",
];

/// Answers for one expression; what is not understood does not fit.
pub(crate) fn fits_gpl_2(expression: &str) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let mut words = Words(spaced.split_whitespace().collect(), 0);
    let fits = words.any();
    fits == Some(true) && words.next().is_none()
}

struct Words<'a>(Vec<&'a str>, usize);

impl<'a> Words<'a> {
    fn next(&mut self) -> Option<&'a str> {
        self.1 += 1;
        self.0.get(self.1 - 1).copied()
    }
    fn take(&mut self, word: &str) -> bool {
        let there = self.0.get(self.1).is_some_and(|w| *w == word);
        self.1 += usize::from(there);
        there
    }
    fn any(&mut self) -> Option<bool> {
        let mut fits = self.all()?;
        while self.take("OR") {
            fits |= self.all()?;
        }
        Some(fits)
    }
    fn all(&mut self) -> Option<bool> {
        let mut fits = self.licence()?;
        while self.take("AND") {
            fits &= self.licence()?;
        }
        Some(fits)
    }
    fn licence(&mut self) -> Option<bool> {
        if self.take("(") {
            let fits = self.any()?;
            return self.take(")").then_some(fits);
        }
        let id = self.next().filter(|w| !["OR", "AND", "WITH", ")"].contains(w))?;
        let whole =
            if self.take("WITH") { format!("{id} WITH {}", self.next()?) } else { id.to_string() };
        Some(FIT.contains(&whole.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::fits_gpl_2;

    #[test]
    fn one_fitting_alternative_is_enough() {
        for fits in [
            "MIT",
            "MIT OR Apache-2.0",
            "Apache-2.0 OR MIT",
            "MIT/Apache-2.0",
            "Unlicense/MIT",
            "Apache-2.0 WITH LLVM-exception OR MIT",
            "Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT",
            "Apache-2.0 WITH LLVM-exception",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 OR BSL-1.0",
            "Apache-2.0 AND MIT OR Zlib",
            "((MIT))",
        ] {
            assert!(fits_gpl_2(fits), "{fits}");
        }
    }

    #[test]
    fn what_fits_only_the_gpl_3_or_nothing_does_not() {
        for unfit in [
            "Apache-2.0",
            "Apache-2.0 AND MIT",
            "MIT AND Apache-2.0",
            "Apache-2.0 OR OpenSSL",
            "GPL-3.0-only",
            "GPL-3.0-or-later",
            "Apache-2.0 AND (MIT OR Zlib)",
            "MIT WITH something",
            "CDDL-1.0",
            "mit",
        ] {
            assert!(!fits_gpl_2(unfit), "{unfit}");
        }
    }

    #[test]
    fn what_cannot_be_read_does_not_fit() {
        for broken in [
            "",
            "MIT OR",
            "OR MIT",
            "(MIT",
            "MIT)",
            "MIT MIT",
            "MIT AND",
            "Apache-2.0 WITH",
            "()",
            "WITH",
        ] {
            assert!(!fits_gpl_2(broken), "{broken:?}");
        }
    }
}
