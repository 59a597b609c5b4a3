//! The distribution's packages, through a private configuration.
//!
//! Nothing of the user's system is read but its mirror and its proxies, and nothing of it is
//! changed: sources, lists, status and archives are all below one directory of ours. The
//! status is empty, so that "install" means the whole closure, C library included.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A private apt for one architecture.
#[derive(Debug)]
pub(crate) struct Apt {
    config: PathBuf,
    dir: PathBuf,
}

impl Apt {
    /// An apt for `arch`, with its files below `dir` (lists from before are used again). The suites
    /// are searched together.
    ///
    /// Errors: no apt here, no Debian mirror known, nothing can be written.
    pub(crate) fn new(dir: &Path, arch: &str, suites: &[&str]) -> Result<Apt, String> {
        let mirror = mirror()?;
        for sub in ["lists/partial", "cache/archives/partial"] {
            let sub = dir.join(sub);
            fs::create_dir_all(&sub).map_err(|e| format!("{}: {e}", sub.display()))?;
        }
        let keyring = "/usr/share/keyrings/debian-archive-keyring.gpg";
        let signed = if Path::new(keyring).exists() {
            format!("[signed-by={keyring}] ")
        } else {
            String::new()
        };
        let sources: String =
            suites.iter().map(|s| format!("deb {signed}{mirror} {s} main\n")).collect();
        let at = |name: &str| dir.join(name).display().to_string();
        let mut text =
            String::from("Dir::Etc::main \"/dev/null\";\nDir::Etc::parts \"/dev/null\";\n");
        for (key, value) in [
            ("Dir::Etc::sourcelist", at("sources.list")),
            ("Dir::Etc::sourceparts", "/dev/null".into()),
            ("Dir::Etc::preferences", "/dev/null".into()),
            ("Dir::Etc::preferencesparts", "/dev/null".into()),
            ("Dir::State", at("")),
            ("Dir::State::lists", at("lists")),
            ("Dir::State::status", at("status")),
            ("Dir::Cache", at("cache")),
            ("APT::Architecture", arch.into()),
            ("APT::Architectures", arch.into()),
            ("APT::Sandbox::User", "root".into()),
            ("Acquire::Languages", "none".into()),
            ("Acquire::Retries", "2".into()),
            ("Debug::NoLocking", "true".into()),
        ] {
            text += &format!("{key} {value:?};\n");
        }
        text += &proxies();
        let config = dir.join("apt.conf");
        for (path, text) in [
            (dir.join("sources.list"), sources.as_str()),
            (dir.join("status"), ""),
            (config.clone(), &text),
        ] {
            fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
        }
        Ok(Apt { config, dir: dir.to_path_buf() })
    }

    /// Whether lists are there from an earlier [`Apt::update`].
    pub(crate) fn has_lists(&self) -> bool {
        let lists = fs::read_dir(self.dir.join("lists")).into_iter().flatten().flatten();
        lists.into_iter().any(|e| e.file_name().to_string_lossy().contains("_Packages"))
    }

    /// Fetches the lists of the suites. A suite that the mirror does not have is no error.
    pub(crate) fn update(&self) -> Result<(), String> {
        let done = self.run("apt-get", ["update", "-q"], &self.dir);
        if self.has_lists() { Ok(()) } else { done.and(Err("no list of packages came".into())) }
    }

    /// Names that begin with `prefix` (some may only be provided by others).
    pub(crate) fn names(&self, prefix: &str) -> Result<Vec<String>, String> {
        let text = self.run("apt-cache", ["pkgnames", prefix], &self.dir)?;
        Ok(text.lines().map(str::to_string).collect())
    }

    /// Whether there is a package of this name to download.
    pub(crate) fn has(&self, package: &str) -> bool {
        self.run("apt-get", ["download", "--print-uris", package], &self.dir).is_ok()
    }

    /// Downloads `packages` into `to`.
    pub(crate) fn download(&self, packages: &[String], to: &Path) -> Result<(), String> {
        let args = ["download", "-q"].into_iter().chain(packages.iter().map(String::as_str));
        self.run("apt-get", args, to).map(drop)
    }

    /// Downloads `package` and everything it depends on into `to`.
    pub(crate) fn download_closure(&self, package: &str, to: &Path) -> Result<(), String> {
        fs::create_dir_all(to.join("partial")).map_err(|e| format!("{}: {e}", to.display()))?;
        let archives = format!("Dir::Cache::archives={}", to.display());
        self.run(
            "apt-get",
            [
                "install",
                "-q",
                "-y",
                "--download-only",
                "--no-install-recommends",
                "-o",
                &archives,
                package,
            ],
            to,
        )
        .map(drop)
    }

