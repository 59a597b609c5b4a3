//! `power_allocator`: a PI controller makes a budget of power from the temperature, and cooling devices share it by what
//! they ask for.
//!
//! ```text
//!  err    = control temperature - temperature                      m°C
//!  budget = sustainable + k_po|k_pu · err + k_i · Σ err            k_po above the control temperature, k_pu below
//!  a device's part = budget · what it asks for / what all ask for; what is above its most goes to the others
//!
//!  unset: k_po = sustainable / (control - switch on),  k_pu = 2 · k_po,  k_i = k_pu / 10
//! ```
//!
//! Constants are in units of 2⁻¹⁰ mW/m°C as the kernel has them (in sysfs their whole numbers stand for the same 1/1024). The sum takes in an
//! error below `integral_cutoff` only, and only while it keeps k_i · Σ err below the most power of all devices.
//!
//! Left out: `k_d` (0 unless set), weights of cooling devices (all the same).
//!
//! Source: drivers/thermal/gov_power_allocator.c:pid_controller, estimate_pid_constants, divvy_up_power.

/// `FRAC_BITS`.
const FRAC_BITS: u32 = 10;

/// `mul_frac`.
fn mul_frac(x: i64, y: i64) -> i64 {
    (x * y) >> FRAC_BITS
}

/// Parameters that the controller is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constants {
    /// mW that the zone can shed for ever at the control temperature.
    pub sustainable_power_mw: u32,
    /// Above the control temperature.
    pub k_po: i32,
    /// Below it.
    pub k_pu: i32,
    /// Factor of the sum of errors.
    pub k_i: i32,
    /// Cutoff of the integral, in m°C.
    pub integral_cutoff: i32,
}

impl Constants {
    /// `estimate_pid_constants`; `range`: from switching on to the control temperature, in m°C.
    pub fn estimate(sustainable_power_mw: u32, range: i64) -> Constants {
        let sustainable = i64::from(sustainable_power_mw) << FRAC_BITS;
        let k_pu = (2 * sustainable / range.max(1)) as i32;
        Constants {
            sustainable_power_mw,
            k_po: (sustainable / range.max(1)) as i32,
            k_pu,
            k_i: (k_pu / 10).max(1),
            integral_cutoff: 0,
        }
    }
}

/// The controller of a zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pid {
    err_integral: i64,
}

impl Pid {
    /// `pid_controller`: the budget in mW.
    pub fn pid_controller(
        &mut self,
        k: &Constants,
        control: i64,
        millicelsius: i64,
        max_allocatable_mw: u64,
    ) -> u64 {
        let most = (max_allocatable_mw as i64) << FRAC_BITS;
        let err = (control - millicelsius) << FRAC_BITS;
        let p = mul_frac(if err < 0 { k.k_po } else { k.k_pu }.into(), err);
        let mut i = mul_frac(k.k_i.into(), self.err_integral);
        if err < i64::from(k.integral_cutoff) << FRAC_BITS {
            let next = i + mul_frac(k.k_i.into(), err);
            if next.abs() < most {
                i = next;
                self.err_integral += err;
            }
        }
        let budget = i64::from(k.sustainable_power_mw) + ((p + i) >> FRAC_BITS);
        budget.clamp(0, max_allocatable_mw as i64) as u64
    }
}

/// A cooling device that is to get power, in mW.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PowerActor {
    /// Power that the actor asks for.
    pub req_power: u64,
    /// The most that it can use.
    pub max_power: u64,
    /// Power that the actor gets.
    pub granted_power: u64,
}

/// `divvy_up_power`. Rounding: to nearest.
pub fn divvy_up_power(actors: &mut [PowerActor], budget: u64) {
    let nearest = |x: u64, y: u64| (x + y / 2) / y;
    let total = actors.iter().map(|a| a.req_power).sum::<u64>().max(1);
    let (mut extra, mut room) = (0, 0);
    for a in actors.iter_mut() {
        let part = nearest(a.req_power * budget, total);
        a.granted_power = part.min(a.max_power);
        extra += part - a.granted_power;
        room += a.max_power - a.granted_power;
    }
    if extra == 0 || room == 0 {
        return;
    }
    let extra = extra.min(room);
    for a in actors {
        a.granted_power += nearest((a.max_power - a.granted_power) * extra, room);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn actor(req_power: u64, max_power: u64) -> PowerActor {
        PowerActor { req_power, max_power, granted_power: 0 }
    }

    #[test]
    fn constants_as_the_kernel_estimates_them() {
        // 1000 · 1024 / 10 000 = 102.4; 204.8; 20.4.
        let k = Constants::estimate(1000, 10_000);
        assert_eq!((k.k_po, k.k_pu, k.k_i), (102, 204, 20));
        assert_eq!(Constants::estimate(1, 10_000).k_i, 1);
    }

    #[test]
    fn the_budget_by_hand() {
        let k = Constants::estimate(1000, 10_000);
        let mut pid = Pid::default();
        // 5 K below: 1000 + 5000 · 204/1024 = 1996.09; nothing is summed above the cutoff.
        assert_eq!(pid.pid_controller(&k, 80_000, 75_000, 4000), 1996);
        // At it: what is sustainable.
        assert_eq!(pid.pid_controller(&k, 80_000, 80_000, 4000), 1000);
        // 1 K above: -1000 · 102/1024 = -99.6, Σ: -1000 · 20/1024 = -19.53; 880.86.
        assert_eq!(pid.pid_controller(&k, 80_000, 81_000, 4000), 880);
        // Again: Σ -39.06; 861.3.
        assert_eq!(pid.pid_controller(&k, 80_000, 81_000, 4000), 861);
        // Never more than all devices can use, never less than nothing.
        assert_eq!(pid.pid_controller(&k, 80_000, 20_000, 4000), 4000);
        assert_eq!(pid.pid_controller(&k, 80_000, 120_000, 4000), 0);
    }

    #[test]
    fn what_one_cannot_use_goes_to_the_others() {
        let mut actors = [actor(300, 1000), actor(100, 1000)];
        divvy_up_power(&mut actors, 800);
        assert_eq!(actors.map(|a| a.granted_power), [600, 200]);
        // 600 of 800, of which it can use 400: the other 200 go to the one that has room for 800.
        let mut actors = [actor(300, 400), actor(100, 1000)];
        divvy_up_power(&mut actors, 800);
        assert_eq!(actors.map(|a| a.granted_power), [400, 400]);
        let mut none = [actor(0, 400), actor(0, 1000)];
        divvy_up_power(&mut none, 800);
        assert_eq!(none.map(|a| a.granted_power), [0, 0]);
    }
}
