//! Arrays that hold the newest children, kept by hand, and arrays that do not.

use super::dice::{Dice, IDS, Ids, days_ago};
use super::{Making, Set};
use bson::{Document, doc};

#[derive(Clone, Copy)]
struct Domain {
    parent: &'static str,
    child: &'static str,
    reference: &'static str,
    window: &'static str,
    date: &'static str,
}

const DOMAINS: &[Domain] = &[
    Domain { parent: "posts", child: "comments", reference: "postId", window: "recentComments", date: "date" },
    Domain { parent: "products", child: "reviews", reference: "product", window: "latest", date: "createdAt" },
    Domain { parent: "devices", child: "alerts", reference: "device_id", window: "status.lastAlerts", date: "raised" },
    Domain { parent: "patients", child: "visits", reference: "patientId", window: "recent_visits", date: "on" },
    Domain { parent: "matches", child: "events", reference: "match", window: "newest", date: "at" },
];

#[derive(Clone, Copy, PartialEq)]
enum Shape {
    Whole,
    Fields,
    Renamed,
    /// The last one is the newest, as `$push` with `$slice: -5` leaves it.
    Reversed,
    /// Some children, not the newest.
    AnyChildren,
}

fn children(seed: u64, domain: &Domain, ids: Ids, parent: usize, parents: usize) -> Vec<Document> {
    let mut dice = Dice::at(seed, domain.window, parent);
    let number = match dice.below(8) {
        0 => 0,
        1 => dice.between(1, 4),
        _ => dice.between(8, 25),
    };
    let mut all: Vec<Document> = (0..number)
        .map(|place| {
            let mut dice = Dice::at(seed, domain.child, parent * 100 + place);
            doc! {
                "_id": Ids::Object.of(seed, domain.child, parent * 100 + place, parents * 100),
                domain.reference: ids.of(seed, domain.parent, parent, parents),
                domain.date: days_ago(dice.part() * 300.0),
                "author": dice.person(),
                "text": dice.words(6),
                "score": dice.int(5),
            }
        })
        .collect();
    all.sort_by_key(|child| std::cmp::Reverse(child.get_datetime(domain.date).copied().unwrap()));
    all
}

fn items(domain: &Domain, shape: Shape, children: &[Document], keep: usize, dice: &mut Dice) -> Vec<Document> {
    let mut newest: Vec<Document> = match shape {
        Shape::AnyChildren => (0..keep.min(children.len())).map(|_| dice.pick(children).clone()).collect(),
        _ => children.iter().take(keep).cloned().collect(),
    };
    if shape == Shape::Reversed {
        newest.reverse();
    }
    let cut = |child: Document| {
        let get = |name: &str| child.get(name).cloned().unwrap();
        match shape {
            Shape::Whole => child,
            Shape::Renamed => doc! { "by": get("author"), "when": get(domain.date), "body": get("text") },
            _ => doc! { "author": get("author"), domain.date: get(domain.date), "text": get("text") },
        }
    };
    newest.into_iter().map(cut).collect()
}

fn windows(Making { seed, scale }: Making, domain: Domain, ids: Ids, shape: Shape, keep: usize, wrong: f64) -> Set {
    let parents = 150 * scale;
    let parent = move |number: usize| {
        let mut dice = Dice::at(seed, domain.parent, number);
        let mut of = children(seed, &domain, ids, number, parents);
        if dice.chance(wrong) && !of.is_empty() {
            // One that came late, or was edited, never got there.
            of.remove(0);
        }
        let items = items(&domain, shape, &of, keep, &mut dice);
        let mut own = doc! { "_id": ids.of(seed, domain.parent, number, parents), "name": dice.words(2), "views": dice.int(5_000) };
        match domain.window.split_once('.') {
            Some((above, name)) => drop(own.insert(above, doc! { name: items, "ok": dice.chance(0.9) })),
            None => drop(own.insert(domain.window, items)),
        }
        own
    };
    Set::new("")
        .with(domain.parent, (0..parents).map(parent))
        .with(domain.child, (0..parents).flat_map(move |number| children(seed, &domain, ids, number, parents)))
}

pub(super) fn sets(making: Making) -> Vec<Set> {
    let mut dice = Dice::at(making.seed, "windows", 0);
    let start = dice.below(DOMAINS.len());
    let some = 0.03 + dice.part() * 0.04;
    let ways: [(&str, Shape, f64, Option<&'static str>); 8] = [
        ("whole, some wrong", Shape::Whole, some, Some("act")),
        ("whole, all right", Shape::Whole, 0.0, None),
        ("some fields, some wrong", Shape::Fields, some, Some("act")),
        ("some fields, all right", Shape::Fields, 0.0, None),
        ("some fields, many wrong", Shape::Fields, 0.25, Some("urgent")),
        ("fields of other names, some wrong", Shape::Renamed, some, Some("act")),
        ("the newest last, some wrong", Shape::Reversed, some, Some("act")),
        ("not the newest", Shape::AnyChildren, 0.0, None),
    ];
    let mut all = Vec::new();
    for (place, (name, shape, wrong, severity)) in ways.into_iter().enumerate() {
        let domain = DOMAINS[(start + place) % DOMAINS.len()];
        let ids = IDS[(place + dice.below(2)) % IDS.len()];
        let keep = *dice.pick(&[3, 5, 6]);
        let set = windows(making, domain, ids, shape, keep, wrong)
            .named(format!("a window: {name} ({}, {ids:?})", domain.parent));
        all.push(match severity {
            Some(severity) => set.shows_as(severity, "window_by_hand", domain.parent, domain.window),
            None if shape == Shape::AnyChildren => set,
            None => set.notes("window_by_hand", domain.parent, domain.window),
        });
    }
    all
}
