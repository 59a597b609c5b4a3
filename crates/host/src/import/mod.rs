//! Platform files from what other machines and their sources say of themselves.
//!
//! ```text
//! inputs ──told by content──> an importer each (REGISTRY) ──> drafts ──merged, the first wins──> platform, or its gaps
//! ```
//!
//! Nothing is invented: what no input says is named, and what the simulator cannot do without is an error that says
//! which key to write, or which other file to add. A new format is a module here and a line of [`REGISTRY`].

mod config;
mod draft;
mod dt;
mod energy_model;
mod lisa;
mod packed;
mod sysfs;

use crate::Root;
use draft::Draft;
use risetime_model::{Code, InputError, Platform};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Size of an input, unpacked.
const MAX_BYTES: u64 = 256 << 20;

/// A reader of one kind of input.
pub struct Importer {
    /// Name, for `--as`.
    pub name: &'static str,
    /// Description of the inputs that the importer reads.
    pub doc: &'static str,
    /// Whether an input is of this kind.
    tells: fn(&Input) -> bool,
    /// Reads an input.
    read: fn(&Input) -> Result<Draft, InputError>,
}

/// The importers, those first that are told more surely.
pub const REGISTRY: [Importer; 7] = [
    Importer {
        name: "dtb",
        doc: "a flattened device tree",
        tells: |input| input.bytes.starts_with(&dt::dtb::MAGIC),
        read: |input| dt::cpus::draft(&dt::dtb::parse(&input.bytes, &input.name)?, &input.name),
    },
    Importer {
        name: "device-tree",
        doc: "a copied /proc/device-tree: a directory or .tar of it",
        tells: |input| input.root.as_ref().is_some_and(dt::files::tells) && !sysfs::tells(input),
        read: |input| {
            let root = input.tree("a copied /proc/device-tree: a directory, or a .tar of one")?;
            dt::cpus::draft(&dt::files::read(root, &input.name)?, &input.name)
        },
    },
    Importer {
        name: "sysfs",
        doc: "another machine's /sys: a directory or .tar of it, or of a part",
        tells: sysfs::tells,
        read: sysfs::read,
    },
    Importer {
        name: "energy-model",
        doc: "a dump of /sys/kernel/debug/energy_model: a directory, a .tar, or what grep -r printed",
        tells: energy_model::tells,
        read: energy_model::read,
    },
    Importer { name: "lisa", doc: "LISA's plat_info.yml", tells: lisa::tells, read: lisa::read },
    Importer {
        name: "dts",
        doc: "the source of a device tree, with what it includes",
        tells: |input| input.text().is_some_and(is_source),
        read: source,
    },
    Importer {
        name: "config",
        doc: "a kernel's configuration: its HZ",
        tells: config::tells,
        read: config::read,
    },
];

/// A file or directory to be read.
struct Input {
    /// Path of the input, by which errors and sources call it.
    name: String,
    /// The tree of files that it holds, if it is one.
    root: Option<Root>,
    /// Bytes of the file, unpacked; empty: a directory.
    bytes: Vec<u8>,
}

/// Result of [`import`].
#[derive(Clone, Debug)]
pub struct Imported {
    /// The platform file, with a comment for everything missing or derived.
    pub platform_toml: String,
    /// The platform that the file describes; `None`: it has gaps.
    pub platform: Option<Platform>,
    /// Facts that the simulator needs and no input says, a line each that says how to add them.
    pub gaps: Vec<String>,
    /// Facts that no input has, or that have no place in a platform, a line each.
    pub missing: Vec<String>,
    /// Facts that were derived, a line each.
    pub estimates: Vec<String>,
    /// Each input with the importer that read it.
    pub inputs: Vec<(String, &'static str)>,
}

/// Wishes of a person beside the inputs.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    /// The importer of all inputs; `None`: told by their contents.
    pub kind: Option<String>,
    /// Ticks per second.
    pub hz: Option<u32>,
    /// Name of the platform.
    pub name: Option<String>,
}

