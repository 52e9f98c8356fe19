//! What the other families leave out: made after the advisor was tuned to them.

use super::dice::{DAY, Dice, Ids, NOW, days_ago, made_of};
use super::{Making, Set};
use bson::{Bson, DateTime, Document, doc};

pub(super) fn sets(making: Making) -> Vec<Set> {
    vec![
        reference_inside(making),
        product_inside_items(making),
        dangling_and_absent(making),
        highest_bid(making),
        machines_by_number(making),
        nested_values(making),
        days_as_text(making),
        busy_orders(making),
        stale_price(making),
        best_scores(making),
        likes_of_strangers(making),
    ]
}

fn name(seed: u64, what: &str, number: usize) -> String {
    Dice::at(seed, what, number).person()
}

/// The copy's document holds the reference, too.
fn reference_inside(Making { seed, scale }: Making) -> Set {
    let (owners, pets) = (120 * scale, 800 * scale);
    let owner = move |n: usize| doc! { "_id": Ids::Object.of(seed, "owners", n, owners), "name": name(seed, "owners", n), "city": Dice::at(seed, "city", n).word() };
    let pet = move |n: usize| {
        let mut dice = Dice::at(seed, "pets", n);
        let of = dice.below(owners);
        let owner_name = if dice.chance(0.05) { dice.person() } else { name(seed, "owners", of) };
        doc! { "_id": Ids::Uuid.of(seed, "pets", n, pets), "species": *dice.pick(&["cat", "dog"]), "owner": { "id": Ids::Object.of(seed, "owners", of, owners), "name": owner_name } }
    };
    Set::new("a copy that holds the reference too")
        .with("owners", (0..owners).map(owner))
        .with("pets", (0..pets).map(pet))
        .shows_as("act", "copy_by_hand", "pets", "owner")
}

/// `lines: [{ product: { _id, name } }]`.
fn product_inside_items(Making { seed, scale }: Making) -> Set {
    let (goods, carts) = (90 * scale, 600 * scale);
    let good = move |n: usize| doc! { "_id": Ids::Object.of(seed, "goods", n, goods), "name": name(seed, "goods", n), "price": Dice::at(seed, "p", n).money(80) };
    let cart = move |n: usize| {
        let mut dice = Dice::at(seed, "carts", n);
        let lines: Vec<Document> = (0..dice.between(1, 4))
            .map(|_| {
                let of = dice.below(goods);
                let of_name = if dice.chance(0.04) { dice.person() } else { name(seed, "goods", of) };
                doc! { "product": { "_id": Ids::Object.of(seed, "goods", of, goods), "name": of_name }, "pieces": dice.int(5) + 1 }
            })
            .collect();
        doc! { "_id": Ids::Object.of(seed, "carts", n, carts), "lines": lines }
    };
    let label = super::Label {
        severity: Some("act"),
        ..super::Label::new("copy_by_hand", "carts", &["lines.product", "lines.product.name"])
    };
    Set::new("a copy inside of items")
        .with("goods", (0..goods).map(good))
        .with("carts", (0..carts).map(cart))
        .label(label)
}

/// Some references lead nowhere, and some hosts have no copy.
fn dangling_and_absent(Making { seed, scale }: Making) -> Set {
    let (clubs, games) = (60 * scale, 700 * scale);
    let club = move |n: usize| doc! { "_id": Ids::Text.of(seed, "clubs", n, clubs), "title": name(seed, "clubs", n), "founded": Dice::at(seed, "f", n).int(120) + 1900 };
    let game = move |n: usize| {
        let mut dice = Dice::at(seed, "games", n);
        let of = dice.below(clubs + clubs / 10);
        let mut own = doc! { "_id": Ids::Int.of(seed, "games", n, games), "homeId": Ids::Text.of(seed, "clubs", of, clubs), "goals": dice.int(6) };
        if dice.chance(0.8) {
            own.insert("homeTitle", if dice.chance(0.06) { dice.person() } else { name(seed, "clubs", of) });
        }
        own
    };
    Set::new("a flat copy in most hosts, some references lead nowhere")
        .with("clubs", (0..clubs).map(club))
        .with("games", (0..games).map(game))
        .shows_as("act", "copy_by_hand", "games", "homeTitle")
}

