//! A study under a policy that its document does not have: what holds then, too, tells little.

use super::table::Vary;
use super::{Figure, Study};

/// A wrong policy: one that takes the place of all others, settings on top of each, or both.
#[derive(Clone, Debug, PartialEq)]
pub struct Wrong {
    /// Name of the policy in place of the figures' own; `None`: theirs.
    policy: Option<String>,
    /// Settings on top, in the order given.
    settings: Vary,
}

impl Wrong {
    /// Reads `POLICY`, `POLICY+key=value…` or `+key=value…`; `None`: it is none of them.
    pub fn parse(text: &str) -> Option<Wrong> {
        let mut parts = text.split('+');
        let policy = parts.next().filter(|name| !name.is_empty()).map(String::from);
        let pair = |part: &str| {
            let (key, value) = part.split_once('=')?;
            (!key.is_empty() && !value.is_empty()).then(|| (key.to_string(), value.to_string()))
        };
        let settings = parts.map(pair).collect::<Option<Vary>>()?;
        (policy.is_some() || !settings.is_empty()).then_some(Wrong { policy, settings })
    }

    /// Returns the wrong policy in place of `right`.
    fn instead_of(&self, right: &str) -> String {
        let base = self.policy.as_deref().unwrap_or(right);
        let kept =
            base.split('+').filter(|part| !part.split_once('=').is_some_and(|(k, _)| self.sets(k)));
        let mut all = kept.collect::<Vec<_>>().join("+");
        for (key, value) in &self.settings {
            all.push_str(&format!("+{key}={value}"));
        }
        all
    }

    /// Whether a setting called `key` is one of those on top.
    fn sets(&self, key: &str) -> bool {
        self.settings.iter().any(|(k, _)| k == key)
    }

    /// Exchanges the policies of what a column, a case or a figure varies, and takes the settings on top away.
    fn vary(&self, vary: &mut Vary) {
        vary.retain(|(key, _)| !self.sets(key));
        let alone = Wrong { policy: self.policy.clone(), settings: Vary::new() };
        for (_, policy) in vary.iter_mut().filter(|(key, _)| key == "policy") {
            *policy = alone.instead_of(policy);
        }
    }

    fn figure(&self, figure: &mut Figure) {
        figure.instead.clear();
        // A table's references stand for 0 and 100 %, and keep what they set: settings go to its columns.
        let table = figure.table.as_mut();
        let of_setup = match table.is_some() {
            true => Wrong { policy: self.policy.clone(), settings: Vary::new() },
            false => self.clone(),
        };
        if let Some(setup) = &mut figure.setup {
            setup.policy = of_setup.instead_of(&setup.policy);
            setup.set.retain(|key, _| !self.sets(key));
            self.vary(&mut setup.vary);
        }
        if let Some(table) = table {
            for column in &mut table.columns {
                self.vary(&mut column.vary);
                column.vary.extend(self.settings.iter().cloned());
            }
            table.cases.iter_mut().for_each(|case| self.vary(&mut case.vary));
        }
        for list in &mut figure.lists {
            list.policy = list.policy.as_ref().map(|policy| self.instead_of(policy));
            list.settings.clone_from(&self.settings);
            for row in &mut list.rows {
                row.instead = None;
                if list.quantity.by_policy() {
                    row.under = Some(self.instead_of(&row.at.to_string()));
                }
            }
        }
    }
}

impl Study {
    /// The study with every experiment under the wrong policy. Rows keep their ids and numbers;
    /// references of a table (`between`) stay what they are, and no miss is argued.
    pub fn against(&self, wrong: &Wrong) -> Study {
        let mut study = self.clone();
        study.figures.iter_mut().for_each(|figure| wrong.figure(figure));
        study
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_policy_takes_the_place_of_a_name_and_of_settings() {
        let of = |text: &str, right: &str| Wrong::parse(text).expect("in order").instead_of(right);
        assert_eq!(of("linux-6.8", "rfc-v1+hz=250"), "linux-6.8");
        assert_eq!(of("+hz=100", "rfc-v1+hz=250+seed=1"), "rfc-v1+seed=1+hz=100");
        assert_eq!(of("linux-6.8+hz=100", "rfc-v1"), "linux-6.8+hz=100");
        for text in ["", "+", "+hz", "+hz=", "+=1", "a+b"] {
            assert_eq!(Wrong::parse(text), None, "{text}");
        }
    }

    #[test]
    fn rows_keep_their_names_and_references_their_meaning() {
        let study = Study::load("muckle-2016").expect("built in");
        let wrong = study.against(&Wrong::parse("+governor=ondemand").expect("in order"));
        let (right, wrong) = (&study.figures[0], &wrong.figures[0]);
        let (of_right, of_wrong) = (right.table.as_ref().unwrap(), wrong.table.as_ref().unwrap());
        assert_eq!(of_right.quantities, of_wrong.quantities, "performance and powersave");
        let governors = of_wrong.columns.iter().flat_map(|c| &c.vary);
        assert!(governors.filter(|(key, _)| key == "governor").all(|(_, g)| g == "ondemand"));
        assert_eq!(wrong.setup, right.setup, "references are run as they are");
        let study = Study::load("steady-tasks").expect("built in");
        let wrong = study.against(&Wrong::parse("linux-6.8").expect("in order"));
        for (a, b) in study.figures.iter().zip(&wrong.figures) {
            for (right, wrong) in a.lists.iter().zip(&b.lists) {
                let by_policy = right.quantity.by_policy();
                let under = |row: &crate::study::Row| !by_policy || row.policy() == "linux-6.8";
                assert!(right.rows.iter().zip(&wrong.rows).all(|(row, other)| row.at == other.at));
                assert!(wrong.rows.iter().all(under));
            }
        }
    }
}
