//! Arrays of documents that grow, and arrays that are long for a reason, or short.

use super::dice::{Dice, Ids, as_f64, days_ago, made_of, plain, with};
use super::{Making, Set};
use bson::{Bson, Document, doc};

const PLACES: &[(&str, &str)] = &[
    ("products", "reviews"),
    ("accounts", "activity.log"),
    ("users", "logins"),
    ("tickets", "messages"),
    ("pages", "edits"),
];

/// One document with an array of so many items, at a path.
fn host(seed: u64, (collection, path): (&str, &str), number: usize, all: usize, items: Vec<Document>) -> Document {
    let mut dice = Dice::at(seed, collection, number);
    let own = doc! { "_id": Ids::Object.of(seed, collection, number, all), "title": dice.words(3) };
    let mut own = with(own, plain(&mut dice));
    match path.split_once('.') {
        Some((above, name)) => drop(own.insert(above, doc! { name: items })),
        None => drop(own.insert(path, items)),
    }
    own
}

fn item(dice: &mut Dice) -> Document {
    doc! { "who": dice.person(), "text": dice.words(3), "date": days_ago(dice.part() * 200.0) }
}

fn arrays(
    Making { seed, scale }: Making,
    place: (&'static str, &'static str),
    all: usize,
    length: impl Fn(usize, usize, &mut Dice) -> usize + Send + Copy + 'static,
) -> Set {
    let all = all * scale;
    Set::new("").with(
        place.0,
        (0..all).map(move |number| {
            let mut dice = Dice::at(seed, place.1, number);
            let items = (0..length(number, all, &mut dice)).map(|_| item(&mut dice)).collect();
            host(seed, place, number, all, items)
        }),
    )
}

pub(super) fn sets(making: Making) -> Vec<Set> {
    let mut dice = Dice::at(making.seed, "arrays", 0);
    let start = dice.below(PLACES.len());
    let place = |number: usize| PLACES[(start + number) % PLACES.len()];
    let shows = |set: Set, name: &str, number: usize| {
        let (collection, path) = place(number);
        set.named(format!("{name} ({collection}.{path})")).shows("unbounded_array", collection, path)
    };
    vec![
        shows(arrays(making, place(0), 150, |_, _, dice| dice.between(10, 190)), "arrays of up to 190", 0),
        shows(arrays(making, place(1), 60, |_, _, dice| dice.between(300, 700)), "arrays of 300 to 700", 1),
        shows(
            arrays(making, place(2), 300, |_, _, dice| {
                if dice.chance(0.03) { dice.between(1_050, 1_400) } else { dice.between(1, 30) }
            }),
            "over 1,000 in 3 % of the documents",
            2,
        ),
        shows(
            arrays(making, place(3), 400, |number, all, dice| (all - number) * 90 / all + dice.below(4)),
            "the older, the longer",
            3,
        ),
        arrays(making, place(4), 300, |_, _, dice| dice.between(40, 85)).named("arrays of up to 85"),
        arrays(making, place(0), 500, |_, _, dice| dice.between(0, 8)).named("short arrays"),
        acted(making),
        without_order(making),
        plain_values(making),
        urgent(making),
    ]
}

/// Tenfold past the threshold.
fn acted(Making { seed, scale }: Making) -> Set {
    let all = 30 * scale;
    let document = move |number: usize| {
        let mut dice = Dice::at(seed, "threads", number);
        let posts: Vec<Document> = (0..dice.between(900, 1_600))
            .map(|place| doc! { "n": i32::try_from(place).unwrap(), "at": days_ago(as_f64(i64::try_from(place).unwrap()) / 20.0) })
            .collect();
        doc! { "_id": Ids::Uuid.of(seed, "threads", number, all), "topic": dice.words(3), "posts": posts }
    };
    Set::new("arrays of over a thousand in most documents").with("threads", (0..all).map(document)).shows_as(
        "act",
        "unbounded_array",
        "threads",
        "posts",
    )
}

/// Nothing says which items are the first.
fn without_order(Making { seed, scale }: Making) -> Set {
    let all = 80 * scale;
    let document = move |number: usize| {
        let mut dice = Dice::at(seed, "vocabularies", number);
        let terms: Vec<Document> =
            (0..dice.between(80, 220)).map(|_| doc! { "term": dice.word(), "meaning": dice.words(2) }).collect();
        doc! { "_id": Ids::Text.of(seed, "vocabularies", number, all), "language": dice.word(), "terms": terms }
    };
    Set::new("long arrays whose items have no order").with("vocabularies", (0..all).map(document)).notes(
        "unbounded_array",
        "vocabularies",
        "terms",
    )
}

/// Arrays of plain values are outliers or nothing.
fn plain_values(Making { seed, scale }: Making) -> Set {
    let all = 200 * scale;
    let document = move |number: usize| {
        let mut dice = Dice::at(seed, "segments", number);
        let ids: Vec<Bson> = (0..dice.between(150, 600)).map(|_| Bson::Int64(i64::from(dice.int(1 << 30)))).collect();
        let vector: Vec<f64> = (0..256).map(|_| dice.part()).collect();
        doc! { "_id": Ids::Object.of(seed, "segments", number, all), "rule": dice.words(3), "userIds": ids, "embedding": vector, "made": made_of(number, all, 50) }
    };
    Set::new("long arrays of plain values").with("segments", (0..all).map(document))
}

/// Documents of two weeks that hold megabytes: 16 MB are in sight within a month.
fn urgent(Making { seed, scale }: Making) -> Set {
    let all = 6 * scale.min(3);
    let document = move |number: usize| {
        let mut dice = Dice::at(seed, "journals", number);
        let made = days_ago(7.0 + dice.part() * 4.0);
        let text = "entry ".repeat(150);
        let entries: Vec<Document> = (0..dice.between(5_000, 6_000))
            .map(|place| doc! { "at": days_ago(as_f64(i64::try_from(place).unwrap()) / 1_000.0), "text": &text })
            .collect();
        doc! { "_id": i32::try_from(number).unwrap(), "createdAt": made, "entries": entries }
    };
    Set::new("documents that reach 16 MB within a month").with("journals", (0..all).map(document)).shows_as(
        "urgent",
        "unbounded_array",
        "journals",
        "entries",
    )
}
