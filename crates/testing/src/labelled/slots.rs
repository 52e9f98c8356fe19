//! Arrays whose elements repeat a bounded discriminator, and arrays whose elements do not.

use super::dice::{DAY, Dice, Ids, NOW, days_ago};
use super::{Making, Set};
use bson::{DateTime, Document, doc};

pub(super) fn sets(making: Making) -> Vec<Set> {
    vec![
        days(making),
        countries(making),
        hours(making),
        channels(making),
        orders(making),
        sensors(making),
        unbounded(making),
    ]
}

/// Days of a quarter.
fn days(Making { seed, scale }: Making) -> Set {
    let all = 300 * scale;
    let bucket = move |number: usize| {
        let mut dice = Dice::at(seed, "counted", number);
        let start = NOW - NOW.rem_euclid(DAY) - 91 * DAY * i64::try_from(number % 4 + 1).unwrap();
        let mut items: Vec<Document> = Vec::new();
        for day in 0..90 {
            if dice.chance(0.15) {
                items.push(
                    doc! { "date": DateTime::from_millis(start + day * DAY), "a": dice.int(5) + 1, "n": dice.int(3) },
                );
            }
        }
        doc! { "_id": format!("{:08x}-{}", dice.draw() >> 32, number % 4), "user": format!("u{}", number / 4), "items": items }
    };
    Set::new("days in the elements of quarters").with("counted", (0..all).map(bucket)).shows(
        "repeated_discriminator",
        "counted",
        "items",
    )
}

/// Countries of a page and day.
fn countries(Making { seed, scale }: Making) -> Set {
    const CODES: &[&str] = &[
        "DE", "FR", "PT", "US", "IN", "BR", "IT", "ES", "PL", "SE", "NO", "FI", "DK", "NL", "BE", "AT", "CH", "CZ",
        "JP", "KR",
    ];
    let all = 400 * scale;
    let bucket = move |number: usize| {
        let mut dice = Dice::at(seed, "traffic", number);
        let views: Vec<Document> = CODES
            .iter()
            .filter(|_| dice.clone().draw() % 2 == number as u64 % 2 || number.is_multiple_of(3))
            .map(|code| (*code, Dice::at(seed, code, number)))
            .filter(|(_, dice)| dice.clone().chance(0.6))
            .map(|(code, mut dice)| doc! { "country": code, "views": dice.int(500), "visitors": dice.int(90) })
            .collect();
        doc! { "_id": Ids::Object.of(seed, "traffic", number, all), "page": dice.below(40).to_string(), "day": days_ago((number / 40) as f64), "views": views }
    };
    Set::new("countries in the elements of days").with("traffic", (0..all).map(bucket)).shows(
        "repeated_discriminator",
        "traffic",
        "views",
    )
}

/// Hours of a day, as numbers.
fn hours(Making { seed, scale }: Making) -> Set {
    let all = 300 * scale;
    let bucket = move |number: usize| {
        let mut dice = Dice::at(seed, "loads", number);
        let hours: Vec<Document> = (0..24_i32)
            .filter(|_| dice.chance(0.8))
            .map(|hour| (hour, Dice::at(seed, "load", number * 24 + usize::try_from(hour).unwrap())))
            .map(|(hour, mut dice)| doc! { "hour": hour, "watts": dice.money(900), "peak": dice.money(2_000) })
            .collect();
        doc! { "_id": Ids::Uuid.of(seed, "loads", number, all), "meter": format!("m{}", number % 50), "day": days_ago((number / 50) as f64), "hours": hours }
    };
    Set::new("hours in the elements of days").with("loads", (0..all).map(bucket)).shows(
        "repeated_discriminator",
        "loads",
        "hours",
    )
}

/// Words of few values.
fn channels(Making { seed, scale }: Making) -> Set {
    const CHANNELS: &[&str] = &["web", "store", "phone", "partner", "mobile", "kiosk"];
    let all = 400 * scale;
    let bucket = move |number: usize| {
        let mut dice = Dice::at(seed, "turnover", number);
        let parts: Vec<Document> = CHANNELS
            .iter()
            .map(|channel| (*channel, Dice::at(seed, channel, number)))
            .filter(|(_, dice)| dice.clone().chance(0.75))
            .map(|(channel, mut dice)| doc! { "channel": channel, "sum": dice.money(9_000), "orders": dice.int(80) })
            .collect();
        doc! { "_id": Ids::Object.of(seed, "turnover", number, all), "shop": dice.below(30).to_string(), "month": days_ago((number / 30 * 30) as f64), "by": parts }
    };
    Set::new("channels in the elements of months").with("turnover", (0..all).map(bucket)).shows(
        "repeated_discriminator",
        "turnover",
        "by",
    )
}

/// The lines of an order are no slots: any of very many articles.
fn orders(Making { seed, scale }: Making) -> Set {
    let all = 500 * scale;
    let order = move |number: usize| {
        let mut dice = Dice::at(seed, "sold", number);
        let first = dice.below(3_000);
        let lines: Vec<Document> = (0..dice.between(2, 7))
            .map(|place| doc! { "sku": format!("A{:05}", (first + place * 17) % 3_000), "quantity": dice.int(5) + 1, "price": dice.money(80) })
            .collect();
        doc! { "_id": Ids::Int.of(seed, "sold", number, all), "customer": dice.person(), "lines": lines }
    };
    Set::new("the lines of orders are no slots").with("sold", (0..all).map(order))
}

/// Readings at any time: a time of day has no bound.
fn sensors(Making { seed, scale }: Making) -> Set {
    let all = 300 * scale;
    let bucket = move |number: usize| {
        let mut dice = Dice::at(seed, "hourly", number);
        let start = NOW - i64::try_from(number / 10 + 1).unwrap() * 3_600_000;
        let readings: Vec<Document> = (0..dice.between(8, 14))
            .map(|place| doc! { "at": DateTime::from_millis(start + place as i64 * 240_000 + i64::from(dice.int(200_000))), "v": dice.money(50) })
            .collect();
        doc! { "_id": Ids::Object.of(seed, "hourly", number, all), "sensor": i32::try_from(number % 10).unwrap(), "readings": readings }
    };
    Set::new("readings at any time are no slots").with("hourly", (0..all).map(bucket))
}

/// Words that anybody may make up.
fn unbounded(Making { seed, scale }: Making) -> Set {
    let all = 400 * scale;
    let document = move |number: usize| {
        let mut dice = Dice::at(seed, "texts", number);
        let words: Vec<Document> = (0..dice.between(5, 30))
            .map(|place| doc! { "term": format!("{}{place}", dice.word()), "n": dice.int(20) + 1 })
            .collect();
        doc! { "_id": Ids::Text.of(seed, "texts", number, all), "length": dice.int(5_000), "terms": words }
    };
    Set::new("a discriminator without bound").with("texts", (0..all).map(document))
}
