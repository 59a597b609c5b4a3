use super::*;

/// A directory for one test, removed when it ends.
struct Dir(PathBuf);
impl Dir {
    fn new(name: &str) -> Dir {
        let dir = std::env::temp_dir().join(format!("risetime-test-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        Dir(dir)
    }
    fn file(&self, path: &str, bytes: &[u8]) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}
impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn releases_are_plain_kernels_of_6_1_and_newer_by_number() {
    let names = [
        "linux-image-arm64",
        "linux-image-7.2.9+deb13-arm64",
        "linux-image-7.2.13+deb14-arm64",
        "linux-image-7.2.13+deb14-cloud-arm64",
        "linux-image-7.2.13+deb14-arm64-dbg",
        "linux-image-unsigned-7.9.1-arm64",
        "linux-image-6.11.10-arm64",
        "linux-image-6.12.94+deb12-arm64",
        "linux-image-6.9-arm64",
        "linux-image-6.1.0-50-arm64",
        "linux-image-6.1.0-50-rt-arm64",
        "linux-image-6.1.0-50-arm64-dbg",
        "linux-image-5.10.0-30-arm64",
        "linux-image-10.0-arm64",
    ];
    let wanted = [
        "10.0-arm64",
        "7.2.13+deb14-arm64",
        "7.2.9+deb13-arm64",
        "6.12.94+deb12-arm64",
        "6.11.10-arm64",
        "6.9-arm64",
        "6.1.0-50-arm64",
    ];
    assert_eq!(releases_in(names.into_iter()), wanted);
}

#[test]
fn packages_follow_how_a_release_is_split() {
    let of = |there: &[&str]| packages("R", |p| there.contains(&p));
    let some = |names: &[&str]| Some(names.iter().map(|n| n.to_string()).collect::<Vec<_>>());
    assert_eq!(
        of(&["linux-image-R", "linux-binary-R", "linux-modules-R"]),
        some(&["linux-binary-R", "linux-modules-R"])
    );
    assert_eq!(
        of(&["linux-image-R", "linux-binary-unsigned-R", "linux-modules-R"]),
        some(&["linux-binary-unsigned-R", "linux-modules-R"])
    );
    assert_eq!(of(&["linux-image-R"]), some(&["linux-image-R"]));
    assert_eq!(of(&["linux-modules-R"]), None);
}

#[test]
fn versions_of_qemu() {
    assert_eq!(
        version_in("QEMU emulator version 10.0.2 (Debian 1:10.0.2+ds)\nCopyright"),
        Some((10, 0))
    );
    assert_eq!(version_in("QEMU emulator version 7.2.19"), Some((7, 2)));
    assert_eq!(version_in("something else"), None);
}

#[test]
fn only_whole_kernels_count_and_the_newest_is_taken() {
    let dir = Dir::new("kernels");
    for release in ["hz1000", "7.2.9-arm64", "7.2.13-arm64", ".partial"] {
        dir.file(&format!("kernels/{release}/Image"), b"");
    }
    dir.file("kernels/9.9-arm64/modules/cpufreq-dt.ko", b"");
    dir.file(".work-1/out/Image", b"");
    let cache = Cache::at(&dir.0);
    let names: Vec<String> = cache.kernels().into_iter().map(|k| k.release).collect();
    assert_eq!(names, ["7.2.13-arm64", "7.2.9-arm64", "hz1000"]);
    assert_eq!(cache.kernel(Some("hz1000")).unwrap().release, "hz1000");
    assert_eq!(cache.kernel(None).unwrap().release, "7.2.13-arm64");
    assert_eq!(
        cache.kernel(Some("7.2.9-arm64")).unwrap().image,
        dir.0.join("kernels/7.2.9-arm64/Image")
    );
    assert!(cache.kernel(Some("7.2.8-arm64")).is_err());
    let own = Cache::at(dir.0.join("own"));
    dir.file("own/kernels/hz1000/Image", b"");
    assert!(own.kernel(None).is_err(), "one built here is only taken by its name");
    // What is in the cache is not fetched again: no apt is asked.
    let mut said = Vec::new();
    assert_eq!(
        cache.fetch_kernel(None, &mut |s| said.push(s.to_string())).unwrap().release,
        "7.2.13-arm64"
    );
    assert_eq!(said, [""; 0]);
}

#[test]
fn an_empty_cache_names_the_command_that_fills_it() {
    let dir = Dir::new("empty");
    let e = Cache::at(&dir.0).kernel(None).unwrap_err().to_string();
    assert!(e.contains("risetime vm setup") && e.contains("--kernel"), "{e}");
}

#[test]
fn an_own_image_is_looked_at() {
    let dir = Dir::new("own");
    let mut image = vec![0; 100];
    image[56..60].copy_from_slice(b"ARM\x64");
    dir.file("Image", &image);
    dir.file("text", &[b'x'; 100]);
    dir.file("short", b"x");
    let of = |name: &str| Cache::at(&dir.0).kernel(Some(&dir.0.join(name).display().to_string()));
    assert_eq!(of("Image").unwrap().image, fs::canonicalize(dir.0.join("Image")).unwrap());
    assert!(of("text").unwrap_err().to_string().contains("this is no arm64 kernel"));
    assert!(of("short").unwrap_err().to_string().contains("this is no arm64 kernel"));
    assert!(of("missing").is_err());
    // Other kernels are told by their own signs.
    for (name, at, sign, says) in [
        ("bzImage", 0x202, &b"HdrS"[..], "a bzImage, of x86"),
        ("vmlinuz.efi", 4, b"zimg", "a vmlinuz.efi"),
        ("vmlinux", 0, b"\x7fELF", "an ELF file"),
    ] {
        let mut other = vec![0; 0x400];
        other[at..at + sign.len()].copy_from_slice(sign);
        dir.file(name, &other);
        let said = of(name).unwrap_err().to_string();
        assert!(said.contains(&format!("this is no arm64 kernel: {says}")), "{said}");
    }
    // What an Image needs is in it, or beside it as a module.
    let mut bare = image.clone();
    bare.extend(b"Linux version 7.2.0 (me) #1 SMP PREEMPT\n\0trace_pipe_raw\0");
    dir.file("built/Image", &bare);
    let said = of("built/Image").unwrap_err().to_string();
    let wanted = "built/Image: lacks CONFIG_BLK_DEV_INITRD (the agent comes in an initramfs), \
                  CONFIG_CPUFREQ_DT (frequencies)\n";
    assert!(said.contains(wanted), "{said}");
    bare.extend(b"Initramfs unpacking failed: %s\n\0");
    dir.file("built/Image", &bare);
    assert!(of("built/Image").unwrap_err().to_string().contains("lacks CONFIG_CPUFREQ_DT"));
    dir.file("built/modules/cpufreq-dt.ko", b"x");
    assert!(of("built/Image").is_ok());
    dir.file("built/noise.gz", b"\x1f\x8b not one");
    assert!(of("built/noise.gz").unwrap_err().to_string().contains("gzip cannot unpack it"));
    // An Image with an EFI header says how long it is: 0x50 bytes from 0x200 on.
    let mut efi = vec![0; 0x250];
    for (at, bytes) in [
        (0, &b"MZ"[..]),
        (0x38, b"ARM\x64"),
        (0x3c, b"\x40"),
        (0x40, b"PE\0\0"),
        (0x46, b"\x01"),
        (0x54, b"\x08"),
        (0x58 + 8 + 16, b"\x50\0\0\0\0\x02"),
    ] {
        efi[at..at + bytes.len()].copy_from_slice(bytes);
    }
    dir.file("efi", &efi);
    assert!(of("efi").is_ok());
    dir.file("cut", &efi[..0x24f]);
    assert_eq!(
        of("cut").unwrap_err().to_string().split(": ").skip(1).collect::<Vec<_>>(),
        ["found 591 bytes, wanted 592", "this Image is cut off"]
    );
}

#[test]
fn a_kernel_is_kept_without_what_is_not_needed() {
    let dir = Dir::new("keep");
    dir.file("root/usr/lib/modules/7/vmlinuz", b"image");
    dir.file("root/usr/lib/modules/7/kernel/drivers/cpufreq/cpufreq-dt.ko", b"dt");
    dir.file("root/usr/lib/modules/7/kernel/drivers/net/big.ko", b"net");
    let out = dir.0.join("out");
    fs::create_dir(&out).unwrap();
    keep_kernel(&dir.0.join("root"), &out).unwrap();
    let mut kept = Vec::new();
    walk(&out, &mut kept);
    kept.sort();
    assert_eq!(kept, [out.join("Image"), out.join("modules/cpufreq-dt.ko")]);
    assert_eq!(fs::read(&kept[1]).unwrap(), b"dt");
    fs::remove_file(&kept[1]).unwrap();
    dir.file("bare/boot/vmlinuz-7", b"image");
    let out = dir.0.join("out2");
    fs::create_dir(&out).unwrap();
    assert_eq!(keep_kernel(&dir.0.join("bare"), &out).unwrap_err(), "it has no module cpufreq-dt");
}

#[test]
fn work_that_is_given_up_leaves_nothing() {
    let dir = Dir::new("work");
    // Nobody holds it.
    dir.file(".work.0123456789abcdef/out/Image", b"half");
    {
        let work = Work::new(&dir.0).unwrap();
        work.dir("out").unwrap();
        assert!(!dir.0.join(".work.0123456789abcdef").exists());
    }
    assert_eq!(fs::read_dir(&dir.0).unwrap().count(), 0);
    let work = Work::new(&dir.0).unwrap();
    work.dir("out").unwrap();
    work.publish("out", &dir.0.join("kernels/1")).unwrap();
    assert!(dir.0.join("kernels/1").is_dir());
}

#[test]
fn a_kernel_says_its_generation() {
    let named = |release: &str| Kernel { release: release.into(), image: PathBuf::new() }.rev();
    assert_eq!(named("6.12.94+deb13-arm64"), Some(KernelRev::V6_12));
    assert_eq!(named("99.1.2"), Some(KernelRev::NEWEST), "newer than the newest known");
    assert_eq!(named("build/Image"), None);
    let dir = Dir::new("rev");
    dir.file("Image", b"....Linux version %s (%s)....Linux version 6.12.3-mine (me@here) #1 SMP");
    let kernel = Kernel { release: "Image".into(), image: dir.0.join("Image") };
    assert_eq!(kernel.rev(), Some(KernelRev::V6_12));
    let packed = Command::new("gzip").arg(dir.0.join("Image")).status().unwrap();
    assert!(packed.success());
    let kernel = Kernel { release: "Image.gz".into(), image: dir.0.join("Image.gz") };
    assert_eq!(kernel.rev(), Some(KernelRev::V6_12));
}

#[test]
fn a_release_is_named_by_what_it_begins_with() {
    for (release, name, is) in [
        ("6.12.107+deb13-arm64", "6.12", true),
        ("6.1.0-50-arm64", "6.1", true),
        ("6.12.107+deb13-arm64", "6.1", false),
        ("6.12.107+deb13-arm64", "6.12.107", true),
        ("6.12.107+deb13-arm64", "6.12.10", false),
        ("6.12.107+deb13-arm64", "6.12.", false),
        ("6.12.107+deb13-arm64", "06.12", false),
        ("hz1000", "6.12", false),
        ("6.12.107+deb13-arm64", "", false),
    ] {
        assert_eq!(is_of(release, name), is, "{release} {name}");
    }
    let dir = Dir::new("generation");
    for release in ["6.12.95+deb12-arm64", "6.12.107+deb13-arm64", "6.1.0-50-arm64"] {
        dir.file(&format!("kernels/{release}/Image"), b"");
    }
    let cache = Cache::at(&dir.0);
    let of = |name: &str| cache.fetch_kernel(Some(name), &mut |_| ()).map(|k| k.release);
    assert_eq!(
        of("6.12").unwrap(),
        "6.12.107+deb13-arm64",
        "the newest of it, and nothing is fetched"
    );
    assert_eq!(of("6.1").unwrap(), "6.1.0-50-arm64");
    let boots = |name: &str| cache.kernel(Some(name)).map(|k| k.release).map_err(|e| e.to_string());
    assert_eq!(boots("6.12").unwrap(), "6.12.107+deb13-arm64");
    assert_eq!(boots("6.12.95").unwrap(), "6.12.95+deb12-arm64");
    let unknown = boots("6.13").unwrap_err();
    let all = "there are 6.12.107+deb13-arm64, 6.12.95+deb12-arm64, 6.1.0-50-arm64";
    assert!(unknown.contains(all), "{unknown}");
}

#[test]
fn an_image_says_how_it_was_built() {
    let of = |banner: &str, files: &str| {
        let format = "Linux version %s\0";
        Build::of(format!("..{format}\u{1}{files}Linux version {banner}\n\0..").as_bytes())
    };
    let (old, new) = (
        "6.12.107+deb13-arm64 (gcc) #1 SMP Debian 6.12.107-1",
        "7.3.4-arm64 (gcc) #1 SMP PREEMPT_DYNAMIC Debian",
    );
    let all = "sched_util_clamp_min\0sched_energy_aware\0";
    let build = |preemption: &str, uclamp, energy_model| Build {
        preemption: Some(preemption.into()),
        uclamp: Some(uclamp),
        energy_model: Some(energy_model),
    };
    assert_eq!(of(old, "sched_energy_aware\0"), build("", false, true));
    assert_eq!(of(new, all), build("PREEMPT_DYNAMIC", true, true));
    assert_eq!(
        of(new, "sched_util_clamp_min_rt_default\0"),
        build("PREEMPT_DYNAMIC", false, false)
    );
    assert_eq!(Build::of(b"compressed"), Build::default());
    let dir = Dir::new("build");
    dir.file("Image", b"Linux version 7.2.1 (x) #3 SMP PREEMPT Tue\n");
    let kernel = Kernel { release: "own".into(), image: dir.0.join("Image") };
    assert_eq!(kernel.build(), build("PREEMPT", false, false));
    assert_eq!(kernel.rev(), Some(KernelRev::V7_2));
    let none = Kernel { release: "own".into(), image: dir.0.join("none") };
    assert_eq!(none.build(), Build::default());
}

#[test]
fn an_image_without_its_modules_is_no_release() {
    let of = |names: &[&str]| names.iter().map(|n| n.to_string()).collect::<Vec<_>>();
    let binaries = of(&["linux-binary-7.0.13-arm64", "linux-binary-7.2.9-arm64"]);
    let modules = of(&["linux-modules-7.2.9-arm64"]);
    let whole = |release: &str| is_whole(release, &binaries, &modules);
    assert!(!whole("7.0.13-arm64") && whole("7.2.9-arm64"));
    assert!(whole("6.12.107-arm64"), "image and modules are one package");
}