/// The greatest of a field of the children.
fn highest_bid(Making { seed, scale }: Making) -> Set {
    let lots = 300 * scale;
    let bids = move |lot: usize| -> Vec<f64> {
        let mut dice = Dice::at(seed, "bidding", lot);
        (0..dice.between(2, 9)).map(|_| dice.money(4_000)).collect()
    };
    let lot = move |n: usize| {
        let mut dice = Dice::at(seed, "lots", n);
        let highest = bids(n).into_iter().fold(0.0, f64::max) + if dice.chance(0.04) { 10.0 } else { 0.0 };
        doc! { "_id": Ids::Object.of(seed, "lots", n, lots), "title": dice.words(2), "highestBid": highest, "start": dice.money(20) }
    };
    let bid = move |lot: usize| {
        bids(lot).into_iter().enumerate().map(move |(place, amount)| {
            doc! { "_id": Ids::Object.of(seed, "bids", lot * 20 + place, lots * 20), "lot": Ids::Object.of(seed, "lots", lot, lots), "amount": amount }
        })
    };
    Set::new("the greatest of the children, some wrong")
        .with("lots", (0..lots).map(lot))
        .with("bids", (0..lots).flat_map(bid))
        .shows_as("act", "counter_by_hand", "lots", "highestBid")
}

fn a_reading_each(seconds: i64, number: usize) -> DateTime {
    DateTime::from_millis(NOW - 4 * DAY + i64::try_from(number).unwrap() * seconds * 1_000)
}

/// Series by a small number whose name says nothing.
fn machines_by_number(Making { seed, scale }: Making) -> Set {
    let all = 3_000 * scale;
    let sample = move |n: usize| {
        let mut dice = Dice::at(seed, "pressures", n);
        doc! { "_id": Ids::Object.of(seed, "pressures", n, all), "pump": i32::try_from(n % 6).unwrap() + 1, "createdAt": a_reading_each(60, n), "bar": dice.money(9) }
    };
    Set::new("readings of numbered pumps").with("pressures", (0..all).map(sample)).shows(
        "many_small_documents",
        "pressures",
        "createdAt",
    )
}

/// Values in a document of their own.
fn nested_values(Making { seed, scale }: Making) -> Set {
    let all = 3_000 * scale;
    let sample = move |n: usize| {
        let mut dice = Dice::at(seed, "weather", n);
        doc! {
            "_id": Ids::Uuid.of(seed, "weather", n, all), "station": format!("st-{}", n % 5), "observed": a_reading_each(90, n),
            "data": { "temp": dice.money(40), "wind": dice.money(30), "sky": *dice.pick(&["clear", "rain"]) },
        }
    };
    Set::new("readings with a document of values").with("weather", (0..all).map(sample)).shows(
        "many_small_documents",
        "weather",
        "observed",
    )
}

/// `2025-03-07` in each element.
fn days_as_text(Making { seed, scale }: Making) -> Set {
    let all = 400 * scale;
    let bucket = move |n: usize| {
        let mut days: Vec<Document> = Vec::new();
        let month = DateTime::from_millis(NOW - 31 * DAY * i64::try_from(n % 24 + 1).unwrap());
        for day in 1..=28 {
            let mut dice = Dice::at(seed, "steps", n * 31 + day);
            if dice.chance(0.7) {
                let text = month.try_to_rfc3339_string().unwrap();
                days.push(doc! { "day": format!("{}-{day:02}", &text[..7]), "steps": dice.int(20_000) });
            }
        }
        doc! { "_id": Ids::Object.of(seed, "walking", n, all), "user": format!("u{}", n / 24), "days": days }
    };
    Set::new("days as text in the elements of months").with("walking", (0..all).map(bucket)).shows(
        "repeated_discriminator",
        "walking",
        "days",
    )
}