    fn run<'a>(
        &self,
        program: &str,
        args: impl IntoIterator<Item = &'a str>,
        dir: &Path,
    ) -> Result<String, String> {
        let mut command = Command::new(program);
        command.args(args).env("APT_CONFIG", &self.config).current_dir(dir);
        output(&mut command)
    }
}

/// Runs a program; returns what it prints, or its last words as the error.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let out = command
        .env("LC_ALL", "C")
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .output();
    let out = out.map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => format!("there is no `{name}` here"),
        _ => format!("{name}: {e}"),
    })?;
    if out.status.success() {
        return Ok(String::from_utf8_lossy(&out.stdout).into_owned());
    }
    let errors = String::from_utf8_lossy(&out.stderr);
    let last =
        errors.lines().rfind(|l| !l.trim().is_empty()).unwrap_or("it failed and said nothing");
    Err(format!(
        "{name}: {}",
        last.chars().filter(|c| !c.is_control()).take(300).collect::<String>()
    ))
}

/// Unpacks every package in `debs` into `to`.
pub(crate) fn unpack(debs: &Path, to: &Path) -> Result<(), String> {
    let mut packages: Vec<PathBuf> =
        fs::read_dir(debs).into_iter().flatten().flatten().map(|e| e.path()).collect();
    packages.retain(|p| p.extension() == Some(OsStr::new("deb")));
    packages.sort();
    if packages.is_empty() {
        return Err("no package came".into());
    }
    for package in packages {
        output(Command::new("dpkg-deb").arg("-x").arg(&package).arg(to))?;
    }
    Ok(())
}

/// The Debian mirror that the system uses.
fn mirror() -> Result<String, String> {
    let targets = output(Command::new("apt-get").args([
        "indextargets",
        "--format",
        "$(SITE) $(ORIGIN) $(LABEL)",
        "Created-By: Packages",
    ]))?;
    mirror_in(&targets)
        .ok_or_else(|| "apt knows no Debian mirror here (only Debian packages such kernels)".into())
}

/// The site of the first target that Debian made itself; before any lists were fetched nobody
/// knows who made what, and the path must tell.
fn mirror_in(targets: &str) -> Option<String> {
    let rows: Vec<Vec<&str>> = targets.lines().map(|l| l.split_whitespace().collect()).collect();
    let signed = rows.iter().find(|r| matches!(r[..], [_, "Debian", "Debian"]));
    let by_path = || {
        rows.iter().find(|r| {
            r.len() < 3 && r.first().is_some_and(|s| s.trim_end_matches('/').ends_with("/debian"))
        })
    };
    signed.or_else(by_path).map(|r| r[0].to_string())
}

/// The system's own settings of how to reach a mirror.
fn proxies() -> String {
    let dump = output(Command::new("apt-config").arg("dump")).unwrap_or_default();
    let ours = |l: &&str| {
        ["Acquire::http::", "Acquire::https::", "Acquire::ForceIPv", "Acquire::Check-Valid-Until"]
            .iter()
            .any(|p| l.starts_with(p))
    };
    dump.lines()
        .filter(ours)
        .filter(|l| !l.split(' ').next().unwrap_or("").ends_with("::"))
        .map(|l| format!("{l}\n"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mirror_is_debians_own_and_not_its_security_archive() {
        let of = |t: &str| mirror_in(t);
        let security = "http://a/debian-security Debian Debian-Security\n";
        assert_eq!(of(&format!("https://x.org/node nodesource nodesource\n{security}http://a/debian Debian Debian\n")).as_deref(), Some("http://a/debian"));
        assert_eq!(
            of("http://a/debian-security\nhttp://b/debian/\n").as_deref(),
            Some("http://b/debian/"),
            "before the first update"
        );
        assert_eq!(of("http://a/ubuntu Ubuntu Ubuntu\n"), None);
        assert_eq!(of(security), None);
        assert_eq!(of(""), None);
    }

    #[test]
    fn a_program_that_fails_or_is_not_there_says_so_in_one_line() {
        assert_eq!(
            output(&mut Command::new("risetime-no-such-program")).unwrap_err(),
            "there is no `risetime-no-such-program` here"
        );
        let e = output(Command::new("sh").args(["-c", "echo one >&2; echo two >&2; exit 3"]))
            .unwrap_err();
        assert_eq!(e, "sh: two");
    }
}