/// Reads the files and directories `paths`, and puts what they say together.
///
/// Errors: one that cannot be read, or is of no known kind, or broken: with its place.
pub fn import(paths: &[String], wishes: &Wishes) -> Result<Imported, InputError> {
    let mut whole = Draft::default();
    let mut inputs = Vec::new();
    if let Some(hz) = wishes.hz {
        whole.hz = Some(hz);
        whole.source("hz", "given by --hz");
    }
    for path in paths {
        let input = Input::open(path)?;
        let importer = input.importer(wishes.kind.as_deref())?;
        let draft = (importer.read)(&input)?;
        whole.merge(draft, &input.name)?;
        inputs.push((input.name.clone(), importer.name));
    }
    let built = whole.build(wishes.name.as_deref());
    let mut gaps = built.gaps;
    let mut toml = built.platform.to_toml();
    let mut platform = None;
    match gaps.is_empty() {
        false => {
            toml =
                crate::capture::with_gaps(&toml.replace("\ncapacity = 0\n", "\n# capacity = ?\n"))
        }
        true => match Platform::parse(&toml, "the imported file") {
            Ok(read) => platform = Some(read),
            Err(e) => {
                gaps.push(format!("a platform that can be simulated: {}: {}", e.place, e.what))
            }
        },
    }
    let mut text = String::from("# A platform file of Risetime, imported from:\n");
    inputs.iter().for_each(|(name, kind)| text.push_str(&line(&format!("#   {name} ({kind})"))));
    if platform.is_none() {
        text.push_str("# NOT LOADABLE AS IT STANDS: fill in what is marked `= ?`.\n");
    }
    gaps.iter().for_each(|t| text.push_str(&line(&format!("# needed: {t}"))));
    built.missing.iter().for_each(|t| text.push_str(&line(&format!("# missing: {t}"))));
    built.estimates.iter().for_each(|t| text.push_str(&line(&format!("# estimate: {t}"))));
    text.push('\n');
    text.push_str(&toml);
    let (missing, estimates) = (built.missing, built.estimates);
    Ok(Imported { platform_toml: text, platform, gaps, missing, estimates, inputs })
}

/// `text` as one line.
fn line(text: &str) -> String {
    let one: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    one + "\n"
}

impl Input {
    fn open(path: &str) -> Result<Input, InputError> {
        let name: String = path.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
        let fail = |e: std::io::Error| {
            let (code, what) = match e.kind() {
                std::io::ErrorKind::NotFound => (Code::NotFound, "no such file".to_owned()),
                _ => (Code::Unreadable, e.to_string().to_lowercase()),
            };
            InputError::new(&*name, what).code(code)
        };
        let meta = std::fs::metadata(path).map_err(fail)?;
        if meta.is_dir() {
            let root = Some(root_of(Path::new(path)));
            return Ok(Input { name, root, bytes: Vec::new() });
        }
        let read = |from: &mut dyn Read| -> std::io::Result<Vec<u8>> {
            let mut bytes = Vec::new();
            from.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        let mut bytes = read(&mut std::fs::File::open(path).map_err(fail)?).map_err(fail)?;
        if bytes.starts_with(&[0x1f, 0x8b]) {
            bytes = read(&mut flate2::read::GzDecoder::new(&bytes[..])).map_err(fail)?;
        }
        if bytes.len() as u64 > MAX_BYTES {
            return Err(InputError::new(&*name, "too big: more than 256 MiB").code(Code::TooBig));
        }
        Input::of_bytes(name, bytes)
    }

    /// The input `name` of these bytes.
    fn of_bytes(name: String, bytes: Vec<u8>) -> Result<Input, InputError> {
        let mut input = Input { name, root: None, bytes };
        if packed::is_tar(&input.bytes) {
            input.root = Some(Root::of_files(packed::untar(&input.bytes, &input.name)?));
        } else if let Some(files) = input.text().map(packed::printed).filter(|f| !f.is_empty()) {
            input.root = Some(Root::of_files(files));
        }
        Ok(input)
    }

    /// The text, if it is one.
    fn text(&self) -> Option<&str> {
        let text = std::str::from_utf8(&self.bytes).ok()?;
        (!text.is_empty() && !text.contains('\0')).then_some(text)
    }

    /// The tree of files.
    ///
    /// Errors: there is none, `wanted` is what would be one.
    fn tree(&self, wanted: &str) -> Result<&Root, InputError> {
        let none = || InputError::new(&*self.name, format!("is no tree of files, wanted {wanted}"));
        self.root.as_ref().ok_or_else(none)
    }

    fn importer(&self, wanted: Option<&str>) -> Result<&'static Importer, InputError> {
        let names: Vec<&str> = REGISTRY.iter().map(|i| i.name).collect();
        if let Some(name) = wanted {
            return REGISTRY.iter().find(|i| i.name == name).ok_or_else(|| {
                let all = format!("known: {}", names.join(", "));
                InputError::new("--as", format!("nothing is imported as `{name}`"))
                    .hint(risetime_model::meant(name, &names, &all))
                    .code(Code::UnknownName)
            });
        }
        REGISTRY.iter().find(|i| (i.tells)(self)).ok_or_else(|| {
            let docs: Vec<String> =
                REGISTRY.iter().map(|i| format!("{} ({})", i.doc, i.name)).collect();
            InputError::new(&*self.name, "is of no kind that can be imported")
                .hint(format!("known: {}", docs.join("; ")))
        })
    }
}

