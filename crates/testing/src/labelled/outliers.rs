//! Few documents that are far larger than the others.

use super::dice::{Dice, IDS, Ids, days_ago, plain, with};
use super::{Making, Set};
use bson::{Bson, Document, doc};

#[derive(Clone, Copy)]
enum Items {
    Plain,
    Documents,
}

/// `usual` items at most in nearly all documents; in a share of them so many.
#[derive(Clone, Copy)]
struct Lengths {
    usual: usize,
    share: f64,
    huge: usize,
}

fn set(
    Making { seed, scale }: Making,
    (collection, path): (&'static str, &'static str),
    ids: Ids,
    all: usize,
    items: Items,
    lengths: Lengths,
) -> Set {
    let all = all * scale;
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a count"
    )]
    let every = (1.0 / lengths.share.max(1e-9)).min(all as f64 * 2.0) as usize;
    let document = move |number: usize| {
        let mut dice = Dice::at(seed, collection, number);
        let is_huge = number % every == every / 2;
        let length =
            if is_huge { dice.between(lengths.huge * 9 / 10, lengths.huge) } else { dice.between(0, lengths.usual) };
        let value = |dice: &mut Dice| match items {
            Items::Plain => Bson::Int64(i64::from(dice.int(1 << 30))),
            Items::Documents => Bson::Document(doc! { "by": dice.word(), "at": days_ago(dice.part() * 100.0) }),
        };
        let all_items: Vec<Bson> = (0..length).map(|_| value(&mut dice)).collect();
        let mut own =
            with(doc! { "_id": ids.of(seed, collection, number, all), "name": dice.person() }, plain(&mut dice));
        match path.split_once('.') {
            Some((above, name)) => drop(own.insert(above, doc! { name: all_items, "public": dice.chance(0.5) })),
            None => drop(own.insert(path, all_items)),
        }
        own
    };
    Set::new("").with(collection, (0..all).map(document))
}

pub(super) fn sets(making: Making) -> Vec<Set> {
    let mut dice = Dice::at(making.seed, "outliers", 0);
    let mut places = [
        ("users", "followers"),
        ("books", "buyers"),
        ("groups", "members"),
        ("videos", "likedBy"),
        ("events", "guests"),
    ];
    let first = dice.below(places.len());
    places.rotate_left(first);
    let ids = |dice: &mut Dice| IDS[dice.below(IDS.len())];
    let shows = |set: Set, name: &str, (collection, path): (&str, &str)| {
        set.named(format!("{name} ({collection}.{path})")).shows("few_huge_documents", collection, path)
    };
    let all = dice.between(1_000, 1_500);
    vec![
        shows(
            set(making, places[0], ids(&mut dice), all, Items::Plain, Lengths { usual: 25, share: 0.003, huge: 4_000 }),
            "a few with thousands of ids",
            places[0],
        ),
        shows(
            set(
                making,
                places[1],
                ids(&mut dice),
                all,
                Items::Documents,
                Lengths { usual: 20, share: 0.004, huge: 1_600 },
            ),
            "a few with over a thousand items",
            places[1],
        ),
        shows(
            set(
                making,
                places[2],
                ids(&mut dice),
                all,
                Items::Documents,
                Lengths { usual: 40, share: 0.006, huge: 900 },
            ),
            "a few with hundreds of items",
            places[2],
        ),
        shows(
            set(making, places[3], ids(&mut dice), all, Items::Plain, Lengths { usual: 60, share: 0.008, huge: 1_500 }),
            "nearly 1 % with over a thousand ids",
            places[3],
        ),
        set(making, places[4], ids(&mut dice), all, Items::Plain, Lengths { usual: 30, share: 0.05, huge: 800 })
            .named("ids: more than a few are long"),
        shows_unbounded(
            set(
                making,
                places[0],
                ids(&mut dice),
                all,
                Items::Documents,
                Lengths { usual: 12, share: 0.04, huge: 1_300 },
            ),
            places[0],
        ),
        set(making, places[1], ids(&mut dice), all, Items::Documents, Lengths { usual: 30, share: 0.005, huge: 75 })
            .named("the longest is not far from the others"),
        huge_without_array(making),
    ]
}

fn shows_unbounded(set: Set, (collection, path): (&str, &str)) -> Set {
    set.named("items: more than a few are long").shows("unbounded_array", collection, path)
}

/// A long text makes one document large: nothing could overflow.
fn huge_without_array(Making { seed, scale }: Making) -> Set {
    let all = 700 * scale;
    let document = move |number: usize| {
        let mut dice = Dice::at(seed, "mails", number);
        let body = if number == all / 3 { "lorem ipsum ".repeat(90_000) } else { dice.words(20) };
        let to: Vec<String> = (0..dice.between(1, 4)).map(|_| dice.word()).collect();
        doc! { "_id": Ids::Uuid.of(seed, "mails", number, all), "subject": dice.words(4), "body": body, "to": to }
    };
    let documents: Vec<Document> = Vec::new();
    Set::new("one document is huge without a long array")
        .with("mails", documents.into_iter().chain((0..all).map(document)))
        .notes("few_huge_documents", "mails", "")
}
