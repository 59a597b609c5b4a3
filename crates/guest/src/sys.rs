//! The agent's line to the host outside the virtual machine; system calls are those of `risetime_sys`.
//!
//! Semihosting, where a trap instruction in the guest (`hlt #0xf000`) makes QEMU carry out a file
//! operation on the host, holds all the unsafe code of this crate. It needs no device, driver or interrupt,
//! so nothing of it shows in the experiment.
#![allow(unsafe_code)]

pub(crate) use risetime_sys::syscalls::*;
use std::io;

const NSEC: u64 = 1_000_000_000;

/// A file on the host, written or read through semihosting.
#[derive(Debug)]
pub(crate) struct HostFile {
    handle: u64,
}

const SYS_OPEN: u64 = 0x01;
const SYS_CLOSE: u64 = 0x02;
const SYS_WRITE: u64 = 0x05;
const SYS_READ: u64 = 0x06;
const SYS_EXIT: u64 = 0x18;
const MODE_READ_BINARY: u64 = 1;
const MODE_WRITE_BINARY: u64 = 5;
/// No file that is read is longer.
const MAX_READ: usize = 4096;
const STOPPED_APPLICATION_EXIT: u64 = 0x20026;
const FAILED: u64 = u64::MAX;

/// Carries out one semihosting operation. `args` holds what "Semihosting for AArch32 and AArch64"
/// says for it: numbers, and addresses of memory that is present (QEMU does not fault pages in).
#[cfg(target_arch = "aarch64")]
fn semihost(operation: u64, args: &[u64; 3]) -> u64 {
    let result: u64;
    // SAFETY: with `-semihosting-config enable=on,userspace=on` QEMU carries out the operation and
    // goes on behind the instruction; it reads memory, writes to none but the buffer of `read`, which is
    // as long as `args` says, and changes no register but x0. Without it the instruction is an
    // illegal one and the process dies by signal.
    unsafe {
        std::arch::asm!("hlt #0xf000", inlateout("x0") operation => result, in("x1") args.as_ptr(), options(nostack));
    }
    result
}

/// Fails: there is no host behind this machine.
#[cfg(not(target_arch = "aarch64"))]
fn semihost(_operation: u64, _args: &[u64; 3]) -> u64 {
    FAILED
}

impl HostFile {
    /// Creates the file `path` on the host, relative to QEMU's working directory.
    pub(crate) fn create(path: &str) -> io::Result<HostFile> {
        HostFile::open(path, MODE_WRITE_BINARY)
            .ok_or_else(|| io::Error::other(format!("the host cannot create {path}")))
    }

    /// Returns when the file `path` on the host is open; a pipe: when somebody has opened its other end.
    pub(crate) fn wait(path: &str) -> io::Result<()> {
        let fail = || io::Error::other(format!("the host cannot open {path}"));
        HostFile::open(path, MODE_READ_BINARY).map(drop).ok_or_else(fail)
    }

    /// Reads the file `path` on the host.
    pub(crate) fn read(path: &str) -> io::Result<Vec<u8>> {
        let fail = || io::Error::other(format!("the host cannot read {path}"));
        let file = HostFile::open(path, MODE_READ_BINARY).ok_or_else(fail)?;
        // Written to, so that its pages are present.
        let mut buffer = std::hint::black_box(vec![1_u8; MAX_READ]);
        let free = semihost(SYS_READ, &[file.handle, buffer.as_mut_ptr() as u64, MAX_READ as u64]);
        let read = MAX_READ.checked_sub(free as usize).ok_or_else(fail)?;
        buffer.truncate(read);
        Ok(buffer)
    }

    fn open(path: &str, mode: u64) -> Option<HostFile> {
        // A copy, so that the page is present: the original may be in a file not yet read in.
        let mut name = path.as_bytes().to_vec();
        name.push(0);
        match semihost(SYS_OPEN, &[name.as_ptr() as u64, mode, path.len() as u64]) {
            FAILED => None,
            handle => Some(HostFile { handle }),
        }
    }
}

impl io::Write for HostFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let not_written =
            semihost(SYS_WRITE, &[self.handle, bytes.as_ptr() as u64, bytes.len() as u64]);
        match bytes.len().checked_sub(not_written as usize) {
            Some(0) | None if !bytes.is_empty() => {
                Err(io::Error::other("the host cannot write: its disk may be full"))
            }
            written => Ok(written.unwrap_or(0)),
        }
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for HostFile {
    fn drop(&mut self) {
        semihost(SYS_CLOSE, &[self.handle, 0, 0]);
    }
}

/// Ends the virtual machine, with this exit code of QEMU, through semihosting.
pub(crate) fn end_machine(code: u64) -> ! {
    semihost(SYS_EXIT, &[STOPPED_APPLICATION_EXIT, code, 0]);
    switch_off()
}

/// Switches the machine off.
pub(crate) fn switch_off() -> ! {
    loop {
        let _ = rustix::system::reboot(rustix::system::RebootCommand::PowerOff);
        sleep_until(mono() + NSEC);
    }
}
