//! Kernels and QEMU: what is here, and how to get what is not.
//!
//! ```text
//! CACHE/kernels/RELEASE/Image, modules/*.ko      a stock arm64 kernel, at least 6.1
//! CACHE/kernels/NAME/Image                       one built here (`make kernel-hz1000`)
//! CACHE/qemu/VERSION/…                           QEMU with its libraries, where the system's
//!                                                is older than 8.2 or missing
//! CACHE/apt/ARCH/…                               lists of packages
//! CACHE/boots/KEY                                fingerprints of runs
//! CACHE/references/NAME-KEY.trace.gz             what kernels did, for `verify --mode spread`
//! ```
//!
//! CACHE is `$RISETIME_CACHE`, else `risetime` in the user's cache directory. An entry is made
//! in a directory of another name and renamed when it is whole: what has its name is a result.
//! Only [`Cache::fetch_kernel`] and [`Cache::fetch_qemu`] use a network.

use crate::Qemu;
use crate::apt::{Apt, output, unpack};
use risetime_kernel::KernelRev;
use risetime_model::InputError;
use risetime_model::output::Scratch;
use risetime_trace::RunError;
use std::cmp::Reverse;
use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The oldest kernel that is fetched.
const OLDEST: KernelRev = KernelRev::V6_1;
/// QEMU before 8.1 shares time among busy CPUs so that one gets all of it until the next
/// timer: an interrupt between CPUs took up to 1 ms, a sugov thread ran 25 ms late. Before 8.2 it writes its state into a
/// file by way of a shell alone.
const OLDEST_QEMU: (u32, u32) = (8, 2);
/// No kernel or module is longer, unpacked: what QEMU itself unpacks at most (LOAD_IMAGE_MAX_GUNZIP_BYTES).
const MAX_IMAGE: u64 = 256 << 20;
/// Suites where stock kernels are, newest first in most years.
const KERNEL_SUITES: &[&str] =
    &["sid", "trixie-backports", "trixie", "bookworm-backports", "bookworm"];
/// Debian suite of the QEMU that is fetched: one, so that its libraries fit together.
const QEMU_SUITES: &[&str] = &["trixie"];
/// First bytes of a compressed Image.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// Free space that a fetch needs, in MB: packages and what is in them.
const SPACE_MB: u64 = 800;
/// The command that fetches whatever is missing.
const SETUP: &str = "risetime vm setup";

/// The user's cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache(PathBuf);

/// Description that an Image has of how it was built; `None`: it does not say (it is compressed,
/// say).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Build {
    /// Preemption as the banner says it: `PREEMPT`, `PREEMPT_DYNAMIC`, …; empty: nothing.
    pub preemption: Option<String>,
    /// CONFIG_UCLAMP_TASK.
    pub uclamp: Option<bool>,
    /// CONFIG_ENERGY_MODEL, and with it energy-aware scheduling.
    pub energy_model: Option<bool>,
}

/// A kernel that can be booted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// `uname -r`, or the path of a user's own.
    pub release: String,
    /// The kernel's Image; `modules/` beside it holds its modules.
    pub image: PathBuf,
}

impl Cache {
    /// The cache that the environment names.
    ///
    /// Errors: there is neither a cache directory nor a home.
    pub fn from_env() -> Result<Cache, RunError> {
        let var = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let dir = var("RISETIME_CACHE")
            .or_else(|| Some(var("XDG_CACHE_HOME")?.join("risetime")))
            .or_else(|| Some(var("HOME")?.join(".cache/risetime")));
        let dir = dir.ok_or_else(|| {
            RunError::Unavailable(
                "no cache directory: set RISETIME_CACHE, XDG_CACHE_HOME or HOME".into(),
            )
        })?;
        // QEMU and apt run in directories of their own.
        let named = |e| RunError::Unavailable(format!("{}: {e}", dir.display()));
        std::path::absolute(&dir).map(Cache).map_err(named)
    }

