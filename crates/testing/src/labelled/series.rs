//! Very many small documents with a time and a series, and documents that only have a date.

use super::dice::{DAY, Dice, Ids, NOW, made_of};
use super::{Making, Set};
use bson::{Bson, DateTime, Document, doc};

#[derive(Clone, Copy)]
struct Domain {
    collection: &'static str,
    time: &'static str,
    series: &'static str,
    values: [&'static str; 2],
}

const DOMAINS: &[Domain] = &[
    Domain { collection: "readings", time: "ts", series: "sensorId", values: ["temp", "humid"] },
    Domain { collection: "telemetry", time: "recordedAt", series: "meta.vehicle", values: ["speed", "fuel"] },
    Domain { collection: "ticks", time: "time", series: "symbol", values: ["price", "volume"] },
    Domain { collection: "metrics", time: "timestamp", series: "host", values: ["cpu", "mem"] },
    Domain { collection: "MeterValues", time: "when", series: "meter.serial", values: ["kwh", "volt"] },
];

/// Readings of some series, so many a day of each, over some days; in the order of time.
#[derive(Clone, Copy)]
struct Density {
    series: usize,
    a_day: usize,
    days: usize,
    /// Bytes of text in each.
    text: usize,
    /// Only every so many days a series has readings.
    every: usize,
}

fn readings(seed: u64, domain: Domain, density: Density) -> impl Iterator<Item = Document> + Send + 'static {
    let Density { series, a_day, days, text, every } = density;
    let all = series * a_day * days;
    let start = NOW - DAY * i64::try_from(days).unwrap();
    let name = move |number: usize| format!("{}-{:04}", Dice::at(seed, domain.series, number).word(), number);
    (0..days).flat_map(move |day| (0..a_day).map(move |place| (day, place))).flat_map(move |(day, place)| {
        (0..series).filter(move |number| (day + number).is_multiple_of(every)).map(move |number| {
            let at = (day * a_day + place) * series + number;
            let mut dice = Dice::at(seed, domain.collection, at);
            let step = DAY / i64::try_from(a_day).unwrap();
            let millis = start + i64::try_from(day).unwrap() * DAY + i64::try_from(place).unwrap() * step;
            let jitter = i64::from(dice.int(usize::try_from(step).unwrap().min(900_000)));
            let mut own = doc! {
                "_id": Ids::Object.of(seed, domain.collection, at, all),
                domain.time: DateTime::from_millis(millis + jitter),
            };
            match domain.series.split_once('.') {
                Some((above, below)) => drop(own.insert(above, doc! { below: name(number) })),
                None => drop(own.insert(domain.series, name(number))),
            }
            for value in domain.values {
                own.insert(value, dice.money(100));
            }
            if text > 0 {
                own.insert("payload", dice.words(text / 8));
            }
            own
        })
    })
}

pub(super) fn sets(making: Making) -> Vec<Set> {
    let Making { seed, scale } = making;
    let mut dice = Dice::at(seed, "series", 0);
    let start = dice.below(DOMAINS.len());
    let domain = |number: usize| DOMAINS[(start + number) % DOMAINS.len()];
    let set = |number: usize, name: &str, density: Density| {
        let domain = domain(number);
        Set::new(format!("{name} ({})", domain.collection)).with(domain.collection, readings(seed, domain, density))
    };
    let shows = |number: usize, name: &str, density: Density| {
        let domain = domain(number);
        set(number, name, density).shows("many_small_documents", domain.collection, domain.time)
    };
    let usual = Density { series: 5 * scale, a_day: 144, days: 5, text: 0, every: 1 };
    let mut all = vec![
        shows(0, "a reading each ten minutes", usual),
        shows(1, "a reading each minute", Density { series: 2 * scale, a_day: 1_440, days: 2, ..usual }),
        shows(2, "few series, a bit over the threshold", Density { series: 4 * scale, a_day: 125, ..usual }),
        shows(3, "very many series", Density { series: 60 * scale, a_day: 288, days: 1, ..usual }),
        set(4, "a bit under the threshold", Density { series: 6 * scale, a_day: 70, ..usual }),
        set(0, "a few a day", Density { series: 20 * scale, a_day: 6, days: 30, ..usual }),
        set(1, "large documents", Density { series: 4 * scale, a_day: 150, days: 4, text: 2_400, every: 1 }),
        set(
            2,
            "one day in thirty has readings",
            Density { series: 30 * scale, a_day: 120, days: 30, every: 30, ..usual },
        ),
    ];
    all.extend([case_study(making, 12), case_study(making, 4), purchases(making), lines_of_logs(making)]);
    all
}

/// Events that can be added up: so many per user and quarter.
fn case_study(Making { seed, scale }: Making, a_quarter: usize) -> Set {
    let users = 60 * scale;
    let quarters = 3;
    let key = move |number: usize| {
        let mut dice = Dice::at(seed, "keys", number);
        (0..4).map(|_| format!("{:016x}", dice.draw())).collect::<String>()
    };
    let all = users * a_quarter * quarters;
    let event = move |number: usize| {
        let mut dice = Dice::at(seed, "occurrences", number);
        let made = made_of(number, all, 91 * i64::try_from(quarters).unwrap()).timestamp_millis();
        let mut own = doc! {
            "_id": Ids::Object.of(seed, "occurrences", number, all),
            "key": key(dice.below(users)),
            "date": DateTime::from_millis(made - made.rem_euclid(DAY)),
        };
        let status = match dice.below(100) {
            0..80 => "approved",
            80..90 => "noFunds",
            90..97 => "pending",
            _ => "rejected",
        };
        own.insert(status, 1);
        own
    };
    let set = Set::new(format!("{a_quarter} events of a user in a quarter")).with("occurrences", (0..all).map(event));
    if a_quarter > 10 { set.shows("many_small_documents", "occurrences", "date") } else { set }
}

/// Orders have a customer and a date, and are no readings.
fn purchases(Making { seed, scale }: Making) -> Set {
    let all = 2_000 * scale;
    let order = move |number: usize| {
        let mut dice = Dice::at(seed, "purchases", number);
        doc! {
            "_id": Ids::Int.of(seed, "purchases", number, all),
            "customer": format!("c{}", dice.below(300)),
            "date": made_of(number, all, 365),
            "total": dice.money(300),
            "paid": dice.chance(0.9),
        }
    };
    Set::new("orders are no readings").with("purchases", (0..all).map(order))
}

/// Lines of logs: a host and a time, a hundred and more a day.
fn lines_of_logs(Making { seed, scale }: Making) -> Set {
    let (hosts, days) = (4, 3);
    let all = hosts * days * 260 * scale;
    let line = move |number: usize| {
        let mut dice = Dice::at(seed, "lines", number);
        doc! {
            "_id": Ids::Uuid.of(seed, "lines", number, all),
            "at": made_of(number, all, i64::try_from(days).unwrap()),
            "host": format!("web-{}", dice.below(hosts)),
            "level": *dice.pick(&["info", "warn", "error"]),
            "message": dice.words(6),
            "code": if dice.chance(0.3) { Bson::Int32(dice.int(500)) } else { Bson::Null },
        }
    };
    Set::new("lines of logs of a host").with("lines", (0..all).map(line)).shows("many_small_documents", "lines", "at")
}
