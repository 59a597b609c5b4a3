//! Reading a trace: from the formats and the pages of each CPU to its events.
//!
//! ```text
//! Reader::new    the layout of pages, the formats of the events that there are
//! Reader::cpu    one CPU's pages to its events, in its order
//! in_order       all of them by time, then CPU, then the CPU's own order; what one event tells only
//!                by another one filled in
//! ```

use crate::decisions::{self, Choice, Few, Told};
use crate::event::{self, Raw};
use crate::page::{Format, PageLayout, records};
use std::collections::BTreeMap;

/// An event with its time in ns, by the trace's clock, and the CPU that wrote it.
pub type Seen<'a> = (u64, u32, Raw<'a>);

/// A reader of pages, which knows the formats of their events.
#[derive(Debug)]
pub struct Reader {
    layout: PageLayout,
    decoders: BTreeMap<u16, (Format, event::Decode)>,
    /// Decoders of the state from which the kernel decides.
    more: BTreeMap<u16, (Format, decisions::Decode)>,
}

impl Reader {
    /// A reader for pages of the layout that `header_page` tells. `format`: the text of the `format` of an event by its
    /// `SYSTEM/NAME`, if the trace has it.
    ///
    /// Errors: a layout or a format that is not understood.
    pub fn new(
        header_page: &str,
        format: impl Fn(&str) -> Option<String>,
    ) -> Result<Reader, String> {
        let layout = PageLayout::parse(header_page)?;
        let mut decoders = BTreeMap::new();
        for (name, decode) in event::DECODERS {
            if let Some(text) = format(name) {
                let format = Format::parse(&text)
                    .ok_or_else(|| format!("the format of {name} is not understood"))?;
                decoders.insert(format.id, (format, *decode));
            }
        }
        let mut more: BTreeMap<u16, (Format, decisions::Decode)> = BTreeMap::new();
        for (name, decode) in decisions::DECODERS {
            let format = format(name).and_then(|text| Format::parse(&text));
            more.extend(format.map(|format| (format.id, (format, *decode))));
        }
        Ok(Reader { layout, decoders, more })
    }

    /// Appends the events in `pages` of `cpu` to `into`; true if some were overwritten among them.
    ///
    /// Errors: bytes that are no such pages, with the CPU.
    pub fn cpu<'a>(
        &self,
        cpu: u32,
        pages: &'a [u8],
        into: &mut Vec<Seen<'a>>,
    ) -> Result<bool, String> {
        let (found, lost) = records(self.layout, pages).map_err(|e| format!("CPU {cpu}: {e}"))?;
        for r in found {
            let decoded =
                r.id().and_then(|id| self.decoders.get(&id)).and_then(|(f, decode)| decode(f, &r));
            into.extend(decoded.map(|raw| (r.at, cpu, raw)));
            let told = r.id().and_then(|id| self.more.get(&id)).map(|(f, decode)| decode(f, &r));
            let told: Few = told.unwrap_or_default();
            into.extend(told.into_iter().flatten().map(|told| (r.at, cpu, Raw::Told(told))));
        }
        Ok(lost)
    }
}

/// Sorts the events of all CPUs by time, and fills in what some of them tell only by others. `hz`: ticks in a second, where
/// that is known.
pub fn in_order(events: &mut [Seen<'_>], hz: Option<u64>) {
    // Stable: events of one CPU at one time stay in their order.
    events.sort_by_key(|(at, cpu, _)| (*at, *cpu));
    decisions::fill_in(events.iter_mut().rev().filter_map(|(_, cpu, raw)| match raw {
        Raw::Menu(probed) => Some((*cpu, Choice::Begins(probed))),
        Raw::Told(told) => Some((*cpu, Choice::Told(told))),
        _ => None,
    }));
    if let Some(hz) = hz.filter(|hz| *hz > 0) {
        let looks = events.iter_mut().filter_map(|(at, _, raw)| match raw {
            Raw::Capacity { due, .. } | Raw::Told(Told::Look { due, .. }) => Some((*at, due)),
            _ => None,
        });
        decisions::count_jiffies(looks, 1_000_000_000 / hz);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Thread;
    use crate::page::{HEADER_PAGE, page};

    /// A format of these fields: declaration, offset, size.
    fn format(id: u16, fields: &[(&str, usize, usize)]) -> String {
        let line = |(what, offset, size): &(&str, usize, usize)| {
            format!("\tfield:{what};\toffset:{offset};\tsize:{size};\tsigned:1;\n")
        };
        format!("ID: {id}\nformat:\n{}", fields.iter().map(line).collect::<String>())
    }

    fn wakeup(pid: i32) -> Vec<u8> {
        let mut data = [7, 0, 0, 0, 0, 0, 0, 0].to_vec();
        data.extend(b"ui\0\0");
        [pid, 120, 3].iter().for_each(|n| data.extend(n.to_le_bytes()));
        data
    }

    #[test]
    fn pages_of_several_cpus_become_one_order() {
        let text = format(
            7,
            &[("char comm[4]", 8, 4), ("pid_t pid", 12, 4), ("int prio", 16, 4)]
                .into_iter()
                .chain([("int target_cpu", 20, 4)])
                .collect::<Vec<_>>(),
        );
        let formats = |name: &str| (name == "sched/sched_wakeup").then(|| text.clone());
        let reader = Reader::new(HEADER_PAGE, formats).unwrap();
        let (first, mut second) = (
            page(100, &[(0, wakeup(1)), (9, wakeup(2))]),
            page(100, &[(0, wakeup(3)), (4, wakeup(4))]),
        );
        second[11] = 0x80;
        let mut events = Vec::new();
        assert_eq!(reader.cpu(1, &first, &mut events), Ok(false));
        assert_eq!(reader.cpu(0, &second, &mut events), Ok(true), "some were overwritten");
        in_order(&mut events, None);
        let seen = |(at, cpu, raw): &Seen<'_>| match raw {
            Raw::Wakeup { thread: Thread { pid, comm: "ui", prio: 120 }, cpu: 3, new: false } => {
                (*at, *cpu, *pid)
            }
            other => panic!("{other:?}"),
        };
        let seen: Vec<_> = events.iter().map(seen).collect();
        assert_eq!(seen, [(100, 0, 3), (100, 1, 1), (104, 0, 4), (109, 1, 2)]);
        let wrong = reader.cpu(5, &first[..9], &mut events);
        assert_eq!(wrong, Err("CPU 5: 9 bytes are no whole pages of 4096".into()));
    }

    #[test]
    fn a_format_that_is_not_understood_is_named() {
        let formats = |name: &str| (name == "power/cpu_idle").then(|| "nothing".to_string());
        let wrong = Reader::new(HEADER_PAGE, formats).map(|_| ()).unwrap_err();
        assert_eq!(wrong, "the format of power/cpu_idle is not understood");
        assert!(Reader::new("", |_| None).is_err());
    }
}