    /// A cache in `dir`.
    pub fn at(dir: impl Into<PathBuf>) -> Cache {
        Cache(dir.into())
    }

    /// The directory of the fingerprints of runs.
    pub(crate) fn boots(&self) -> PathBuf {
        self.0.join("boots")
    }

    /// The directory of recorded runs of kernels.
    pub fn references(&self) -> PathBuf {
        self.0.join("references")
    }

    /// The kernels in the cache, newest first; those built here, which have names, come last.
    pub fn kernels(&self) -> Vec<Kernel> {
        let entries = fs::read_dir(self.0.join("kernels")).into_iter().flatten().flatten();
        let kernel = |e: fs::DirEntry| {
            Some(Kernel {
                release: e.file_name().to_str()?.to_string(),
                image: e.path().join("Image"),
            })
        };
        let mut all: Vec<Kernel> = entries
            .filter_map(kernel)
            .filter(|k| k.image.is_file() && !k.release.starts_with('.'))
            .collect();
        all.sort_by_cached_key(|k| (!k.is_stock(), Reverse(numbers(&k.release))));
        all
    }

    /// The kernel to boot: `image` if given (a path, the release of one in the cache, or what that begins with: the
    /// newest such), else the newest stock one in the cache.
    ///
    /// Errors: there is none; how to get one.
    pub fn kernel(&self, image: Option<&str>) -> Result<Kernel, RunError> {
        let cached = self.kernels();
        match image {
            None => {
                let kernel = cached.into_iter().find(Kernel::is_stock).ok_or_else(|| {
                    RunError::Unavailable(format!(
                        "no kernel here: run `{SETUP}` (or give your own Image with --kernel)"
                    ))
                })?;
                kernel.check_whole().map(|()| kernel)
            }
            Some(name) => {
                let exact = cached.iter().find(|k| k.release == name);
                if exact.is_none() && Path::new(name).is_file() {
                    return own_image(name);
                }
                let begun = || cached.iter().find(|k| k.is_stock() && is_of(&k.release, name));
                let kernel = exact.or_else(begun).ok_or_else(|| no_such_kernel(name, &cached))?;
                kernel.check_whole().map(|()| kernel.clone())
            }
        }
    }

    /// Releases that the last look at the mirror showed, newest first.
    ///
    /// Errors: no apt here.
    pub fn available(&self) -> Result<Vec<String>, RunError> {
        let apt = self.kernel_apt()?;
        if !apt.has_lists() {
            return Ok(Vec::new());
        }
        releases(&apt)
    }

    /// Gets `release`, one of those that it begins (`6.12`), or any: the newest such in the cache, and only where there is none the
    /// newest of the mirror. `say` hears what is being done.
    ///
    /// Errors: no apt, no network, no such kernel, no space.
    pub fn fetch_kernel(
        &self,
        release: Option<&str>,
        say: &mut dyn FnMut(&str),
    ) -> Result<Kernel, RunError> {
        if let Some(kernel) = self.kernels().into_iter().find(|k| match release {
            Some(r) => r == k.release || (k.is_stock() && is_of(&k.release, r)),
            None => k.is_stock(),
        }) {
            return Ok(kernel);
        }
        let work = Work::new(&self.0)?;
        let apt = self.kernel_apt()?;
        say("looking for kernels");
        apt.update().map_err(no_network)?;
        let known = releases(&apt)?;
        let newest =
            |r: &str| known.iter().find(|k| *k == r).or(known.iter().find(|k| is_of(k, r)));
        let release = match release {
            Some(r) if newest(r).is_some() => newest(r).cloned().unwrap_or_default(),
            Some(r) => {
                return Err(RunError::Unavailable(format!(
                    "kernel {r}: not on the mirror; there are {}",
                    known.join(", ")
                )));
            }
            None => known.into_iter().next().ok_or_else(|| {
                RunError::Unavailable("the mirror has no arm64 kernel of 6.1 or newer".into())
            })?,
        };
        say(&format!("fetching kernel {release} (about 100 MB)"));
        let packages = packages(&release, |p| apt.has(p)).ok_or_else(|| {
            RunError::Unavailable(format!("kernel {release}: its packages are not on the mirror"))
        })?;
        let debs = work.dir("debs")?;
        apt.download(&packages, &debs).map_err(no_network)?;
        say("unpacking");
        let root = work.dir("root")?;
        unpack(&debs, &root).map_err(RunError::Unavailable)?;
        let out = work.dir("out")?;
        keep_kernel(&root, &out)
            .map_err(|e| RunError::Unavailable(format!("kernel {release}: {e}")))?;
        let to = self.0.join("kernels").join(&release);
        work.publish("out", &to)?;
        Ok(Kernel { release, image: to.join("Image") })
    }

