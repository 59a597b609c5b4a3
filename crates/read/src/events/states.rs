//! Task states in `sched_switch`: `prev_state` as number or as letters, by the generations of the kernel.
//!
//! ```text
//! before 4.14   the task's state as it is: 16 and 32 exit, 64 dead, 128 may be killed, 512 parked;
//!               1024, 2048 or 4096 by the release: preempted ("R+")
//! from 4.14 on  the state as it is reported: 16 and 32 exit, 64 parked, 128 idle, 256 preempted
//! ```
//!
//! 64 means one thing or the other. A kernel that has once written 16, 32 or 256 is a new one, one that has written 1024 or more is an
//! old one; of any other a 64 is an exit only where `sched_process_exit` was seen. `trace-cmd report` prints letters of old
//! kernels for states of new ones: x may be a parked thread there, W an idle one, R one that was preempted. All the same: what
//! letters say of leaving a CPU does not hang on it but for x.
//! Preemption on the way to user space says 0, not R+.
//!
//! Source: include/linux/sched.h, include/trace/events/sched.h:`__trace_sched_switch_state`.

use super::Fields;
use risetime_trace::SwitchOut;

/// Evidence on the numbers that the kernel of a trace uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct States {
    new: bool,
    old: bool,
}

/// Way in which a state says that a task left its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaves {
    /// For sure so.
    Surely(SwitchOut),
    /// It has exited, or is parked.
    ExitedOrParked,
}

impl States {
    /// Takes in which numbers the kernel has.
    pub(crate) fn set(&mut self, new: bool) {
        (self.new, self.old) = (new, !new);
    }

    /// Takes in a state of the trace.
    pub(crate) fn note(&mut self, state: i64) {
        self.new |= matches!(state, 16 | 32 | 128 | 256);
        self.old |= state >= 1024;
    }

    /// Returns how a task left its CPU by the state at `place` of `fields`; `None`: there is none, or it says nothing.
    pub(crate) fn leaves(self, fields: &dyn Fields, place: usize) -> Option<Leaves> {
        match fields.number(place) {
            Some(state) => Some(self.of_number(state)),
            None => of_letters(fields.text(place)?),
        }
    }

    fn of_number(self, state: i64) -> Leaves {
        use SwitchOut::{Exited, Preempted, Sleeping};
        match state {
            0 => Leaves::Surely(Preempted),
            _ if state & 0x30 != 0 => Leaves::Surely(Exited),
            64 if self.old && !self.new => Leaves::Surely(Exited),
            64 if self.new => Leaves::Surely(Sleeping),
            64 => Leaves::ExitedOrParked,
            // The flag of preemption: 256, or a bit above all states.
            _ if state & 0xff == 0 && (state == 256 || state >= 1024) => Leaves::Surely(Preempted),
            _ => Leaves::Surely(Sleeping),
        }
    }
}

fn of_letters(text: &[u8]) -> Option<Leaves> {
    Some(match text.first()? {
        b'R' => Leaves::Surely(SwitchOut::Preempted),
        b'X' | b'Z' => Leaves::Surely(SwitchOut::Exited),
        b'x' => Leaves::ExitedOrParked,
        b'S' | b'D' | b'T' | b't' | b'P' | b'I' | b'W' | b'K' | b'N' | b'n' => {
            Leaves::Surely(SwitchOut::Sleeping)
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_by_the_kernel_that_wrote_them() {
        use SwitchOut::{Exited, Preempted, Sleeping};
        let (unsure, mut old, mut new) = (States::default(), States::default(), States::default());
        old.note(4096);
        new.note(256);
        let of = |states: States, n| states.of_number(n);
        for states in [unsure, old, new] {
            for (n, how) in [
                (0, Preempted),
                (256, Preempted),
                (1024, Preempted),
                (4096, Preempted),
                (1, Sleeping),
                (2, Sleeping),
                (130, Sleeping),
                (128, Sleeping),
                (8, Sleeping),
                (512, Sleeping),
                (1026, Sleeping),
                (16, Exited),
                (32, Exited),
            ] {
                assert_eq!(of(states, n), Leaves::Surely(how), "{n}");
            }
        }
        assert_eq!(of(unsure, 64), Leaves::ExitedOrParked);
        assert_eq!(of(old, 64), Leaves::Surely(Exited), "dead");
        assert_eq!(of(new, 64), Leaves::Surely(Sleeping), "parked");
    }

    #[test]
    fn letters_of_every_tool_say_how_a_task_left() {
        use SwitchOut::{Exited, Preempted, Sleeping};
        for (text, how) in [
            ("R", Preempted),
            ("R+", Preempted),
            ("S", Sleeping),
            ("D|K", Sleeping),
            ("I", Sleeping),
            ("W", Sleeping),
            ("P", Sleeping),
            ("X", Exited),
            ("Z|X", Exited),
        ] {
            assert_eq!(of_letters(text.as_bytes()), Some(Leaves::Surely(how)), "{text}");
        }
        assert_eq!(of_letters(b"x"), Some(Leaves::ExitedOrParked));
        assert_eq!((of_letters(b""), of_letters(b"?")), (None, None));
    }
}
