//! A frequency domain: its slots, what caps it, in which state it loses speed.

use super::*;

impl Domain {
    /// `full`, `highest`: full speed, and that of its own CPUs at most; whether boost OPPs may be used.
    pub(super) fn new(
        d: &PlatformDomain,
        work: Work,
        (full, highest, boosts): (u64, u64, bool),
    ) -> Domain {
        let slots = d.opps.iter().enumerate().map(|(i, opp)| {
            let speed = work.bound(speed(d, opp.freq), speed(d, d.freq_max()));
            Slot {
                freq: opp.freq,
                speed,
                alone: speed,
                share: of_full(speed, full),
                power_uw: uw(d.busy_power(opp.freq)),
                how: PLAIN,
                opps: i + 1,
                ns: 0,
            }
        });
        Domain {
            of: d.clone(),
            told: 0,
            cpus: d.cpus.clone(),
            capacity: d.capacity.0,
            slots: slots.collect(),
            places: d.opps.iter().enumerate().map(|(i, opp)| ((opp.freq, PLAIN), i)).collect(),
            work,
            nr_opps: d.opps.len(),
            now: 0,
            since: 0,
            chosen: None,
            tells_requests: false,
            looked: 0,
            asked: true,
            boosts,
            full,
            highest: of_full(highest, full),
            freq_state: State::LowFrequency,
            none_bigger: None,
        }
    }

    /// The index of the slot in which a CPU of the domain is now.
    #[inline]
    pub(super) fn slot_of(&self, c: &Cpu) -> usize {
        if c.how == PLAIN { self.now } else { c.slot }
    }

    /// The slot of `freq` and of work of that kind, made if it is new.
    pub(super) fn slot(&mut self, freq: KHz, how: How) -> usize {
        if let Some(i) = self.places.get(&(freq, how)) {
            return *i;
        }
        if self.slots.len() >= FREQS {
            let far =
                |i: &usize| (self.slots[*i].how != how, self.slots[*i].freq.0.abs_diff(freq.0));
            return (0..FREQS).min_by_key(far).unwrap_or(0);
        }
        let opps = &self.slots[..self.nr_opps];
        let below = opps.partition_point(|s| s.freq <= freq);
        let highest = speed(&self.of, self.of.freq_max());
        let plain = self.work.bound(speed(&self.of, freq), highest);
        let kind = how.kind as usize;
        let own = kind.checked_sub(1).and_then(|i| self.of.work.get(i));
        // As in the simulator: the OPP, or the next one above.
        let at = opps.partition_point(|s| s.freq < freq).min(self.nr_opps - 1);
        let alone = own.map_or(plain, |w| share(1024, KHz(w.speed_ppm[at]), KHz(1_000_000)));
        let power_uw = uw(self.of.power_of_work(freq, kind));
        let speed = if how.irq { 0 } else { self.work.beside(alone, how.threads) };
        let slot = Slot {
            freq,
            speed,
            share: of_full(speed, self.full),
            alone,
            // No less than 1: 0 would be unknown.
            power_uw: power_uw / u64::from(how.busy.max(1)) + u64::from(power_uw == 1),
            how,
            opps: below,
            ns: 0,
        };
        self.places.insert((freq, how), self.slots.len());
        self.slots.push(slot);
        self.slots.len() - 1
    }

    /// The state to which running below the highest frequency is charged: the last request explains
    /// the present frequency, unless it wants a higher one that is still to come.
    ///
    /// A refusal by the rate limit, or a cap, is the cause only if more was wanted: the recorded util
    /// (headroom included) reaches what the present frequency gives. A governor that refuses
    /// before it looks at the util records 0 there; that counts, too.
    /// "Unchanged" leaves the reason of the frequency it does not change.
    pub(super) fn freq_state(&self, of: &DomainState) -> State {
        if !self.tells_requests {
            return State::LowFrequency;
        }
        let now = &self.slots[self.now];
        let Some((freq, util, why)) = of.request() else {
            return self.settled();
        };
        let at_least = |speed: u64| util.0 == 0 || util.0.saturating_mul(UNIT) > speed;
        match (why, cap_at(of, now.freq)) {
            (_, Some(cap)) if freq > now.freq => cap,
            _ if freq > now.freq => State::Transition,
            (Why::InProgress, _) => State::Transition,
            (Why::Fixed, _) => self.settled(),
            // All of a CPU whose capacity goes down with its cap.
            (_, Some(cap)) if at_least(now.speed.saturating_sub(UNIT)) => cap,
            (Why::RateLimited, _) if at_least(now.speed) => State::RateLimited,
            _ => self.settled(),
        }
    }

    /// The state that tells why the domain asked for no more.
    pub(super) fn settled(&self) -> State {
        let now = self.slots[self.now].freq;
        match self.chosen {
            Some(Why::Fixed) => State::FixedGovernor,
            _ if self.boosts && now >= self.of.freq_max() => State::BoostNotAsked,
            _ if !self.asked => State::LastAsked,
            Some(Why::UclampMax) => State::UclampMax,
            Some(Why::NotInvariant) => State::NotInvariant,
            _ if now <= self.slots[0].freq => State::LowestOpp,
            _ => State::OppClimb,
        }
    }
}

/// The state of the lowest cap that lets the domain go no faster than `freq`; `None`: no cap
/// does.
fn cap_at(of: &DomainState, freq: KHz) -> Option<State> {
    lowest_cap(of).filter(|(max, _)| freq >= *max).map(|(_, by)| by)
}

/// The lowest cap of all, and whose it is.
pub(super) fn lowest_cap(of: &DomainState) -> Option<(KHz, State)> {
    let caps = Limit::ALL.into_iter().filter_map(|by| Some((of.caps()[by as usize]?, by)));
    let (max, by) = caps.min()?;
    let state = match by {
        Limit::Hardware => State::HwCapped,
        Limit::Heat => State::Cooled,
        Limit::Firmware => State::FirmwareCapped,
        Limit::Budget => State::PowerCapped,
        Limit::User => State::UserCapped,
    };
    Some((max, state))
}