    /// A QEMU that is new enough: the system's, else the cache's.
    ///
    /// Errors: there is none; how to get one.
    pub fn qemu(&self) -> Result<Qemu, RunError> {
        let system = vec![OsString::from("qemu-system-aarch64")];
        let found = version(&system);
        if let Some(version) = found.filter(|v| *v >= OLDEST_QEMU) {
            return Ok(Qemu { command: system, version });
        }
        let mut cached: Vec<PathBuf> = fs::read_dir(self.0.join("qemu"))
            .into_iter()
            .flatten()
            .flatten()
            .map(|e| e.path())
            .collect();
        cached.sort_by_cached_key(|p| Reverse(numbers(&p.display().to_string())));
        cached.iter().find_map(|dir| unpacked_qemu(dir)).ok_or_else(|| {
            let what = found.map_or("no QEMU here".to_string(), |(a, b)| {
                format!("QEMU here is {a}.{b}, wanted 8.2 or newer")
            });
            let dir = self.0.display().to_string();
            if !cached.is_empty() && dir.contains([':', ';', '$']) {
                return RunError::Unavailable(format!(
                    "{what}, and no loader finds libraries in {dir}: RISETIME_CACHE names a \
                     directory without `:`, `;` and `$`"
                ));
            }
            RunError::Unavailable(format!(
                "{what}: run `{SETUP}` (or install one: apt-get install qemu-system-arm)"
            ))
        })
    }

    /// Gets a QEMU, unless one is there that is new enough.
    ///
    /// Errors: no apt, no network, no space.
    pub fn fetch_qemu(&self, say: &mut dyn FnMut(&str)) -> Result<Qemu, RunError> {
        if let Ok(qemu) = self.qemu() {
            return Ok(qemu);
        }
        let work = Work::new(&self.0)?;
        let arch = output(Command::new("dpkg").arg("--print-architecture")).map_err(no_apt)?;
        let apt = Apt::new(&self.0.join("apt").join(arch.trim()), arch.trim(), QEMU_SUITES)
            .map_err(no_apt)?;
        say("looking for QEMU");
        apt.update().map_err(no_network)?;
        let debs = work.dir("debs")?;
        say("fetching QEMU (about 40 MB)");
        apt.download_closure("qemu-system-arm", &debs).map_err(no_network)?;
        say("unpacking");
        let root = work.dir("out")?;
        unpack(&debs, &root).map_err(RunError::Unavailable)?;
        for needless in ["usr/share", "etc", "var"] {
            let _ = fs::remove_dir_all(root.join(needless));
        }
        let (major, minor) = match unpacked_qemu(&root).map(|q| q.version) {
            Some(v) if v >= OLDEST_QEMU => v,
            _ => {
                return Err(RunError::Unavailable(
                    "the QEMU that was fetched does not run here".into(),
                ));
            }
        };
        let to = self.0.join("qemu").join(format!("{major}.{minor}"));
        work.publish("out", &to)?;
        self.qemu()
    }

