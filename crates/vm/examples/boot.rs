//! Temporary.
use risetime_trace::*;
use risetime_kernel::units::*;
struct Print(std::io::BufWriter<std::fs::File>);
impl TraceSink for Print {
    fn header(&mut self, h: &Header) { use std::io::Write; writeln!(self.0, "{:?} {:?} {:?}", h.settings, h.kernel_release, h.lost).unwrap(); }
    fn event(&mut self, at: Instant, e: &Event<'_>) { use std::io::Write; writeln!(self.0, "{:.6} {e:?}", at.as_ms()).unwrap(); }
    fn end(&mut self, _: Instant) {}
}
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let r = "/tmp/vmx/qemu";
    let l = format!("{r}/usr/lib/x86_64-linux-gnu:{r}/lib/x86_64-linux-gnu");
    let vm = risetime_vm::Vm {
        qemu: risetime_vm::Qemu { version: (10, 0), command: [format!("{r}/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"), "--library-path".into(), l, format!("{r}/usr/bin/qemu-system-aarch64"), "-L".into(), format!("{r}/usr/share/qemu")].map(Into::into).to_vec() },
        kernel: a[1].clone().into(), agent: a[2].clone().into(), shift: 1, limit: Some(std::time::Duration::from_secs(100)),
    };
    let platform = std::sync::Arc::new(risetime_model::Platform::load("m1").unwrap());
    let workload = std::sync::Arc::new(risetime_model::Workload::load(&a[4]).unwrap());
    let policy = risetime_model::Policy::from_arg(&a[5]).unwrap();
    let settings = risetime_model::Settings(policy.set.clone());
    let e = risetime_model::Experiment { platform, workload, policy, settings, duration: Span::from_ms(3000), phase: Span(0), seed: 1 };
    let mut p = Print(std::io::BufWriter::new(std::fs::File::create(&a[3]).unwrap()));
    let t = std::time::Instant::now();
    match vm.run(&e, &mut p) { Ok(o) => println!("{o:?}"), Err(e) => println!("{e}") }
    println!("{:?}", t.elapsed());
}