/// Many orders a day, with a state, and payments that refer to them: no readings.
fn busy_orders(Making { seed, scale }: Making) -> Set {
    let all = 3_000 * scale;
    let order = move |n: usize| {
        let mut dice = Dice::at(seed, "busy", n);
        doc! { "_id": Ids::Object.of(seed, "busy", n, all), "status": *dice.pick(&["new", "paid", "sent"]), "shop": *dice.pick(&["north", "south"]), "customer": name(seed, "buyer", n / 2), "placed": made_of(n, all, 5), "total": dice.money(90) }
    };
    let payment = move |n: usize| doc! { "_id": Ids::Uuid.of(seed, "payments", n, all / 2), "order": Ids::Object.of(seed, "busy", n * 2, all), "method": "card", "sum": Dice::at(seed, "sum", n).money(90) };
    Set::new("many orders a day are no readings")
        .with("busy", (0..all).map(order))
        .with("payments", (0..all / 2).map(payment))
}

/// Copies that are old, and nothing says when their source changed.
fn stale_price(Making { seed, scale }: Making) -> Set {
    let (dishes, menus) = (80 * scale, 500 * scale);
    let dish = move |n: usize| doc! { "_id": Ids::Int.of(seed, "dishes", n, dishes), "label": name(seed, "dishes", n), "price": Dice::at(seed, "dish", n).money(30) };
    let menu = move |n: usize| {
        let mut dice = Dice::at(seed, "menus", n);
        let of = dice.below(dishes);
        let mut price = Dice::at(seed, "dish", of).money(30);
        if dice.chance(0.3) {
            price += 1.5;
        }
        doc! { "_id": Ids::Object.of(seed, "menus", n, menus), "dish": Ids::Int.of(seed, "dishes", of, dishes), "dishPrice": price, "on": made_of(n, menus, 90) }
    };
    Set::new("a flat copy of a number, many wrong")
        .with("dishes", (0..dishes).map(dish))
        .with("menus", (0..menus).map(menu))
        .shows_as("urgent", "copy_by_hand", "menus", "dishPrice")
}

/// The best by a number, not the newest.
fn best_scores(Making { seed, scale }: Making) -> Set {
    let levels = 120 * scale;
    let runs = move |level: usize| -> Vec<Document> {
        let number = Dice::at(seed, "playing", level).between(8, 20);
        (0..number)
            .map(|place| {
                let mut dice = Dice::at(seed, "runs", level * 30 + place);
                doc! { "_id": Ids::Object.of(seed, "runs", level * 30 + place, levels * 30), "level": Ids::Object.of(seed, "levels", level, levels), "player": dice.person(), "score": dice.int(1_000_000) }
            })
            .collect()
    };
    let level = move |n: usize| {
        let mut all = runs(n);
        all.sort_by_key(|run| std::cmp::Reverse(run.get_i32("score").unwrap()));
        if Dice::at(seed, "levels", n).chance(0.05) {
            all.remove(0);
        }
        let top: Vec<Document> = all
            .into_iter()
            .take(3)
            .map(|run| doc! { "player": run.get_str("player").unwrap(), "score": run.get_i32("score").unwrap() })
            .collect();
        doc! { "_id": Ids::Object.of(seed, "levels", n, levels), "title": name(seed, "levels", n), "top": top }
    };
    Set::new("the best three, some wrong")
        .with("levels", (0..levels).map(level))
        .with("runs", (0..levels).flat_map(runs))
        .shows_as("act", "window_by_hand", "levels", "top")
}

/// Numbers that count something that is not in the database.
fn likes_of_strangers(Making { seed, scale }: Making) -> Set {
    let clips = 400 * scale;
    let clip = move |n: usize| {
        let mut dice = Dice::at(seed, "clips", n);
        doc! { "_id": Ids::Object.of(seed, "clips", n, clips), "views": dice.int(10_000), "likes": dice.int(40), "length": dice.int(12) + 1, "at": days_ago(dice.part() * 90.0) }
    };
    let remark = move |clip: usize| {
        let number = Dice::at(seed, "remarking", clip).between(0, 12);
        (0..number).map(move |place| {
            let mut dice = Dice::at(seed, "remarks", clip * 20 + place);
            doc! { "_id": Ids::Object.of(seed, "remarks", clip * 20 + place, clips * 20), "clip": Ids::Object.of(seed, "clips", clip, clips), "stars": dice.int(5), "spam": Bson::Boolean(dice.chance(0.1)) }
        })
    };
    Set::new("numbers that no child gives")
        .with("clips", (0..clips).map(clip))
        .with("remarks", (0..clips).flat_map(remark))
}