    fn kernel_apt(&self) -> Result<Apt, RunError> {
        Apt::new(&self.0.join("apt/arm64"), "arm64", KERNEL_SUITES).map_err(no_apt)
    }
}

fn no_apt(e: String) -> RunError {
    RunError::Unavailable(format!(
        "{e}: cannot fetch anything; give your own Image with --kernel and install QEMU 8.2 or newer (qemu-system-aarch64)"
    ))
}
fn no_network(e: String) -> RunError {
    RunError::Unavailable(format!(
        "{e}\n  hint: is there a network, and does `apt-get update` work?"
    ))
}

/// Whether `release` is one of those that `name` begins: `6.12.107-arm64` is of `6.12` and of `6.12.107`, not of `6.1`.
fn is_of(release: &str, name: &str) -> bool {
    let goes_on = |c: char| c.is_ascii_digit();
    let rest = release.strip_prefix(name).filter(|_| name.ends_with(goes_on));
    rest.is_some_and(|rest| !rest.starts_with(goes_on))
}

fn no_such_kernel(name: &str, cached: &[Kernel]) -> RunError {
    let here: Vec<&str> = cached.iter().map(|k| k.release.as_str()).collect();
    let hint = match here.as_slice() {
        [] => format!("there is none yet: `{SETUP}` gets one"),
        here => format!("there are {}; `risetime vm fetch {name}` looks for it", here.join(", ")),
    };
    let what = "neither an Image nor a kernel in the cache";
    RunError::Unavailable(format!("{name}: {what}\n  hint: {hint}"))
}

/// The numbers in a name, in order, for comparing versions.
fn numbers(name: &str) -> Vec<u64> {
    name.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect()
}

/// Releases that are packaged and new enough, newest first.
fn releases(apt: &Apt) -> Result<Vec<String>, RunError> {
    let names = |of: &str| apt.names(of).map_err(RunError::Unavailable);
    let (binaries, modules) = (names("linux-binary-")?, names("linux-modules-")?);
    let mut all = releases_in(names("linux-image-")?.iter().map(String::as_str));
    all.retain(|release| is_whole(release, &binaries, &modules));
    Ok(all)
}

/// Whether a release can be booted from what is there. Where image and modules are apart, a mirror may keep
/// the one, which is signed, longer than the other.
fn is_whole(release: &str, binaries: &[String], modules: &[String]) -> bool {
    let of = |names: &[String], kind: &str| names.iter().any(|n| *n == format!("{kind}-{release}"));
    !of(binaries, "linux-binary") || of(modules, "linux-modules")
}

/// `linux-image-7.2.13+deb14-arm64` and `linux-image-6.1.0-50-arm64` are releases; their flavours
/// (cloud, rt), their debug symbols and names without a version are not.
fn releases_in<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let release = |name: &'a str| {
        let release = name.strip_prefix("linux-image-")?;
        let version = release.strip_suffix("-arm64")?;
        let mut parts = version.split('-');
        let plain = version.starts_with(|c: char| c.is_ascii_digit())
            && parts.next().is_some()
            && parts.all(|p| !p.is_empty() && p.bytes().all(|b| b.is_ascii_digit()));
        (plain && KernelRev::of_release(version)? >= OLDEST).then(|| release.to_string())
    };
    let mut all: Vec<String> = names.filter_map(release).collect();
    all.sort_by_cached_key(|r| Reverse(numbers(r)));
    all.dedup();
    all
}

/// The packages that hold image and modules of `release`.
fn packages(release: &str, there: impl Fn(&str) -> bool) -> Option<Vec<String>> {
    let first = |kinds: &[&str]| kinds.iter().map(|k| format!("{k}-{release}")).find(|p| there(p));
    let modules = first(&["linux-modules"]);
    let image = match modules {
        // Image and modules are apart.
        Some(_) => {
            first(&["linux-binary", "linux-binary-unsigned", "linux-image", "linux-image-unsigned"])
        }
        None => first(&["linux-image", "linux-image-unsigned"]),
    };
    Some([image?].into_iter().chain(modules).collect())
}

