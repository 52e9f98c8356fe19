//! The events of the study, made from a seed: users, days and statuses as its generator draws them.
//!
//! Only the number of users scales: the rate per user, the dates, the law of keys and the statuses stay, so every distribution
//! within a bucket stays too.

use super::calendar::{DAY_MS, Date, Day};
use super::random::Random;

/// What an event says happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Status {
    Approved,
    NoFunds,
    Pending,
    Rejected,
}

impl Status {
    pub(crate) const ALL: [Status; 4] = [Status::Approved, Status::NoFunds, Status::Pending, Status::Rejected];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Status::Approved => "approved",
            Status::NoFunds => "noFunds",
            Status::Pending => "pending",
            Status::Rejected => "rejected",
        }
    }

    /// As it is stored.
    pub(crate) fn short(self) -> &'static str {
        match self {
            Status::Approved => "a",
            Status::NoFunds => "n",
            Status::Pending => "p",
            Status::Rejected => "r",
        }
    }
}

/// One event: who, when, what. Its value is always 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) key: u32,
    pub(crate) day: Day,
    pub(crate) status: Status,
}

pub(crate) struct Events {
    /// Keys are 1 to this.
    pub(crate) users: u32,
    /// In time order.
    pub(crate) all: Vec<Event>,
}

/// Events per user and year.
const PER_USER: u32 = 60;

/// 2010-01-01 to 2020-01-01, both whole.
const DAYS: u64 = 3_653;

/// How many events `per_year` makes in all.
pub(crate) fn count(per_year: u32) -> u64 {
    // Event i is at i * 365 days / per_year: those before the end of the last day.
    (DAYS * u64::from(per_year)).div_ceil(365) - 1
}

pub(crate) fn users(per_year: u32) -> u32 {
    per_year.div_ceil(PER_USER).max(1)
}

impl Events {
    pub(crate) fn generate(per_year: u32, seed: u64) -> Events {
        let users = users(per_year);
        let mut random = Random::seeded(seed);
        let event = |at: u64| Event {
            day: Day::try_from(at * 365 / u64::from(per_year)).unwrap_or(Day::MAX),
            key: key(&mut random, users),
            status: status(random.fraction()),
        };
        Events { users, all: (1..=count(per_year)).map(event).collect() }
    }
}

/// Three in five keys are drawn evenly, the others from a sharp peak on the lowest.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most a few times the users")]
fn key(random: &mut Random, users: u32) -> u32 {
    let place = match random.fraction() < 0.6 {
        true => random.fraction(),
        false => random.half_normal() * 0.015,
    };
    ((f64::from(users) * place).ceil() as u32).clamp(1, users)
}

fn status(drawn: f64) -> Status {
    match drawn {
        drawn if drawn < 0.8 => Status::Approved,
        drawn if drawn < 0.9 => Status::NoFunds,
        drawn if drawn < 0.975 => Status::Pending,
        _ => Status::Rejected,
    }
}

/// A request for reports: whose, and up to which day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) key: u32,
    pub(crate) end: Day,
}

/// How many years back each report of a request reaches.
pub(crate) const YEARS: [u16; 5] = [1, 3, 5, 7, 10];

impl Request {
    /// Any user, any midnight of 2020.
    pub(crate) fn random(random: &mut Random, users: u32) -> Request {
        let first = Date::new(2020, 1, 1).number();
        Request {
            key: u32::try_from(random.below(u64::from(users))).unwrap_or_default() + 1,
            end: first + Day::try_from(random.below(366)).unwrap_or_default(),
        }
    }

    /// The first day of the report over `years`; `end` is no longer of it.
    pub(crate) fn start(self, years: u16) -> Day {
        Date::of(self.end).years_before(years).number()
    }
}

/// The time of an event or of the edge of a range.
pub(crate) fn date(day: Day) -> bson::DateTime {
    bson::DateTime::from_millis(super::calendar::milliseconds(day))
}

const _: () = assert!(DAY_MS == 24 * 60 * 60 * 1000);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_as_the_recipe_says() {
        assert_eq!((count(500_000), users(500_000)), (5_004_109, 8_334));
        assert_eq!((count(2_000_000), users(2_000_000)), (20_016_438, 33_334));
    }

    #[test]
    fn a_seed_names_its_events() {
        let (one, same, other) = (Events::generate(600, 1), Events::generate(600, 1), Events::generate(600, 2));
        assert_eq!(one.all, same.all);
        assert_ne!(one.all, other.all);
        assert_eq!(one.all.last().map(|event| event.day), Some(3_652));
        assert!(one.all.is_sorted_by_key(|event| event.day));
        assert!(one.all.iter().all(|event| (1..=one.users).contains(&event.key)));
    }

    #[test]
    fn keys_and_statuses_are_drawn_as_the_recipe_says() {
        let events = Events::generate(30_000, 1);
        let share = |of: &dyn Fn(&Event) -> bool| {
            events.all.iter().filter(|event| of(event)).count() as f64 / events.all.len() as f64
        };
        for (status, expected) in Status::ALL.into_iter().zip([0.8, 0.1, 0.075, 0.025]) {
            let found = share(&|event| event.status == status);
            assert!((found - expected).abs() < 0.003, "{status:?}: {found}");
        }
        // The lowest 3 % hold two standard deviations of the peak, and their part of the rest.
        let low = share(&|event| event.key <= events.users * 3 / 100);
        assert!((low - (0.4 * 0.9545 + 0.6 * 0.03)).abs() < 0.005, "{low}");
    }

    #[test]
    fn ranges_begin_the_same_day_some_years_before() {
        let request = Request { key: 1, end: Date::new(2020, 2, 29).number() };
        assert_eq!(Date::of(request.start(1)), Date::new(2019, 3, 1));
        assert_eq!(Date::of(request.start(10)), Date::new(2010, 3, 1));
    }
}
