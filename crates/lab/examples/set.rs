use risetime_analysis::verify::Mode;
use risetime_lab::{record, set, verify};
use risetime_vm::Vm;
use risetime_vm::fetch::Cache;
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (vm, kernel) = Vm::find(&Cache::from_env().unwrap(), None).unwrap();
    let (mut all, mut ok) = (0, 0);
    for case in set(1) {
        if !args.is_empty() && !args.iter().any(|a| case.name.starts_with(a.as_str())) {
            continue;
        }
        let e = case.experiment(kernel.rev()).unwrap();
        let reference = match record(&vm, &e) {
            Ok(r) => r,
            Err(x) => {
                println!("{} VM: {x}", case.name);
                continue;
            }
        };
        for mode in [Mode::Given, Mode::Free] {
            let f = match verify(&e, &reference, mode) {
                Ok(f) => f,
                Err(x) => {
                    println!("{} {}: {x}", case.name, mode.as_str());
                    continue;
                }
            };
            let bad: Vec<_> = f.comparison.checks.iter().filter(|c| !c.holds).collect();
            all += 6;
            ok += f.comparison.held();
            println!(
                "{:24} {:5} {}/6  {}",
                case.name,
                mode.as_str(),
                f.comparison.held(),
                case.settings
            );
            for c in bad {
                println!("      {} {:.1} (band {}): {}", c.name, c.measured, c.band, c.why);
            }
        }
    }
    println!("{ok} of {all}");
}