/// Moves the Image and the cpufreq modules out of unpacked packages.
fn keep_kernel(root: &Path, out: &Path) -> Result<(), String> {
    let mut files = Vec::new();
    walk(root, &mut files);
    files.sort();
    let name = |p: &Path| p.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let image = files
        .iter()
        .find(|p| name(p).starts_with("vmlinuz"))
        .ok_or("there is no image in its packages")?;
    fs::rename(image, out.join("Image")).map_err(|e| format!("{}: {e}", image.display()))?;
    fs::create_dir(out.join("modules")).map_err(|e| e.to_string())?;
    let wanted = |p: &&PathBuf| {
        p.display().to_string().contains("/drivers/cpufreq/cpufreq") && name(p).contains(".ko")
    };
    for module in files.iter().filter(wanted) {
        let file = name(module);
        let stem = file.split(".ko").next().unwrap_or(&file);
        let to = out.join("modules").join(format!("{stem}.ko"));
        let bytes = match module.extension().and_then(|e| e.to_str()) {
            Some("xz") => decompress("xz", module),
            Some("zst") => decompress("zstd", module),
            _ => read_image(module),
        };
        let bytes = bytes.map_err(|e| format!("{}: {e}", module.display()))?;
        fs::write(&to, bytes).map_err(|e| format!("{}: {e}", to.display()))?;
    }
    if out.join("modules/cpufreq-dt.ko").exists() {
        Ok(())
    } else {
        Err("it has no module cpufreq-dt".into())
    }
}

/// Unpacks `file` by the program `with`, up to what a kernel may have.
fn decompress(with: &str, file: &Path) -> Result<Vec<u8>, String> {
    let mut command = Command::new(with);
    command.arg("-dc").arg(file).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|_| {
        let package = if with == "xz" { "xz-utils" } else { with };
        format!("there is no `{with}` here: apt-get install {package}")
    })?;
    let bytes = bounded(child.stdout.take());
    // Nobody reads on where there is too much.
    let _ = bytes.is_err().then(|| child.kill());
    let status = child.wait().map_err(|e| e.to_string())?;
    match bytes {
        Ok(_) if !status.success() => Err(format!("{with} cannot unpack it")),
        bytes => bytes,
    }
}

/// Reads all that `from` has.
///
/// Errors: more than [`MAX_IMAGE`].
fn bounded(from: Option<impl Read>) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let from = from.into_iter().map(|from| from.take(MAX_IMAGE + 1));
    for mut from in from {
        from.read_to_end(&mut bytes).map_err(|e| e.to_string())?;
    }
    match bytes.len() as u64 > MAX_IMAGE {
        true => Err(format!("too big: more than {} MiB unpacked", MAX_IMAGE >> 20)),
        false => Ok(bytes),
    }
}

fn walk(dir: &Path, found: &mut Vec<PathBuf>) {
    for e in fs::read_dir(dir).into_iter().flatten().flatten() {
        match e.file_type() {
            Ok(t) if t.is_dir() => walk(&e.path(), found),
            Ok(t) if t.is_file() => found.push(e.path()),
            _ => {}
        }
    }
}

/// A user's own kernel: an arm64 Image.
fn own_image(path: &str) -> Result<Kernel, RunError> {
    let image =
        fs::canonicalize(path).map_err(|e| RunError::Unavailable(format!("{path}: {e}")))?;
    let mut head = Vec::new();
    let read = fs::File::open(&image)
        .and_then(|f| std::io::Read::read_to_end(&mut std::io::Read::take(f, 64), &mut head));
    read.map_err(|e| RunError::Unavailable(format!("{path}: {e}")))?;
    let kernel = Kernel { release: path.to_string(), image };
    let packed = head.starts_with(&GZIP);
    let text = if packed { decompress("gzip", &kernel.image) } else { read_image(&kernel.image) };
    let text = text.map_err(|what| InputError::new(path, what))?;
    if !is_image(&text) {
        let what = format!("this is no arm64 kernel{}", what_else(&text, packed));
        return Err(InputError::new(path, what)
            .hint("wanted arch/arm64/boot/Image or Image.gz")
            .into());
    }
    kernel.check_whole()?;
    kernel.check_options(&text)?;
    Ok(kernel)
}

