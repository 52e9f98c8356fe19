//! What reports must say: sums over the raw events.

use super::calendar::Day;
use super::events::{Events, Request, Status, YEARS};

/// How many events of each status: approved, noFunds, pending, rejected.
pub(crate) type Sums = [i64; 4];

/// The events of each key, in time order.
pub(crate) struct Truth {
    /// Where each key's events begin.
    first: Vec<usize>,
    events: Vec<(Day, Status)>,
}

impl Truth {
    pub(crate) fn of(events: &Events) -> Truth {
        let mut first = vec![0; events.users as usize + 2];
        for event in &events.all {
            if let Some(count) = first.get_mut(event.key as usize + 1) {
                *count += 1;
            }
        }
        let mut total = 0;
        for count in &mut first {
            total += *count;
            *count = total;
        }
        let mut next = first.clone();
        let mut sorted = vec![(0, Status::Approved); events.all.len()];
        for event in &events.all {
            if let Some(place) = next.get_mut(event.key as usize) {
                if let Some(slot) = sorted.get_mut(*place) {
                    *slot = (event.day, event.status);
                }
                *place += 1;
            }
        }
        Truth { first, events: sorted }
    }

    /// The events of one key.
    pub(crate) fn of_key(&self, key: u32) -> &[(Day, Status)] {
        let place = |at: usize| self.first.get(at).copied().unwrap_or_default();
        self.events.get(place(key as usize)..place(key as usize + 1)).unwrap_or_default()
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = u32> + use<> {
        1..u32::try_from(self.first.len()).unwrap_or(u32::MAX) - 1
    }

    /// The five reports of a request.
    pub(crate) fn reports(&self, request: Request) -> [Sums; 5] {
        YEARS.map(|years| self.sums(request.key, request.start(years), request.end))
    }

    fn sums(&self, key: u32, start: Day, end: Day) -> Sums {
        let events = self.of_key(key);
        let place = |day: Day| events.partition_point(|(of, _)| *of < day);
        let mut sums = [0; 4];
        for (_, status) in events.get(place(start)..place(end)).unwrap_or_default() {
            if let Some(sum) = sums.get_mut(*status as usize) {
                *sum += 1;
            }
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::super::random::Random;
    use super::*;

    #[test]
    fn reports_are_sums_over_the_raw_events() {
        let events = Events::generate(600, 7);
        let truth = Truth::of(&events);
        assert_eq!(truth.keys().map(|key| truth.of_key(key).len()).sum::<usize>(), events.all.len());
        let mut random = Random::seeded(3);
        for _ in 0..20 {
            let request = Request::random(&mut random, events.users);
            let plainly = YEARS.map(|years| {
                Status::ALL.map(|status| {
                    let range = request.start(years)..request.end;
                    let of = |event: &&super::super::events::Event| {
                        event.key == request.key && event.status == status && range.contains(&event.day)
                    };
                    events.all.iter().filter(of).count() as i64
                })
            });
            assert_eq!(truth.reports(request), plainly);
        }
    }
}
