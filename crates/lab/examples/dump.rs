use risetime_lab::{record, set};
use risetime_trace::Event;
use risetime_vm::Vm;
use risetime_vm::fetch::Cache;
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (a, b): (f64, f64) = (args[1].parse().unwrap(), args[2].parse().unwrap());
    let (vm, kernel) = Vm::find(&Cache::from_env().unwrap(), None).unwrap();
    for case in set(1) {
        if case.name != args[0] {
            continue;
        }
        let e = case.experiment(kernel.rev()).unwrap();
        let mut r = record(&vm, &e).unwrap();
        match args.get(3).map(String::as_str) {
            Some("free") => {
                r = risetime_lab::verify(&e, &r, risetime_analysis::verify::Mode::Free)
                    .unwrap()
                    .trace
            }
            Some("given") => {
                r = risetime_lab::verify(&e, &r, risetime_analysis::verify::Mode::Given)
                    .unwrap()
                    .trace
            }
            _ => {}
        }
        let mut names = std::collections::BTreeMap::new();
        for (at, ev) in r.events() {
            if let Event::TaskNew { task, comm, .. } = ev {
                names.insert(*task, comm.to_string());
            }
            let t = at.0 as f64 / 1e6;
            if t >= a && t < b {
                println!("{t:12.6} {ev:?}");
            }
        }
        println!("{names:?}");
    }
}
