//! Inputs: a file, or bytes in memory.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// An input that can be read as often as needed, at any offset.
#[derive(Debug)]
pub struct Source {
    name: String,
    kind: Kind,
    len: u64,
}

#[derive(Debug)]
enum Kind {
    File(File),
    Bytes(Vec<u8>),
}

impl Source {
    /// Opens a file, which errors name by its path.
    ///
    /// Errors: those of the system; a file that cannot be read twice (a pipe).
    pub fn open(path: &Path) -> io::Result<Source> {
        let file = File::open(path)?;
        Source::file(path.display().to_string(), file)
    }

    /// Returns the input that `file` is, which errors call `name`. Its begin is the file's.
    ///
    /// Errors: those of the system; a file that cannot be read twice (a pipe).
    pub fn file(name: impl Into<String>, file: File) -> io::Result<Source> {
        let kind = file.metadata()?;
        if kind.is_dir() {
            return Err(io::Error::from(io::ErrorKind::IsADirectory));
        }
        let len = (&file).seek(SeekFrom::End(0))?;
        Ok(Source { name: name.into(), kind: Kind::File(file), len })
    }

    /// Returns an input of these bytes, which errors call `name`.
    pub fn bytes(name: impl Into<String>, bytes: Vec<u8>) -> Source {
        Source { name: name.into(), len: bytes.len() as u64, kind: Kind::Bytes(bytes) }
    }

    /// The name by which errors call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its length in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Reads at `offset` until `into` is full or the input ends; returns the number of bytes.
    ///
    /// Errors: those of the system.
    pub fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        match &self.kind {
            Kind::Bytes(bytes) => {
                let rest = usize::try_from(offset).ok().and_then(|at| bytes.get(at..));
                let rest = rest.unwrap_or_default();
                let n = rest.len().min(into.len());
                into[..n].copy_from_slice(&rest[..n]);
                Ok(n)
            }
            Kind::File(file) => {
                let mut file = file;
                file.seek(SeekFrom::Start(offset))?;
                let mut n = 0;
                while n < into.len() {
                    match file.read(&mut into[n..]) {
                        Ok(0) => break,
                        Ok(more) => n += more,
                        Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                        Err(e) => return Err(e),
                    }
                }
                Ok(n)
            }
        }
    }

    /// Returns the input from `offset` on as a stream of its own; several may be read side by side.
    pub fn stream(&self, offset: u64) -> Stream<'_> {
        Stream { source: self, at: offset }
    }

    /// The first `n` bytes, or fewer where there are no more or they cannot be read.
    pub fn head(&self, n: usize) -> Vec<u8> {
        let mut head = vec![0; n.min(usize::try_from(self.len).unwrap_or(n))];
        let got = self.read_at(0, &mut head).unwrap_or(0);
        head.truncate(got);
        head
    }
}

/// An input from an offset on.
#[derive(Clone, Debug)]
pub struct Stream<'a> {
    source: &'a Source,
    at: u64,
}

impl Stream<'_> {
    /// Offset of the next byte in the input.
    pub fn offset(&self) -> u64 {
        self.at
    }
}

impl Read for Stream<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = self.source.read_at(self.at, into)?;
        self.at += n as u64;
        Ok(n)
    }
}
