//! Small programs in the kernel (BPF): tracepoints switched on, and code that is called at them.
//!
//! Source: include/uapi/linux/bpf.h, include/uapi/linux/btf.h; Documentation/bpf/btf.rst.
#![allow(unsafe_code)]

use crate::syscalls::syscall;
use std::ffi::{CString, c_char, c_long};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

#[cfg(target_arch = "aarch64")]
const SYS_BPF: c_long = 280;
#[cfg(target_arch = "x86_64")]
const SYS_BPF: c_long = 321;

const BPF_MAP_CREATE: u64 = 0;
const BPF_MAP_UPDATE_ELEM: u64 = 2;
const BPF_PROG_LOAD: u64 = 5;
const BPF_RAW_TRACEPOINT_OPEN: u64 = 17;
const BPF_BTF_LOAD: u64 = 18;
const BPF_MAP_TYPE_ARRAY: u32 = 2;
const BPF_PROG_TYPE_RAW_TRACEPOINT: u32 = 17;

/// An instruction: code, registers (source above target), offset, number.
pub type Insn = [u8; 8];

/// `r0 = 0; exit`.
const DO_NOTHING: [Insn; 2] = [[0xb7, 0, 0, 0, 0, 0, 0, 0], [0x95, 0, 0, 0, 0, 0, 0, 0]];

/// `union bpf_attr` for BPF_MAP_CREATE, as far as it is needed here.
#[repr(C)]
struct MapCreate {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
}

/// `union bpf_attr` for BPF_MAP_UPDATE_ELEM.
#[repr(C)]
struct MapUpdate {
    map_fd: u32,
    unused: u32,
    key: *const u32,
    value: *const u64,
    flags: u64,
}

/// `union bpf_attr` for BPF_PROG_LOAD, as far as it is needed here.
#[repr(C)]
struct ProgLoad {
    prog_type: u32,
    insn_cnt: u32,
    insns: *const Insn,
    license: *const c_char,
    /// Level, size and place of the verifier's log; what kernel it is of; flags.
    log: [u64; 3],
    prog_name: [u8; 16],
    prog_ifindex: u32,
    expected_attach_type: u32,
    prog_btf_fd: u32,
    func_info_rec_size: u32,
    func_info: *const FuncInfo,
    func_info_cnt: u32,
    unused: u32,
}

/// `struct bpf_func_info`: a function begins at this instruction, and is of this type.
#[repr(C)]
struct FuncInfo {
    insn_off: u32,
    type_id: u32,
}

/// `union bpf_attr` for BPF_BTF_LOAD.
#[repr(C)]
struct BtfLoad {
    btf: *const u8,
    log: u64,
    btf_size: u32,
    unused: [u32; 3],
}

/// `union bpf_attr` for BPF_RAW_TRACEPOINT_OPEN.
#[repr(C)]
struct RawTracepoint {
    name: *const c_char,
    prog_fd: u32,
    unused: u32,
}

/// Numbers that programs in the kernel share with this process.
#[derive(Debug)]
pub struct Array(OwnedFd);

impl Array {
    /// Returns so many numbers, all 0.
    ///
    /// Errors: the system's.
    pub fn new(entries: u32) -> io::Result<Array> {
        let map_type = BPF_MAP_TYPE_ARRAY;
        let create = MapCreate { map_type, key_size: 4, value_size: 8, max_entries: entries };
        Ok(Array(file(BPF_MAP_CREATE, &create)?))
    }

    /// Returns the number by which a program names it.
    pub fn number(&self) -> i32 {
        self.0.as_raw_fd()
    }

    /// Sets the number at `key`.
    ///
    /// Errors: the system's; there is no such place.
    pub fn set(&self, key: u32, value: u64) -> io::Result<()> {
        let map_fd = self.0.as_raw_fd() as u32;
        call(
            BPF_MAP_UPDATE_ELEM,
            &MapUpdate { map_fd, unused: 0, key: &key, value: &value, flags: 0 },
        )?;
        Ok(())
    }
}