/// The tree that a directory holds: a whole machine's, its `/sys`, or a part of that.
fn root_of(dir: &Path) -> Root {
    let has = |part: &str| dir.join(part).exists();
    if has("sys") || has("proc/device-tree") {
        return Root::new(dir);
    }
    let part = match () {
        () if has("#address-cells") && has("cpus") => dt::files::DIR,
        () if has("devices/system") || has("kernel/debug") => "/sys",
        () if has("cpu") => "/sys/devices/system",
        () if has("energy_model") => "/sys/kernel/debug",
        () if has("cpufreq") || has("online") || has("cpu0/topology") => "/sys/devices/system/cpu",
        () => energy_model::DIR,
    };
    Root::of_part(dir, part)
}

/// Whether `text` is the source of a device tree.
fn is_source(text: &str) -> bool {
    let node = |line: &str| {
        let line = line.trim();
        line.starts_with("/dts-v1/")
            || line == "/ {"
            || line.starts_with("#include")
            || line.starts_with("/include/")
            || (line.starts_with('&') && line.ends_with('{'))
    };
    text.lines().any(node)
}

/// Reads the source of a device tree.
fn source(input: &Input) -> Result<Draft, InputError> {
    let text = input.text().unwrap_or_default();
    let include = |from: &str, name: &str| {
        let path = included(Path::new(from), name)?;
        let text = std::fs::read(&path).ok()?;
        Some((path.to_string_lossy().into_owned(), String::from_utf8_lossy(&text).into_owned()))
    };
    let read = dt::dts::parse(text, &input.name, &include)?;
    let mut draft =
        dt::cpus::draft(&read.tree, &input.name).map_err(|e| match &read.missing[..] {
            [] => e,
            [first, ..] => e.hint(format!("{first}; give it beside the file, or the .dtb")),
        })?;
    read.missing.iter().for_each(|text| draft.missing(text.clone()));
    Ok(draft)
}

/// The file that `from` includes as `name`: beside it, or in the kernel's tree that it lies in.
fn included(from: &Path, name: &str) -> Option<PathBuf> {
    let plain =
        |path: &PathBuf| std::fs::metadata(path).is_ok_and(|m| m.is_file() && m.len() < 16 << 20);
    let linked = name.split_once('/').map(|(arch, rest)| format!("arch/{arch}/boot/dts/{rest}"));
    let directory = std::path::absolute(from).ok()?;
    let above = directory.ancestors().skip(1).take(8);
    let within = |dir: &Path| {
        let names = [Some(name.to_owned()), Some(format!("include/{name}")), linked.clone()];
        names.into_iter().flatten().map(|name| dir.join(name)).collect::<Vec<_>>()
    };
    let beside = from.parent()?.join(name);
    std::iter::once(beside).chain(above.flat_map(within)).find(plain)
}

#[cfg(test)]
mod tests;