fn read_image(path: &Path) -> Result<Vec<u8>, String> {
    fs::File::open(path).map_err(|e| e.to_string()).and_then(|file| bounded(Some(file)))
}

/// Whether these bytes begin as an Image of arm64 does (Documentation/arch/arm64/booting.rst).
fn is_image(bytes: &[u8]) -> bool {
    bytes.get(56..60) == Some(b"ARM\x64")
}

/// Names what a file is that is no Image, for a message.
fn what_else(bytes: &[u8], packed: bool) -> &'static str {
    let at = |place: usize, is: &[u8]| bytes.get(place..).is_some_and(|rest| rest.starts_with(is));
    match () {
        _ if at(0x202, b"HdrS") => ": a bzImage, of x86",
        _ if at(4, b"zimg") => ": a vmlinuz.efi, which packs the Image that is wanted",
        _ if at(0, b"\x7fELF") => ": an ELF file, as vmlinux is",
        _ if at(0x24, b"\x18\x28\x6f\x01") => ": a zImage, of 32-bit Arm",
        _ if at(0x38, b"RSC\x05") => ": an Image of RISC-V",
        _ if at(0, b"\x27\x05\x19\x56") => ": a uImage",
        _ if at(0, b"\xd0\x0d\xfe\xed") => ": a FIT or a device tree",
        _ if at(0, b"\x28\xb5\x2f\xfd") => ": packed with zstd",
        _ if at(0, b"\xfd7zXZ") => ": packed with xz",
        _ if packed => ": what it packs is something else",
        _ => "",
    }
}

/// Options that no run can do without: a text that an Image has where the option is built in, the
/// option, and the module that may stand in its place.
const NEEDED: [(&[u8], &str, Option<&str>); 3] = [
    (
        b"Initramfs unpacking failed",
        "CONFIG_BLK_DEV_INITRD (the agent comes in an initramfs)",
        None,
    ),
    (b"trace_pipe_raw", "CONFIG_FTRACE with CONFIG_ENABLE_DEFAULT_TRACERS (traces)", None),
    (b"failed register driver", "CONFIG_CPUFREQ_DT (frequencies)", Some("cpufreq-dt.ko")),
];

impl Kernel {
    /// Whether the Image is as long as it says, if it says so (one that can be booted by EFI does).
    ///
    /// Errors: it is cut off.
    fn check_whole(&self) -> Result<(), RunError> {
        let place = self.image.display().to_string();
        let fail = |e: std::io::Error| RunError::Unavailable(format!("{place}: {e}"));
        let mut head = Vec::new();
        let file = fs::File::open(&self.image).map_err(fail)?;
        let found = file.metadata().map_err(fail)?.len();
        std::io::Read::read_to_end(&mut std::io::Read::take(file, 4096), &mut head)
            .map_err(fail)?;
        match efi_length(&head) {
            Some(wanted) if found < wanted => Err(InputError::new(
                place,
                format!("found {found} bytes, wanted {wanted}: this Image is cut off"),
            )
            .into()),
            _ => Ok(()),
        }
    }

