//! Time that idle states take. QEMU comes back from each at once; here a program in the kernel (BPF) lets the time pass.
//!
//! ```text
//! cpu_idle N     the number N is kept for this CPU; interrupts are off: it spins for the way in
//! WFI
//! cpu_idle -1    interrupts are still off: it spins for the way out of N
//! ```
//!
//! So a wakeup during an entry waits for its end and the way out, interrupts come when both are over, and a wake list is looked
//! at then. Traces tell of the state from the beginning of the way in to the end of the way out: who spins for the one comes
//! to the tracepoint after the trace, who spins for the other before it.
//!
//! Source: kernel/sched/idle.c:default_idle_call; drivers/cpuidle/cpuidle.c:cpuidle_enter_state.
//! Leaves out: another virtual CPU that takes the host's thread meanwhile makes a way longer, by up to its turn; what the idle
//! governor measures has the ways not in it (`vm-idle-measured`).

use risetime_sys::bpf::{Array, Insn, call_at};
use std::io;
use std::os::fd::OwnedFd;

/// Places of a CPU in the array: the ways of its states, two each, then its number.
const PLACES: u32 = 32;
const KEPT: u32 = PLACES - 2;
/// States that fit, the kernel's limit is 10.
const STATES: usize = KEPT as usize / 2;

/// The tracepoint at the ways in and out.
const CPU_IDLE: &str = "cpu_idle";

/// Idle states that take time, as long as this lives.
#[derive(Debug)]
pub(crate) struct IdleTimes {
    array: Array,
    /// The place that says whether they do yet.
    on: u32,
    programs: Vec<OwnedFd>,
}

impl IdleTimes {
    /// Makes the ways out ready, before a trace is told of the states. `ways`: ns into and out of each state, of each CPU.
    ///
    /// Errors: the system's, where the kernel has no BPF or not what is asked of it.
    pub(crate) fn prepare(ways: &[Vec<[u64; 2]>]) -> io::Result<IdleTimes> {
        let on = ways.len() as u32 * PLACES;
        let array = Array::new(on + 1)?;
        for (cpu, states) in (0..).zip(ways) {
            if states.len() > STATES {
                return Err(io::Error::other(format!("more than {STATES} idle states")));
            }
            for (place, ns) in (cpu * PLACES..).zip(states.iter().flatten()) {
                array.set(place, *ns)?;
            }
        }
        let mut idle = IdleTimes { array, on, programs: Vec::new() };
        idle.spin(Way::Out)?;
        Ok(idle)
    }

    /// Makes the ways in ready, when a trace is told of the states.
    ///
    /// Errors: the system's.
    pub(crate) fn complete(&mut self) -> io::Result<()> {
        self.spin(Way::In)
    }

    fn spin(&mut self, way: Way) -> io::Result<()> {
        let (program, function) = spin(self.array.number(), self.on, way);
        self.programs.push(call_at(CPU_IDLE, &program, &[function])?);
        Ok(())
    }

