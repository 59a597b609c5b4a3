//! Packed parts: zlib and zstd.

use flate2::read::ZlibDecoder;
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};
use std::io::Read;

/// Way in which sections and pages of a file are packed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Packing {
    /// Not at all.
    #[default]
    None,
    Zlib,
    Zstd,
}

impl Packing {
    /// The packing that a file calls `name`; `None`: it is not known.
    pub(super) fn of(name: &str) -> Option<Packing> {
        match name {
            "none" | "" => Some(Packing::None),
            "zlib" => Some(Packing::Zlib),
            "zstd" => Some(Packing::Zstd),
            _ => None,
        }
    }

    /// Unpacks `packed`, of which `whole` bytes are wanted; more are left out.
    ///
    /// Errors: data that is not sound, or fewer bytes.
    pub(super) fn unpack(self, packed: &[u8], whole: usize) -> Result<Vec<u8>, String> {
        let mut into = Vec::new();
        let read = match self {
            Packing::None => {
                into = packed.get(..whole).ok_or("too short")?.to_vec();
                Ok(whole)
            }
            Packing::Zlib => ZlibDecoder::new(packed).take(whole as u64).read_to_end(&mut into),
            Packing::Zstd => {
                let decoder = StreamingDecoder::<&[u8], FrameDecoder>::new(packed)
                    .map_err(|e| e.to_string())?;
                decoder.take(whole as u64).read_to_end(&mut into)
            }
        };
        read.map_err(|e| e.to_string())?;
        if into.len() == whole { Ok(into) } else { Err(format!("{} bytes of {whole}", into.len())) }
    }
}
