//! A writer of protobuf messages, which has nothing in common with the reader.

/// A message, or a run of fields.
#[derive(Clone, Default)]
pub(crate) struct Proto(pub(crate) Vec<u8>);

impl Proto {
    /// Appends a number without a field.
    pub(crate) fn bare(&mut self, mut n: u64) {
        while n >= 0x80 {
            self.0.push(n as u8 | 0x80);
            n >>= 7;
        }
        self.0.push(n as u8);
    }

    /// A number.
    pub(crate) fn n(mut self, field: u64, n: i64) -> Proto {
        self.bare(field << 3);
        self.bare(n as u64);
        self
    }

    /// Bytes, a text or a message.
    pub(crate) fn b(mut self, field: u64, bytes: impl AsRef<[u8]>) -> Proto {
        self.bare(field << 3 | 2);
        self.bare(bytes.as_ref().len() as u64);
        self.0.extend_from_slice(bytes.as_ref());
        self
    }

    /// Packed numbers.
    pub(crate) fn packed(self, field: u64, numbers: &[i64]) -> Proto {
        let mut of = Proto::default();
        numbers.iter().for_each(|n| of.bare(*n as u64));
        self.b(field, of)
    }
}

impl AsRef<[u8]> for Proto {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// An empty message.
pub(crate) fn m() -> Proto {
    Proto::default()
}

/// A packet of a file.
pub(crate) fn packet(fields: Proto) -> Vec<u8> {
    m().b(1, fields).0
}

/// A bundle of a CPU, as a packet.
pub(crate) fn bundle(cpu: i64, fields: impl Fn(Proto) -> Proto) -> Vec<u8> {
    packet(m().b(1, fields(m().n(1, cpu))).n(10, 1))
}

/// Differences, as the compact form has its times.
fn deltas(times: &[i64]) -> Vec<i64> {
    (0..times.len()).map(|i| times[i] - if i > 0 { times[i - 1] } else { 0 }).collect()
}

/// The compact form: switches (time, state, who comes, priority, name), wakeups (time, who, CPU, priority, name).
pub(crate) fn compact(
    comms: &[&str],
    switches: &[(i64, i64, i64, i64, i64)],
    wakings: &[(i64, i64, i64, i64, i64)],
) -> Proto {
    let column = |of: &[(i64, i64, i64, i64, i64)], n: usize| -> Vec<i64> {
        of.iter().map(|e| [e.0, e.1, e.2, e.3, e.4][n]).collect()
    };
    let mut all = m();
    for comm in comms {
        all = all.b(5, comm);
    }
    all = all.packed(1, &deltas(&column(switches, 0)));
    for (field, n) in [(2, 1), (3, 2), (4, 3), (6, 4)] {
        all = all.packed(field, &column(switches, n));
    }
    all = all.packed(7, &deltas(&column(wakings, 0)));
    for (field, n) in [(8, 1), (9, 2), (10, 3), (11, 4)] {
        all = all.packed(field, &column(wakings, n));
    }
    all
}

/// An ordinary event of the kernel.
pub(crate) fn event(at: i64, pid: i64, number: u64, fields: Proto) -> Proto {
    m().n(1, at).n(2, pid).b(number, fields)
}