    /// Whether what is needed is built into its Image, unpacked in `text`, or lies in `modules/` beside it. One that
    /// does not even say its release is not asked.
    ///
    /// Errors: what is missing.
    fn check_options(&self, text: &[u8]) -> Result<(), RunError> {
        if banners(text).next().is_none() {
            return Ok(());
        }
        let modules = self.image.with_file_name("modules");
        let is_there = |module: Option<&str>| module.is_some_and(|m| modules.join(m).is_file());
        let missing = |(words, _, module): &&(&[u8], &str, Option<&str>)| {
            find(text, words).next().is_none() && !is_there(*module)
        };
        let all: Vec<&str> = NEEDED.iter().filter(missing).map(|(_, option, _)| *option).collect();
        if all.is_empty() {
            return Ok(());
        }
        let hint =
            "build it in (=y); a module is looked for as modules/cpufreq-dt.ko beside the Image";
        Err(InputError::new(&self.release, format!("lacks {}", all.join(", "))).hint(hint).into())
    }

    /// Whether it was fetched: then it is called by its release.
    fn is_stock(&self) -> bool {
        self.release.starts_with(|c: char| c.is_ascii_digit())
    }

    /// The build options of the kernel, as far as its Image says.
    pub fn build(&self) -> Build {
        self.text().map(|text| Build::of(&text)).unwrap_or_default()
    }

    /// The contents of the Image, unpacked.
    fn text(&self) -> Option<Vec<u8>> {
        let image = read_image(&self.image).ok()?;
        if image.starts_with(&GZIP) { decompress("gzip", &self.image).ok() } else { Some(image) }
    }

    /// The kernel's generation, as far as one is known here: by its release, else by what stands in
    /// the Image; `None`: it does not say. One newer than the newest known counts as that one.
    pub fn rev(&self) -> Option<KernelRev> {
        let rev_in = |text: &str| KernelRev::of_release(text).map(KernelRev::known);
        rev_in(&self.release).or_else(|| {
            let image = self.text()?;
            banners(&image).find_map(rev_in)
        })
    }
}

impl Build {
    /// Reads build options from the texts in an Image: names of files that only an option brings,
    /// and the banner.
    fn of(image: &[u8]) -> Build {
        let banner =
            banners(image).find(|b| KernelRev::of_release(b).is_some() && b.contains(" SMP"));
        // Compressed: nothing of it is readable, and nothing follows.
        let Some(banner) = banner else { return Build::default() };
        let has = |text: &[u8]| find(image, text).next().is_some();
        let after = banner.split(" SMP").nth(1).unwrap_or_default();
        let words = after.split_whitespace().take_while(|w| w.starts_with("PREEMPT"));
        Build {
            preemption: Some(words.collect::<Vec<_>>().join(" ")),
            uclamp: Some(has(b"sched_util_clamp_min\0")),
            energy_model: Some(has(b"sched_energy_aware\0")),
        }
    }
}

/// Iterates over the places of `text` in `image`.
fn find<'i>(image: &'i [u8], text: &'i [u8]) -> impl Iterator<Item = usize> + 'i {
    let first = text.first().copied().unwrap_or_default();
    let starts = image.iter().enumerate().filter(move |(_, b)| **b == first);
    starts.map(|(at, _)| at).filter(move |at| image[*at..].starts_with(text))
}

/// Iterates over what follows each "Linux version " of an Image, up to the end of its text: the
/// first may be of a format.
fn banners(image: &[u8]) -> impl Iterator<Item = &str> {
    const BANNER: &[u8] = b"Linux version ";
    const LONGEST: usize = 512;
    find(image, BANNER).filter_map(|at| {
        let text = &image[at + BANNER.len()..];
        let text = &text[..text.len().min(LONGEST)];
        let end = text.iter().position(|b| *b == 0 || *b == b'\n').unwrap_or(text.len());
        std::str::from_utf8(&text[..end]).ok()
    })
}

