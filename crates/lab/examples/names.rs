use risetime_kernel::units::Instant;
use risetime_lab::set;
use risetime_trace::{Backend, Event, Header, TraceSink};
use risetime_vm::Vm;
use risetime_vm::fetch::Cache;
struct S;
impl TraceSink for S {
    fn header(&mut self, _: &Header) {}
    fn event(&mut self, at: Instant, e: &Event<'_>) {
        if let Event::TaskNew { task, comm, cpu, .. } = e {
            println!("{:10.3} {task:?} {comm} {cpu:?}", at.0 as f64 / 1e6);
        }
    }
    fn end(&mut self, _: Instant) {}
}
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (vm, kernel) = Vm::find(&Cache::from_env().unwrap(), None).unwrap();
    for case in set(1) {
        if args.contains(&case.name) {
            let e = case.experiment(kernel.rev()).unwrap();
            vm.run(&e, &mut S).unwrap();
        }
    }
}
