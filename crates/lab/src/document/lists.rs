//! Lists of a run, whose length grows with it: all bursts, changes of CPU, missed jobs.

use super::value::{At, Document};
use risetime_analysis::{Burst, Lists, Migration, Missed};
use risetime_kernel::units::TaskId;
use risetime_model::{InputError, Name};
use serde_json::{Value as Json, json};

/// An entry of a list.
#[derive(Clone, Debug, PartialEq)]
pub enum Listed {
    /// A burst of a task, with the task's name.
    Burst(TaskId, &'static str, Burst),
    /// A change of CPU of a task, with the task's name.
    Migration(TaskId, &'static str, Migration),
    /// Missed jobs of a name.
    Missed(&'static str, Missed),
}

/// Everything that a run lists, in its order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listing(pub Vec<Listed>);

impl Listing {
    /// Tells `lists` all of it again.
    pub fn replay(&self, lists: &mut dyn Lists) {
        for entry in &self.0 {
            match entry {
                Listed::Burst(task, comm, burst) => lists.burst(*task, comm, burst),
                Listed::Migration(task, comm, moved) => lists.migration(*task, comm, moved),
                Listed::Missed(job, missed) => lists.missed(job, missed),
            }
        }
    }
}

impl Lists for Listing {
    fn burst(&mut self, task: TaskId, comm: &str, burst: &Burst) {
        self.0.push(Listed::Burst(task, Name::new(comm).as_str(), *burst));
    }
    fn migration(&mut self, task: TaskId, comm: &str, migration: &Migration) {
        self.0.push(Listed::Migration(task, Name::new(comm).as_str(), *migration));
    }
    fn missed(&mut self, job: &str, missed: &Missed) {
        self.0.push(Listed::Missed(Name::new(job).as_str(), missed.clone()));
    }
}

impl Document for Listing {
    fn to_value(&self) -> Json {
        let one = |entry: &Listed| match entry {
            Listed::Burst(task, comm, burst) => json!(["burst", task.0, comm, burst.to_value()]),
            Listed::Migration(task, comm, moved) => {
                json!(["migration", task.0, comm, moved.to_value()])
            }
            Listed::Missed(job, missed) => json!(["missed", null, job, missed.to_value()]),
        };
        self.0.iter().map(one).collect()
    }
    fn from_value(json: &Json, at: &At<'_>) -> Result<Listing, InputError> {
        let all = json.as_array().ok_or_else(|| at.wanted("a list"))?;
        let one = |(n, entry): (usize, &Json)| {
            let at = at.item(n);
            let task = || TaskId::from_value(&entry[1], &at.item(1));
            let name = <&'static str>::from_value(&entry[2], &at.item(2))?;
            let (record, at) = (&entry[3], at.item(3));
            match entry[0].as_str() {
                Some("burst") => {
                    Ok(Listed::Burst(task()?, name, Document::from_value(record, &at)?))
                }
                Some("migration") => {
                    Ok(Listed::Migration(task()?, name, Document::from_value(record, &at)?))
                }
                Some("missed") => Ok(Listed::Missed(name, Document::from_value(record, &at)?)),
                _ => Err(at.wanted("the record of a burst, migration or missed job")),
            }
        };
        all.iter().enumerate().map(one).collect::<Result<_, _>>().map(Listing)
    }
}
