//! Documents of an older shape beside newer ones, and differences that are no versions.

use super::dice::{Dice, IDS, Ids, as_f64, made_of, plain, with};
use super::{Label, Making, Set};
use bson::{Bson, Document, doc};

const COLLECTIONS: &[&str] = &["users", "members", "leads", "profiles", "suppliers"];

/// What became of a document at the change.
#[derive(Clone, Copy, PartialEq)]
enum Change {
    Renamed,
    Nested,
    Split,
    Typed,
    Added,
    ToArray,
}

impl Change {
    /// The paths that may name it.
    fn fields(self) -> &'static [&'static str] {
        match self {
            Change::Renamed => &["tel", "phone"],
            Change::Nested => &["street", "city", "address", "address.street", "address.city"],
            Change::Split => &["name", "firstName", "lastName"],
            Change::Typed => &["birthday"],
            Change::Added => &["consent", "consent.at", "consent.by"],
            Change::ToArray => &["email", "emails"],
        }
    }

    fn fill(self, dice: &mut Dice, is_old: bool) -> Document {
        let (first, second) = (dice.word(), dice.word());
        match (self, is_old) {
            (Change::Renamed, true) => doc! { "tel": first },
            (Change::Renamed, false) => doc! { "phone": first },
            (Change::Nested, true) => doc! { "street": first, "city": second },
            (Change::Nested, false) => doc! { "address": { "street": first, "city": second } },
            (Change::Split, true) => doc! { "name": format!("{first} {second}") },
            (Change::Split, false) => doc! { "firstName": first, "lastName": second },
            (Change::Typed, true) => doc! { "birthday": dice.date(9_000).try_to_rfc3339_string().unwrap() },
            (Change::Typed, false) => doc! { "birthday": dice.date(9_000) },
            (Change::Added, true) => doc! {},
            (Change::Added, false) => doc! { "consent": { "at": dice.date(30), "by": second } },
            (Change::ToArray, true) => doc! { "email": first },
            (Change::ToArray, false) => doc! { "emails": [first, second] },
        }
    }
}

/// How the old documents are told from the new ones.
#[derive(Clone, Copy)]
struct Mix {
    /// Documents of this share were made before the change.
    before: f64,
    /// Of those, so many have been migrated since.
    migrated: f64,
    numbered: bool,
    dated: bool,
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of a count"
)]
fn versions(Making { seed, scale }: Making, collection: &'static str, ids: Ids, change: Change, mix: Mix) -> Set {
    let all = 700 * scale;
    let boundary = (all as f64 * mix.before) as usize;
    let document = move |number: usize| {
        let mut dice = Dice::at(seed, collection, number);
        let is_old = number < boundary && !dice.chance(mix.migrated);
        let mut own =
            with(doc! { "_id": ids.of(seed, collection, number, all), "points": dice.int(900) }, plain(&mut dice));
        if mix.dated {
            own.insert("createdAt", made_of(number, all, 700));
        }
        if mix.numbered {
            own.insert("schemaVersion", if is_old { 1 } else { 2 });
        }
        with(own, change.fill(&mut dice, is_old))
    };
    Set::new("").with(collection, (0..all).map(document))
}

