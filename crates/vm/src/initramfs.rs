//! The root file system of the machine: a `newc` cpio archive, the same bytes every time.
//!
//! ```text
//! /init          the agent                     /job       what it is to do
//! /modules/*.ko  what the kernel needs         /dev /proc /sys /tmp, /dev/console
//! ```
//!
//! Names sorted, times 0, owner 0:0, inode numbers counted: nothing of the machine that made
//! it is in it. Leaves out: links, compression (memory is faster than unpacking under TCG).

use std::collections::BTreeMap;

/// Meaning of a name in the archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// A directory.
    Dir,
    /// A file that may be run.
    Program(Vec<u8>),
    /// A file.
    File(Vec<u8>),
    /// A character device: major, minor.
    Device(u32, u32),
}

/// An archive under construction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Initramfs(BTreeMap<String, Entry>);

impl Initramfs {
    /// An archive with the directories and the console that every init needs.
    pub(crate) fn new() -> Initramfs {
        let mut fs = Initramfs::default();
        for dir in ["dev", "proc", "sys", "tmp"] {
            fs.add(dir, Entry::Dir);
        }
        fs.add("dev/console", Entry::Device(5, 1));
        fs
    }

    /// Adds `entry` at `path` (relative, without leading `/`), and the directories above it.
    pub(crate) fn add(&mut self, path: &str, entry: Entry) {
        for (i, _) in path.match_indices('/') {
            self.0.entry(path[..i].to_string()).or_insert(Entry::Dir);
        }
        self.0.insert(path.to_string(), entry);
    }

    /// The archive. Directories come before what is in them, since names are sorted.
    pub(crate) fn archive(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (i, (path, entry)) in self.0.iter().enumerate() {
            let (mode, data, device): (u32, &[u8], (u32, u32)) = match entry {
                Entry::Dir => (0o040_755, &[], (0, 0)),
                Entry::Program(data) => (0o100_755, data, (0, 0)),
                Entry::File(data) => (0o100_644, data, (0, 0)),
                Entry::Device(major, minor) => (0o020_600, &[], (*major, *minor)),
            };
            let links = if matches!(entry, Entry::Dir) { 2 } else { 1 };
            header(&mut out, path, i as u32 + 1, mode, links, data.len() as u32, device);
            out.extend(data);
            pad(&mut out, 4);
        }
        header(&mut out, "TRAILER!!!", 0, 0, 1, 0, (0, 0));
        pad(&mut out, 512);
        out
    }
}

fn header(
    out: &mut Vec<u8>,
    name: &str,
    inode: u32,
    mode: u32,
    links: u32,
    size: u32,
    device: (u32, u32),
) {
    // inode mode uid gid nlink mtime filesize devmajor devminor rdevmajor rdevminor namesize check
    let fields =
        [inode, mode, 0, 0, links, 0, size, 0, 0, device.0, device.1, name.len() as u32 + 1, 0];
    out.extend(b"070701");
    for f in fields {
        out.extend(format!("{f:08x}").bytes());
    }
    out.extend(name.bytes());
    out.push(0);
    pad(out, 4);
}

fn pad(out: &mut Vec<u8>, to: usize) {
    out.resize(out.len().next_multiple_of(to), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Initramfs {
        let mut fs = Initramfs::new();
        fs.add("modules/a.ko", Entry::File(b"abcde".to_vec()));
        fs.add("init", Entry::Program(b"\x7fELF".to_vec()));
        fs
    }

    /// Names, modes and contents of an archive, read independently of how it was written.
    fn list(archive: &[u8]) -> Vec<(String, u32, Vec<u8>)> {
        let (mut at, mut found) = (0, Vec::new());
        loop {
            assert_eq!(&archive[at..at + 6], b"070701");
            let field = |n: usize| {
                let text = std::str::from_utf8(&archive[at + 6 + n * 8..at + 14 + n * 8]).unwrap();
                u32::from_str_radix(text, 16).unwrap()
            };
            let (size, name_size) = (field(6) as usize, field(11) as usize);
            let name = std::str::from_utf8(&archive[at + 110..at + 110 + name_size - 1]).unwrap();
            assert_eq!([field(2), field(3), field(5)], [0, 0, 0], "{name}: owner and time");
            let data = (at + 110 + name_size).next_multiple_of(4);
            if name == "TRAILER!!!" {
                return found;
            }
            found.push((name.to_string(), field(1), archive[data..data + size].to_vec()));
            at = (data + size).next_multiple_of(4);
        }
    }

    #[test]
    fn an_archive_holds_what_was_added_with_its_directories() {
        let found = list(&sample().archive());
        let names: Vec<&str> = found.iter().map(|f| f.0.as_str()).collect();
        assert_eq!(
            names,
            ["dev", "dev/console", "init", "modules", "modules/a.ko", "proc", "sys", "tmp"]
        );
        assert_eq!((found[2].1, &found[2].2[..]), (0o100_755, &b"\x7fELF"[..]));
        assert_eq!((found[4].1, &found[4].2[..]), (0o100_644, &b"abcde"[..]));
    }

    #[test]
    fn the_order_of_adding_changes_no_byte() {
        let mut other = Initramfs::default();
        other.add("init", Entry::Program(b"\x7fELF".to_vec()));
        other.add("modules/a.ko", Entry::File(b"abcde".to_vec()));
        for (path, entry) in Initramfs::new().0 {
            other.add(&path, entry);
        }
        assert_eq!(other.archive(), sample().archive());
    }

    #[test]
    fn cpio_reads_it_where_it_is_installed() {
        use std::io::Write;
        use std::process::{Command, Stdio};
        let cpio = Command::new("cpio")
            .args(["-t", "--quiet"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let Ok(mut cpio) = cpio else { return };
        cpio.stdin.take().unwrap().write_all(&sample().archive()).unwrap();
        let out = cpio.wait_with_output().unwrap();
        assert!(out.status.success());
        assert_eq!(String::from_utf8(out.stdout).unwrap().lines().count(), 8);
    }
}
