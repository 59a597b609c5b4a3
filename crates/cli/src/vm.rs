//! `risetime vm`: kernels and QEMU for the virtual machine.

use crate::args::Vm as Args;
use crate::output::{self, Failure};
use risetime_vm::Vm;
use risetime_vm::fetch::{Cache, Kernel};
use std::io::IsTerminal;
use std::process::ExitCode;

pub(crate) fn vm(args: &Args) -> Result<ExitCode, Failure> {
    let cache = Cache::from_env()?;
    match args {
        Args::Setup => {
            let kernel = cache.fetch_kernel(None, &mut output::note)?;
            let qemu = cache.fetch_qemu(&mut output::note)?;
            let (major, minor) = qemu.version;
            let page = format!("kernel  {}\nQEMU    {major}.{minor}\n", kernel.release);
            output::print(&page)?;
            // The agent is built, not fetched.
            find(&cache, None)?;
            Ok(ExitCode::SUCCESS)
        }
        Args::Kernels => kernels(&cache),
        Args::Fetch { release } => {
            let kernel = cache.fetch_kernel(release.as_deref(), &mut output::note)?;
            output::print(&format!("{}\n", kernel.release))
        }
        Args::Shell { platform, kernel } => {
            let platform = risetime_lab::names::platform(platform)?;
            let (vm, kernel) = find(&cache, kernel.as_deref())?;
            let what = format!("{} on {}", kernel.release, platform.name);
            if std::io::stdin().is_terminal() {
                output::note(&format!("{what}; Ctrl-A X ends it"));
                vm.shell(&platform)?;
            } else {
                output::note(&what);
                vm.commands(&platform, std::io::stdin().lock(), &mut output::stdout())?;
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// The virtual machine with the kernel that was asked for; says which that is where only its beginning was named.
pub(crate) fn find(cache: &Cache, asked: Option<&str>) -> Result<(Vm, Kernel), Failure> {
    let (vm, kernel) = Vm::find(cache, asked, risetime_sim::catalogue())?;
    let begins = |asked: &&str| kernel.release.starts_with(asked) && kernel.release != *asked;
    if let Some(asked) = asked.filter(begins) {
        output::note(&format!(
            "kernel {asked}: {} is the newest such in the cache",
            kernel.release
        ));
    }
    Ok((vm, kernel))
}

fn kernels(cache: &Cache) -> Result<ExitCode, Failure> {
    let here: Vec<String> = cache.kernels().into_iter().map(|k| k.release).collect();
    let mut page: String = here.iter().map(|r| format!("{r}  in the cache\n")).collect();
    // Without apt there is nothing more to list, which is no failure.
    let there = cache.available().unwrap_or_default();
    page.extend(there.iter().filter(|r| !here.contains(r)).map(|r| format!("{r}\n")));
    if page.is_empty() {
        output::note("no kernel here yet: risetime vm setup gets the newest of the mirror");
    }
    output::print(&page)
}
