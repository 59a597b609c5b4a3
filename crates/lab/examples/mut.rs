use risetime_lab::{Recorded, catch, record, set};
use risetime_vm::Vm;
use risetime_vm::fetch::Cache;
fn main() {
    let (vm, kernel) = Vm::find(&Cache::from_env().unwrap(), None).unwrap();
    let recorded: Vec<Recorded> = set(1)
        .into_iter()
        .map(|case| {
            let experiment = case.experiment(kernel.rev()).unwrap();
            let reference = record(&vm, &experiment).unwrap();
            Recorded { case, experiment, reference }
        })
        .collect();
    for c in catch(&recorded).unwrap() {
        println!(
            "{} {} {:?}",
            c.name,
            c.failed,
            c.by.map(|(a, m, k)| (a, m.as_str(), k.name, k.measured, k.why))
        );
    }
}
