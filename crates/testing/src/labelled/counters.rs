//! Numbers of a parent that its children give, kept by hand, and what only looks like one.

use super::dice::{Dice, IDS, Ids, cents, made_of, plain, with};
use super::{Label, Making, Set};
use bson::{Bson, Document, doc};

#[derive(Clone, Copy)]
struct Domain {
    parent: &'static str,
    child: &'static str,
    reference: &'static str,
    counter: &'static str,
}

const DOMAINS: &[Domain] = &[
    Domain { parent: "products", child: "reviews", reference: "productId", counter: "reviewCount" },
    Domain { parent: "articles", child: "comments", reference: "article", counter: "comments_count" },
    Domain { parent: "rooms", child: "messages", reference: "room_id", counter: "stats.messages" },
    Domain { parent: "projects", child: "tasks", reference: "projectId", counter: "numTasks" },
    Domain { parent: "albums", child: "songs", reference: "albumRef", counter: "tracks" },
    Domain { parent: "Clients", child: "Cases", reference: "client.id", counter: "totals.cases" },
    Domain { parent: "campaigns", child: "clicks", reference: "cid", counter: "n" },
];

/// What the number is.
#[derive(Clone, Copy, PartialEq)]
enum Made {
    Count,
    Sum,
    Average,
    RoundedAverage,
    CountOf(&'static str),
    SumOf(&'static str),
    CountOfFlag,
}

const STATES: [&str; 4] = ["paid", "open", "void", "late"];

/// The children of a parent: most have few, some have many, some none.
fn family(seed: u64, domain: &Domain, parent: usize) -> usize {
    let mut dice = Dice::at(seed, domain.counter, parent);
    match dice.below(10) {
        0 => 0,
        1 => dice.between(15, 30),
        _ => dice.between(1, 9),
    }
}

fn child(seed: u64, domain: &Domain, ids: Ids, parent: usize, place: usize, parents: usize) -> Document {
    let number = parent * 100 + place;
    let mut dice = Dice::at(seed, domain.child, number);
    let id = ids.of(seed, domain.parent, parent, parents);
    let reference = match domain.reference.split_once('.') {
        Some((above, name)) => doc! { above: { name: id } },
        None => doc! { domain.reference: id },
    };
    let own = doc! {
        "_id": Ids::Object.of(seed, domain.child, number, parents * 100),
        "amount": dice.money(90),
        "rating": dice.int(5) + 1,
        "status": *dice.pick(&STATES),
        "approved": dice.chance(0.6),
        "text": dice.words(5),
        "at": made_of(parent, parents, 200),
    };
    with(own, reference)
}

fn set_at(doc: &mut Document, path: &str, value: impl Into<Bson>) {
    match path.split_once('.') {
        Some((above, name)) => drop(doc.insert(above, doc! { name: value.into() })),
        None => drop(doc.insert(path, value)),
    }
}

fn number(made: Made, children: &[Document]) -> Bson {
    let whole = |number: usize| Bson::Int32(i32::try_from(number).unwrap());
    let amounts = |state: Option<&str>| {
        let of = children.iter().filter(|child| state.is_none_or(|state| child.get_str("status").unwrap() == state));
        of.map(|child| child.get_f64("amount").unwrap()).sum::<f64>()
    };
    #[expect(clippy::cast_precision_loss, reason = "small families")]
    let average = || {
        let sum: i32 = children.iter().map(|child| child.get_i32("rating").unwrap()).sum();
        f64::from(sum) / children.len() as f64
    };
    match made {
        Made::Count => whole(children.len()),
        Made::CountOf(state) => {
            whole(children.iter().filter(|child| child.get_str("status").unwrap() == state).count())
        }
        Made::CountOfFlag => whole(children.iter().filter(|child| child.get_bool("approved").unwrap()).count()),
        Made::Sum => Bson::Double((amounts(None) * 100.0).round() / 100.0),
        Made::SumOf(state) => Bson::Double((amounts(Some(state)) * 100.0).round() / 100.0),
        Made::Average | Made::RoundedAverage if children.is_empty() => Bson::Null,
        Made::Average => Bson::Double(average()),
        Made::RoundedAverage => Bson::Double((average() * 10.0).round() / 10.0),
    }
}

fn counting(Making { seed, scale }: Making, domain: Domain, ids: Ids, made: Made, wrong: f64, parents: usize) -> Set {
    let parents = parents * scale;
    let children = move |parent: usize| -> Vec<Document> {
        (0..family(seed, &domain, parent)).map(|place| child(seed, &domain, ids, parent, place, parents)).collect()
    };
    let parent = move |place: usize| {
        let mut dice = Dice::at(seed, domain.parent, place);
        let mut own = with(
            doc! { "_id": ids.of(seed, domain.parent, place, parents), "title": dice.words(3), "price": dice.money(70) },
            plain(&mut dice),
        );
        let mut held = number(made, &children(place));
        if dice.chance(wrong) {
            held = match held {
                Bson::Int32(number) => Bson::Int32(number + 1 + dice.int(3)),
                Bson::Double(number) => Bson::Double(number + cents(dice.between(10, 90))),
                other => other,
            };
        }
        set_at(&mut own, domain.counter, held);
        own
    };
    Set::new("").with(domain.parent, (0..parents).map(parent)).with(domain.child, (0..parents).flat_map(children))
}

pub(super) fn sets(making: Making) -> Vec<Set> {
    let mut dice = Dice::at(making.seed, "counters", 0);
    let start = dice.below(DOMAINS.len());
    let some = 0.02 + dice.part() * 0.05;
    let state = STATES[dice.below(STATES.len())];
    let ways: [(&str, Made, f64); 11] = [
        ("a count, some wrong", Made::Count, some),
        ("a count, many wrong", Made::Count, 0.2),
        ("a count, all right", Made::Count, 0.0),
        ("a sum, some wrong", Made::Sum, some),
        ("a sum, all right", Made::Sum, 0.0),
        ("an average, some wrong", Made::Average, some),
        ("a rounded average, some wrong", Made::RoundedAverage, some),
        ("a count of one state, some wrong", Made::CountOf(state), some),
        ("a count of one state, all right", Made::CountOf(state), 0.0),
        ("a sum of one state, some wrong", Made::SumOf(state), some),
        ("a count of those with a flag, some wrong", Made::CountOfFlag, some),
    ];
    let mut all = Vec::new();
    for (place, (name, made, wrong)) in ways.into_iter().enumerate() {
        let domain = DOMAINS[(start + place) % DOMAINS.len()];
        let ids = IDS[(place + dice.below(3)) % IDS.len()];
        let set = counting(making, domain, ids, made, wrong, dice.between(250, 500));
        let set = set.named(format!("{name} ({}, {ids:?})", domain.parent));
        all.push(match wrong {
            0.0 => set.notes("counter_by_hand", domain.parent, domain.counter),
            _ => {
                let severity = if wrong > 0.12 { "urgent" } else { "act" };
                set.shows_as(severity, "counter_by_hand", domain.parent, domain.counter)
            }
        });
    }
    all.extend([of_tags(making), by_code(making), only_children(making), small_numbers(making), mostly_none(making)]);
    all
}

/// The references are in an array.
fn of_tags(Making { seed, scale }: Making) -> Set {
    let (tags, notes) = (80 * scale, 700 * scale);
    let of_note = move |number: usize| -> Vec<usize> {
        let mut dice = Dice::at(seed, "tagging", number);
        let mut all: Vec<usize> = (0..dice.between(1, 4)).map(|_| dice.below(tags)).collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    let tag = move |number: usize| {
        let mut dice = Dice::at(seed, "tags", number);
        let mut uses = (0..notes).filter(|note| of_note(*note).contains(&number)).count();
        if number % 12 == 5 {
            uses += 2;
        }
        doc! { "_id": Ids::Object.of(seed, "tags", number, tags), "label": dice.word(), "uses": i64::try_from(uses).unwrap() }
    };
    let note = move |number: usize| {
        let mut dice = Dice::at(seed, "notes", number);
        let ids: Vec<Bson> = of_note(number).into_iter().map(|tag| Ids::Object.of(seed, "tags", tag, tags)).collect();
        doc! { "_id": Ids::Object.of(seed, "notes", number, notes), "body": dice.words(8), "tagIds": ids }
    };
    Set::new("a count of those that refer by an array, some wrong")
        .with("tags", (0..tags.min(300)).map(tag))
        .with("notes", (0..notes).map(note))
        .shows_as("act", "counter_by_hand", "tags", "uses")
}

/// By a code, not by `_id`.
fn by_code(Making { seed, scale }: Making) -> Set {
    let stores = 150 * scale;
    let code = move |store: usize| format!("ST{:04}", store * 3 + 1);
    let sales = move |store: usize| Dice::at(seed, "storing", store).between(0, 12);
    let store = move |number: usize| {
        let mut dice = Dice::at(seed, "stores", number);
        let mut held = i32::try_from(sales(number)).unwrap();
        if dice.chance(0.06) {
            held += 1;
        }
        doc! { "_id": Ids::Object.of(seed, "stores", number, stores), "code": code(number), "city": dice.word(), "salesToday": held }
    };
    let sale = move |store: usize| {
        (0..sales(store)).map(move |place| {
            let mut dice = Dice::at(seed, "sales", store * 50 + place);
            doc! { "_id": Ids::Object.of(seed, "sales", store * 50 + place, stores * 50), "store": code(store), "sum": dice.money(300) }
        })
    };
    Set::new("a count by a code, some wrong")
        .with("stores", (0..stores).map(store))
        .with("sales", (0..stores).flat_map(sale))
        .unique("stores", "code")
        .shows_as("act", "counter_by_hand", "stores", "salesToday")
}

/// Each parent has one child: any number that is one, and any figure of the child, would be its fold.
fn only_children(Making { seed, scale }: Making) -> Set {
    let all = 700 * scale;
    let amount = move |number: usize| Dice::at(seed, "bills", number).money(200);
    let parent = move |number: usize| doc! { "_id": Ids::Object.of(seed, "bookings", number, all), "seats": 1, "due": amount(number) };
    let child = move |number: usize| {
        let paid = if number.is_multiple_of(15) { 0.0 } else { amount(number) };
        doc! { "_id": Ids::Object.of(seed, "bills", number, all), "bookingId": Ids::Object.of(seed, "bookings", number, all), "amount": paid }
    };
    Set::new("only children give no counter").with("bookings", (0..all).map(parent)).with("bills", (0..all).map(child))
}

/// Small numbers that are often the number of children, by chance.
fn small_numbers(Making { seed, scale }: Making) -> Set {
    let all = 500 * scale;
    let number_of = |dice: &mut Dice| *dice.pick(&[1, 2, 2, 2, 2, 2, 3]);
    let parent = move |number: usize| {
        let mut dice = Dice::at(seed, "flats", number);
        doc! { "_id": Ids::Int.of(seed, "flats", number, all), "rooms": number_of(&mut dice), "floor": dice.int(4), "stars": dice.int(5) + 1 }
    };
    let child = move |flat: usize| {
        let mut dice = Dice::at(seed, "living", flat);
        (0..number_of(&mut dice)).map(move |place| {
            let number = flat * 10 + usize::try_from(place).unwrap();
            let mut dice = Dice::at(seed, "tenants", number);
            doc! { "_id": Ids::Object.of(seed, "tenants", number, all * 10), "flat": Ids::Int.of(seed, "flats", flat, all), "name": dice.person(), "stars": dice.int(5) + 1 }
        })
    };
    Set::new("small numbers equal by chance")
        .with("flats", (0..all).map(parent))
        .with("tenants", (0..all).flat_map(child))
}

/// Most parents have no children: a counter of zeros tells by those that have some.
fn mostly_none(Making { seed, scale }: Making) -> Set {
    let all = 900 * scale;
    let family = move |number: usize| {
        let mut dice = Dice::at(seed, "complaining", number);
        if dice.chance(0.12) { dice.between(1, 9) } else { 0 }
    };
    let parent = move |number: usize| {
        let mut dice = Dice::at(seed, "drivers", number);
        let wrong = dice.chance(0.03);
        let held = i32::try_from(family(number)).unwrap() + i32::from(wrong);
        doc! { "_id": Ids::Uuid.of(seed, "drivers", number, all), "name": dice.person(), "complaints": held, "accidents": 0, "bonus": i32::from(dice.chance(0.05)) }
    };
    let child = move |driver: usize| {
        (0..family(driver)).map(move |place| {
            let number = driver * 20 + place;
            doc! { "_id": Ids::Object.of(seed, "complaints", number, all * 20), "driver": Ids::Uuid.of(seed, "drivers", driver, all), "text": Dice::at(seed, "complaints", number).words(6) }
        })
    };
    let label = Label { severity: Some("act"), ..Label::new("counter_by_hand", "drivers", &["complaints"]) };
    Set::new("a counter that is mostly zero, some wrong")
        .with("drivers", (0..all).map(parent))
        .with("complaints", (0..all).flat_map(child))
        .label(label)
}