pub(super) fn sets(making: Making) -> Vec<Set> {
    let mut dice = Dice::at(making.seed, "versions", 0);
    let start = dice.below(COLLECTIONS.len());
    let plain = Mix { before: 0.1 + dice.part() * 0.6, migrated: 0.0, numbered: false, dated: false };
    let ways: [(&str, Change, Mix); 9] = [
        ("a field was renamed", Change::Renamed, plain),
        ("fields were nested", Change::Nested, plain),
        ("a field was split", Change::Split, Mix { before: 0.4, ..plain }),
        ("text became dates", Change::Typed, plain),
        ("text became dates, few are left", Change::Typed, Mix { before: 0.03, ..plain }),
        ("a field was renamed, few are left", Change::Renamed, Mix { before: 0.04, ..plain }),
        ("a document was added", Change::Added, Mix { before: 0.5, ..plain }),
        ("one became many, and versions are numbered", Change::ToArray, Mix { numbered: true, ..plain }),
        ("a field was renamed, and half is migrated", Change::Renamed, Mix { before: 0.5, migrated: 0.5, ..plain }),
    ];
    let mut all = Vec::new();
    for (place, (name, change, mix)) in ways.into_iter().enumerate() {
        let collection = COLLECTIONS[(start + place) % COLLECTIONS.len()];
        let ids = IDS[(place + dice.below(2)) % IDS.len()];
        // Without a time in its id, a document has a date.
        let mix = Mix { dated: matches!(ids, Ids::Uuid | Ids::Text), ..mix };
        let fields: Vec<&str> =
            change.fields().iter().copied().chain(mix.numbered.then_some("schemaVersion")).collect();
        all.push(
            versions(making, collection, ids, change, mix)
                .named(format!("{name} ({collection}, {ids:?})"))
                .label(Label::new("old_shapes", collection, &fields)),
        );
    }
    all.push(
        versions(making, "visitors", Ids::Object, Change::Renamed, Mix { before: 0.004, ..plain })
            .named("too few are of the older shape"),
    );
    all.extend([mixed_types(making), optional(making), lifecycle(making), numbers(making)]);
    all
}

/// Text among numbers, without an order in time.
fn mixed_types(Making { seed, scale }: Making) -> Set {
    let all = 700 * scale;
    let document = move |number: usize| {
        let mut dice = Dice::at(seed, "imports", number);
        let amount: Bson =
            if dice.chance(0.1) { format!("{:.2}", dice.money(40)).into() } else { dice.money(40).into() };
        doc! { "_id": Ids::Object.of(seed, "imports", number, all), "line": dice.words(3), "amount": amount }
    };
    Set::new("text among numbers without order in time").with("imports", (0..all).map(document)).notes(
        "old_shapes",
        "imports",
        "amount",
    )
}

/// Optional fields, at any time.
fn optional(Making { seed, scale }: Making) -> Set {
    let all = 700 * scale;
    let document = move |number: usize| {
        let mut dice = Dice::at(seed, "guests", number);
        let mut own = doc! { "_id": Ids::Object.of(seed, "guests", number, all), "name": dice.person() };
        for (name, share) in [("nickname", 0.3), ("company", 0.1), ("allergies", 0.02), ("phone", 0.8)] {
            if dice.chance(share) {
                own.insert(name, dice.words(2));
            }
        }
        own
    };
    Set::new("optional fields are no versions").with("guests", (0..all).map(document))
}

/// What only older documents have because they are done.
fn lifecycle(Making { seed, scale }: Making) -> Set {
    let all = 700 * scale;
    let document = move |number: usize| {
        let mut dice = Dice::at(seed, "cases", number);
        let age = as_f64(i64::try_from(all - number).unwrap()) / as_f64(i64::try_from(all).unwrap());
        let mut own =
            doc! { "_id": Ids::Object.of(seed, "cases", number, all), "title": dice.words(3), "open": age < 0.2 };
        if age > 0.2 {
            own.insert("closedAt", dice.date(100));
        }
        if age > 0.7 {
            own.insert("archivedBy", dice.word());
        }
        own
    };
    Set::new("what happens later in a life is no version").with("cases", (0..all).map(document))
}

/// Whole numbers and fractions are one type; null is missing.
fn numbers(Making { seed, scale }: Making) -> Set {
    let all = 700 * scale;
    let document = move |number: usize| {
        let mut dice = Dice::at(seed, "prices", number);
        let price: Bson = match number * 4 / all {
            0 => dice.int(90).into(),
            1 => i64::from(dice.int(90)).into(),
            2 => dice.money(90).into(),
            _ => Bson::Null,
        };
        doc! { "_id": Ids::Object.of(seed, "prices", number, all), "article": dice.words(2), "price": price }
    };
    Set::new("numbers of all types are one type").with("prices", (0..all).map(document))
}