/// The length that a file with this PE header must have: up to the end of its last section.
fn efi_length(head: &[u8]) -> Option<u64> {
    let number = |at: usize, size: usize| {
        let bytes = head.get(at..at.checked_add(size)?)?;
        Some(bytes.iter().rev().fold(0, |n, b| n << 8 | usize::from(*b)))
    };
    let pe = number(0x3c, 4).filter(|_| head.starts_with(b"MZ"))?;
    if head.get(pe..pe.checked_add(4)?) != Some(b"PE\0\0") {
        return None;
    }
    let (sections, options) = (number(pe + 6, 2)?, number(pe + 20, 2)?);
    let end = |section| {
        let at = pe + 24 + options + 40 * section;
        Some((number(at + 16, 4)? + number(at + 20, 4)?) as u64)
    };
    (0..sections).filter_map(end).max()
}

/// The version that a QEMU prints.
fn version(command: &[OsString]) -> Option<(u32, u32)> {
    let text = output(Command::new(&command[0]).args(&command[1..]).arg("--version")).ok()?;
    version_in(&text)
}

/// `QEMU emulator version 10.0.2 (Debian …)`.
fn version_in(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split("version ").nth(1)?.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// A QEMU unpacked below `root`, run by its own loader with its own libraries; `None`: it is
/// not whole, or does not run.
fn unpacked_qemu(root: &Path) -> Option<Qemu> {
    let mut dirs: Vec<PathBuf> = ["usr/lib", "lib"]
        .iter()
        .flat_map(|d| fs::read_dir(root.join(d)).into_iter().flatten().flatten())
        .map(|e| e.path())
        .collect();
    dirs.retain(|d| d.is_dir() && d.display().to_string().contains("-linux-gnu"));
    dirs.sort();
    let loader = dirs
        .iter()
        .flat_map(|d| fs::read_dir(d).into_iter().flatten().flatten())
        .map(|e| e.path())
        .find(|p| {
            let name = p.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("ld-linux") || name.starts_with("ld64")
        })?;
    let libraries = std::env::join_paths(&dirs).ok()?;
    let program = root.join("usr/bin/qemu-system-aarch64");
    let command = vec![loader.into(), "--library-path".into(), libraries, program.into()];
    let version = version(&command)?;
    Some(Qemu { command, version })
}

/// The free space where `dir` is or will be, in MB; `None`: unknown.
fn free_mb(dir: &Path) -> Option<u64> {
    let there = dir.ancestors().find(|d| d.exists())?;
    let table = output(Command::new("df").arg("-Pk").arg(there)).ok()?;
    let blocks: u64 = table.lines().nth(1)?.split_whitespace().nth(3)?.parse().ok()?;
    Some(blocks * 1024 / 1_000_000)
}

/// A directory for work in progress, beside the results so that a rename can publish it.
#[derive(Debug)]
struct Work(Scratch);

impl Work {
    fn new(cache: &Path) -> Result<Work, RunError> {
        // apt was seen to wait for ever on a disk that is full.
        if let Some(found) = free_mb(cache).filter(|mb| *mb < SPACE_MB) {
            return Err(RunError::Unavailable(format!(
                "{}: found {found} MB of free space, wanted {SPACE_MB} MB (RISETIME_CACHE names \
                 another directory)",
                cache.display()
            )));
        }
        let made = fs::create_dir_all(cache).and_then(|()| Scratch::new(cache, ".work"));
        made.map(Work).map_err(|e| RunError::Unavailable(format!("{}: {e}", cache.display())))
    }

    fn dir(&self, name: &str) -> Result<PathBuf, RunError> {
        let dir = self.0.path().join(name);
        fs::create_dir(&dir)
            .map_err(|e| RunError::Unavailable(format!("{}: {e}", dir.display())))?;
        Ok(dir)
    }

    /// Makes directory `name` the result `to`, at once or not at all.
    fn publish(&self, name: &str, to: &Path) -> Result<(), RunError> {
        let parent = to.parent().unwrap_or(to);
        let done =
            fs::create_dir_all(parent).and_then(|()| fs::rename(self.0.path().join(name), to));
        match done {
            // Somebody else was faster with the same.
            Err(_) if to.exists() => Ok(()),
            Err(e) => Err(RunError::Unavailable(format!("{}: {e}", to.display()))),
            Ok(()) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