    /// Begins: idle states take time from here on.
    pub(crate) fn begin(&self) -> io::Result<()> {
        self.array.set(self.on, 1)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    In,
    Out,
}

/// Instructions, as Documentation/bpf/standardization/instruction-set.rst numbers them.
#[derive(Default)]
struct Program {
    code: Vec<Insn>,
    /// Jumps to the end, by their places.
    to_end: Vec<usize>,
}

/// Registers: the result, arguments, those that calls leave alone, the stack's end.
const R0: u8 = 0;
const R1: u8 = 1;
const R2: u8 = 2;
const R3: u8 = 3;
const R4: u8 = 4;
const R6: u8 = 6;
const R7: u8 = 7;
const R8: u8 = 8;
const R10: u8 = 10;
const LOAD_64: u8 = 0x79;
const STORE_32: u8 = 0x63;
const STORE_64: u8 = 0x7b;
const SET: u8 = 0xb7;
const COPY: u8 = 0xbf;
const COPY_32: u8 = 0xbc;
const ADD: u8 = 0x07;
const ADD_REGISTER: u8 = 0x0f;
const SHIFT_LEFT: u8 = 0x67;
const IF_EQUAL: u8 = 0x15;
const IF_NOT_EQUAL: u8 = 0x55;
const IF_ABOVE: u8 = 0x25;
const IF_LESS_REGISTER: u8 = 0xad;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
const NUMBER_64: u8 = 0x18;
/// Kinds of a 64-bit number: a map, a function's place.
const MAP: u8 = 1;
const FUNCTION: u8 = 4;
// Functions of the kernel's, by their numbers (`__BPF_FUNC_MAPPER`).
const MAP_LOOKUP_ELEM: i32 = 1;
const KTIME_GET_NS: i32 = 5;
const LOOP: i32 = 181;
/// The most rounds of a loop; some 80 ns each.
const MAX_ROUNDS: i32 = 1 << 23;

impl Program {
    fn put(&mut self, code: u8, to: u8, from: u8, offset: i16, number: i32) {
        let ([a, b], [c, d, e, f]) = (offset.to_le_bytes(), number.to_le_bytes());
        self.code.push([code, to | from << 4, a, b, c, d, e, f]);
    }
    fn number(&mut self, code: u8, to: u8, number: i32) {
        self.put(code, to, 0, 0, number);
    }
    fn registers(&mut self, code: u8, to: u8, from: u8) {
        self.put(code, to, from, 0, 0);
    }
    fn wide(&mut self, to: u8, kind: u8, number: i32) {
        self.put(NUMBER_64, to, kind, 0, number);
        self.put(0, 0, 0, 0, 0);
    }
    /// Ends the program if the comparison holds.
    fn end_if(&mut self, code: u8, register: u8, number: i32) {
        self.to_end.push(self.code.len());
        self.number(code, register, number);
    }
    /// Puts into R0 where the array's place R1 is.
    fn look_up(&mut self, map: i32) {
        self.put(STORE_32, R10, R1, -4, 0);
        self.registers(COPY, R2, R10);
        self.number(ADD, R2, -4);
        self.wide(R1, MAP, map);
        self.number(CALL, 0, MAP_LOOKUP_ELEM);
        self.end_if(IF_EQUAL, R0, 0);
    }
    fn end(&mut self) {
        let end = self.code.len();
        for at in std::mem::take(&mut self.to_end) {
            let [a, b] = ((end - at - 1) as i16).to_le_bytes();
            (self.code[at][2], self.code[at][3]) = (a, b);
        }
        self.number(SET, R0, 0);
        self.number(EXIT, 0, 0);
    }
}

/// Returns the program at `cpu_idle(state, cpu)`, which spins for a way of the state. The program of the way in keeps the state's number plus 1, that of the
/// way out, for which the state is -1, takes it. With it the place of its function.
fn spin(map: i32, on: u32, way: Way) -> (Vec<Insn>, u32) {
    let mut p = Program::default();
    p.put(LOAD_64, R6, R1, 0, 0);
    p.put(LOAD_64, R7, R1, 8, 0);
    p.number(ADD, R6, 1);
    p.registers(COPY_32, R6, R6);
    p.registers(COPY_32, R7, R7);
    p.number(SHIFT_LEFT, R7, PLACES.ilog2() as i32);
    p.end_if(if way == Way::In { IF_EQUAL } else { IF_NOT_EQUAL }, R6, 0);
    p.registers(COPY, R1, R7);
    p.number(ADD, R1, KEPT as i32);
    p.look_up(map);
    match way {
        Way::In => p.put(STORE_64, R0, R6, 0, 0),
        Way::Out => {
            p.put(LOAD_64, R1, R0, 0, 0);
            p.put(STORE_64, R0, R6, 0, 0);
            p.registers(COPY, R6, R1);
        }
    }
    p.end_if(IF_EQUAL, R6, 0);
    p.end_if(IF_ABOVE, R6, STATES as i32);
    p.number(SET, R1, on as i32);
    p.look_up(map);
    p.put(LOAD_64, R1, R0, 0, 0);
    p.end_if(IF_EQUAL, R1, 0);
    p.registers(COPY, R1, R6);
    p.number(ADD, R1, -1);
    p.number(SHIFT_LEFT, R1, 1);
    p.registers(ADD_REGISTER, R1, R7);
    p.number(ADD, R1, way as i32);
    p.look_up(map);
    p.put(LOAD_64, R8, R0, 0, 0);
    p.end_if(IF_EQUAL, R8, 0);
    p.number(CALL, 0, KTIME_GET_NS);
    p.registers(ADD_REGISTER, R8, R0);
    p.put(STORE_64, R10, R8, -16, 0);
    p.number(SET, R1, MAX_ROUNDS);
    let names = p.code.len();
    p.wide(R2, FUNCTION, 0);
    p.registers(COPY, R3, R10);
    p.number(ADD, R3, -16);
    p.number(SET, R4, 0);
    p.number(CALL, 0, LOOP);
    p.end();
    let function = p.code.len();
    p.code[names][4..].copy_from_slice(&((function - names - 1) as i32).to_le_bytes());
    // int f(round, until): 1 ends the loop.
    p.registers(COPY, R6, R2);
    p.number(CALL, 0, KTIME_GET_NS);
    p.put(LOAD_64, R1, R6, 0, 0);
    p.registers(COPY, R2, R0);
    p.number(SET, R0, 0);
    p.put(IF_LESS_REGISTER, R2, R1, 1, 0);
    p.number(SET, R0, 1);
    p.number(EXIT, 0, 0);
    (p.code, function as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel that carries out these programs, as far as they go: registers and a stack of 16 bytes, no check of anything.
    struct Kernel {
        array: Vec<u64>,
        now: u64,
    }

    /// Addresses of the stack, the arguments of the tracepoint, and the array.
    const STACK: u64 = 1 << 20;
    const CONTEXT: u64 = 2 << 20;
    const ARRAY: u64 = 3 << 20;

    impl Kernel {
        /// Calls both programs at `cpu_idle`, as they are attached; returns how long that takes.
        fn cpu_idle(&mut self, state: u64, cpu: u64, on: u32) -> u64 {
            let before = self.now;
            for way in [Way::Out, Way::In] {
                let (program, _) = spin(7, on, way);
                self.call(&program, 0, [CONTEXT, 0], &[state, cpu], &mut [0; 2]);
            }
            self.now - before
        }

        fn call(
            &mut self,
            program: &[Insn],
            mut at: usize,
            arguments: [u64; 2],
            context: &[u64],
            stack: &mut [u64; 2],
        ) -> u64 {
            let mut r = [0_u64; 11];
            (r[1], r[2], r[10]) = (arguments[0], arguments[1], STACK);
            loop {
                let [code, registers, a, b, c, d, e, f] = program[at];
                let (to, from) = ((registers & 15) as usize, (registers >> 4) as usize);
                let offset = i64::from(i16::from_le_bytes([a, b]));
                let number = i64::from(i32::from_le_bytes([c, d, e, f])) as u64;
                let there = |base: u64| base.wrapping_add_signed(offset);
                at += 1;
                let jumps = match code {
                    IF_EQUAL => r[to] == number,
                    IF_NOT_EQUAL => r[to] != number,
                    IF_ABOVE => r[to] > number,
                    IF_LESS_REGISTER => r[to] < r[from],
                    _ => false,
                };
                at = if jumps { at.wrapping_add_signed(offset as isize) } else { at };
                match code {
                    SET => r[to] = number,
                    ADD => r[to] = r[to].wrapping_add(number),
                    SHIFT_LEFT => r[to] <<= number,
                    COPY => r[to] = r[from],
                    COPY_32 => r[to] = r[from] & 0xffff_ffff,
                    ADD_REGISTER => r[to] = r[to].wrapping_add(r[from]),
                    NUMBER_64 => {
                        at += 1;
                        r[to] = number;
                    }
                    LOAD_64 => {
                        r[to] = match there(r[from]) {
                            of @ ARRAY.. => self.array[(of - ARRAY) as usize],
                            of @ CONTEXT.. => context[((of - CONTEXT) / 8) as usize],
                            of => stack[((STACK - of) / 8 - 1) as usize],
                        }
                    }
                    STORE_32 | STORE_64 => match there(r[to]) {
                        of @ ARRAY.. => self.array[(of - ARRAY) as usize] = r[from],
                        of => stack[((STACK - of).div_ceil(8) - 1) as usize] = r[from],
                    },
                    CALL => match number as i32 {
                        // One place of the array is one of these addresses.
                        MAP_LOOKUP_ELEM => r[0] = ARRAY + stack[0],
                        KTIME_GET_NS => {
                            self.now += 80;
                            r[0] = self.now;
                        }
                        LOOP => {
                            let function = (at as u64 - 5).wrapping_add(r[2]) as usize;
                            let (rounds, until) = (r[1], r[3]);
                            let mut round = 0;
                            while round < rounds
                                && self.call(program, function, [round, until], context, stack) == 0
                            {
                                round += 1;
                            }
                            r[0] = round;
                        }
                        other => panic!("function {other}"),
                    },
                    EXIT => return r[0],
                    _ => assert!(jumps || matches!(code, 0x15 | 0x55 | 0x25 | 0xad), "{code:#x}"),
                }
            }
        }
    }

    /// Each CPU takes the time of the state that it entered itself, on the way in and on the way out; none before it begins,
    /// none for a state that takes none, or that nobody entered.
    #[test]
    fn a_cpu_spins_for_the_ways_of_the_state_that_it_entered() {
        const EXIT: u64 = 0xffff_ffff;
        let ways =
            [[[0, 1_000], [40_000, 300_000], [0, 2_900_000]], [[0, 0], [7_000, 9_000], [0; 2]]];
        let on = ways.len() as u32 * PLACES;
        let mut kernel = Kernel { array: vec![0; on as usize + 1], now: 5 };
        for (cpu, states) in ways.iter().enumerate() {
            for (i, ns) in states.iter().flatten().enumerate() {
                kernel.array[cpu * PLACES as usize + i] = *ns;
            }
        }
        assert_eq!(kernel.cpu_idle(2, 0, on), 0, "it has not begun");
        kernel.array[on as usize] = 1;
        let near = |took: u64, wanted: u64| took >= wanted && took < wanted + 200;
        assert!(near(kernel.cpu_idle(EXIT, 0, on), 2_900_000), "entered before it began");
        assert_eq!(kernel.cpu_idle(EXIT, 0, on), 0, "nobody entered");
        assert!(near(kernel.cpu_idle(1, 0, on), 40_000));
        assert!(near(kernel.cpu_idle(1, 1, on), 7_000));
        assert!(near(kernel.cpu_idle(EXIT, 0, on), 300_000), "the other CPU's is its own");
        assert!(near(kernel.cpu_idle(EXIT, 1, on), 9_000));
        assert_eq!(kernel.cpu_idle(2, 1, on) + kernel.cpu_idle(EXIT, 1, on), 0, "no time");
    }
}
