fn main() {
    for c in risetime_lab::set(1) {
        if std::env::args().any(|a| a == c.name) {
            println!("{} {}", c.workload, c.settings);
        }
    }
}