/// Switches the kernel's tracepoint `name` on, for as long as what is returned lives: a program that
/// does nothing is called there.
///
/// Errors: the system's.
pub fn switch_on(name: &str) -> io::Result<OwnedFd> {
    call_at(name, &DO_NOTHING, &[])
}

/// Calls `program` at the kernel's tracepoint `name`, for as long as what is returned lives, before whoever comes to
/// it later. `functions`: the instructions at which those of its functions begin that it hands to the kernel.
///
/// Errors: the system's; the kernel's verifier does not like the program.
pub fn call_at(name: &str, program: &[Insn], functions: &[u32]) -> io::Result<OwnedFd> {
    let name = CString::new(name)?;
    let info = |insn_off| FuncInfo { insn_off, type_id: FUNCTION };
    let infos: Vec<FuncInfo> = match functions {
        [] => Vec::new(),
        own => [0].iter().chain(own).map(|at| info(*at)).collect(),
    };
    let btf = match functions {
        [] => None,
        _ => Some(types()?),
    };
    let load = ProgLoad {
        prog_type: BPF_PROG_TYPE_RAW_TRACEPOINT,
        insn_cnt: program.len() as u32,
        insns: program.as_ptr(),
        license: c"GPL".as_ptr(),
        log: [0; 3],
        prog_name: [0; 16],
        prog_ifindex: 0,
        expected_attach_type: 0,
        prog_btf_fd: btf.as_ref().map_or(0, |fd| fd.as_raw_fd() as u32),
        func_info_rec_size: if infos.is_empty() { 0 } else { size_of::<FuncInfo>() as u32 },
        func_info: if infos.is_empty() { std::ptr::null() } else { infos.as_ptr() },
        func_info_cnt: infos.len() as u32,
        unused: 0,
    };
    let program = file(BPF_PROG_LOAD, &load)?;
    let prog_fd = program.as_raw_fd() as u32;
    file(BPF_RAW_TRACEPOINT_OPEN, &RawTracepoint { name: name.as_ptr(), prog_fd, unused: 0 })
}

/// The type of all functions in [`types`].
const FUNCTION: u32 = 3;

/// Returns the types that a kernel wants to be told of a program that hands it functions: `static int f()`.
fn types() -> io::Result<OwnedFd> {
    const NAMES: &[u8] = b"\0int\0f\0";
    const INT: u32 = 1 << 24;
    const FUNC: u32 = 12 << 24;
    const FUNC_PROTO: u32 = 13 << 24;
    const SIGNED_32: u32 = 1 << 24 | 32;
    // Name, kind, size or type; 1: int, 2: int (), 3: f, which is a 2.
    let all = [1, INT, 4, SIGNED_32, 0, FUNC_PROTO, 1, 5, FUNC, 2];
    let length = all.len() as u32 * 4;
    // Magic number and version 1, length of this header; then where types and names are.
    let header = [0x0001_eb9f, 24, 0, length, length, NAMES.len() as u32];
    let mut bytes: Vec<u8> = header.iter().chain(&all).flat_map(|n| n.to_ne_bytes()).collect();
    bytes.extend(NAMES);
    let btf_size = bytes.len() as u32;
    file(BPF_BTF_LOAD, &BtfLoad { btf: bytes.as_ptr(), log: 0, btf_size, unused: [0; 3] })
}

/// A command of `bpf` that gives a file.
fn file<T>(command: u64, attr: &T) -> io::Result<OwnedFd> {
    let fd = call(command, attr)?;
    // SAFETY: these commands return a new file, which nobody else has.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A command of `bpf`; `T` is its part of `union bpf_attr`.
fn call<T>(command: u64, attr: &T) -> io::Result<i32> {
    // SAFETY: bpf(command, attr, size) reads `size` bytes from `attr`, which lives through the call and
    // is as large as that says, and what it points to, which does, too; it writes nothing there.
    let done =
        unsafe { syscall(SYS_BPF, command, std::ptr::from_ref(attr), size_of::<T>() as u64) };
    i32::try_from(done).ok().filter(|n| *n >= 0).ok_or_else(io::Error::last_os_error)
}
