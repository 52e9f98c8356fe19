//! Databases without any symptom, of shapes that applications really have.

use super::dice::{Dice, IDS, Ids, days_ago, made_of, plain, with};
use super::{Making, Set};
use bson::{Bson, Document, doc};

pub(super) fn sets(making: Making) -> Vec<Set> {
    vec![
        shop(making),
        blog(making),
        many_tenants(making),
        school(making),
        settings(making),
        bank(making),
        places(making),
        empty(making),
    ]
}

pub(super) fn shop(Making { seed, scale }: Making) -> Set {
    let (customers, articles, orders) = (200 * scale, 150 * scale, 900 * scale);
    let ids = IDS[Dice::at(seed, "shop", 0).below(IDS.len())];
    let customer = move |number: usize| {
        let mut dice = Dice::at(seed, "buyers", number);
        with(
            doc! { "_id": ids.of(seed, "buyers", number, customers), "name": dice.person(), "email": dice.word(), "address": { "street": dice.words(2), "zip": dice.int(99_999) } },
            plain(&mut dice),
        )
    };
    let article = move |number: usize| {
        let mut dice = Dice::at(seed, "articles", number);
        doc! { "_id": ids.of(seed, "articles", number, articles), "title": dice.words(3), "price": dice.money(90), "stock": dice.int(200), "tags": [dice.word(), dice.word()] }
    };
    let order = move |number: usize| {
        let mut dice = Dice::at(seed, "sales_orders", number);
        let lines: Vec<Document> = (0..dice.between(1, 4))
            .map(|_| doc! { "article": ids.of(seed, "articles", dice.below(articles), articles), "quantity": dice.int(5) + 1, "discount": dice.int(3) * 5 })
            .collect();
        let mut own = doc! {
            "_id": Ids::Object.of(seed, "sales_orders", number, orders),
            "buyer": ids.of(seed, "buyers", dice.below(customers), customers),
            "lines": lines,
            "status": *dice.pick(&["new", "paid", "sent"]),
            "placed": made_of(number, orders, 300),
            "number": i32::try_from(number).unwrap() + 70_000,
        };
        if dice.chance(0.2) {
            own.insert("coupon", dice.word());
        }
        own
    };
    Set::new("a shop without symptoms")
        .with("buyers", (0..customers).map(customer))
        .with("articles", (0..articles).map(article))
        .with("sales_orders", (0..orders).map(order))
}

pub(super) fn blog(Making { seed, scale }: Making) -> Set {
    let (writers, entries) = (40 * scale, 400 * scale);
    let writer = move |number: usize| {
        let mut dice = Dice::at(seed, "writers", number);
        doc! { "_id": Ids::Object.of(seed, "writers", number, writers), "name": dice.person(), "bio": dice.words(12), "rank": dice.int(10) }
    };
    let entry = move |number: usize| {
        let mut dice = Dice::at(seed, "entries", number);
        let tags: Vec<String> = (0..dice.between(0, 6)).map(|_| dice.word()).collect();
        doc! {
            "_id": Ids::Object.of(seed, "entries", number, entries),
            "writer": Ids::Object.of(seed, "writers", dice.below(writers), writers),
            "title": dice.words(5), "body": dice.words(80), "tags": tags, "views": dice.int(9_000),
            "publishedAt": if dice.chance(0.9) { Bson::DateTime(dice.date(300)) } else { Bson::Null },
        }
    };
    let reply = move |entry: usize| {
        let mut dice = Dice::at(seed, "replying", entry);
        (0..dice.between(0, 7)).map(move |place| {
            let number = entry * 10 + place;
            let mut dice = Dice::at(seed, "replies", number);
            doc! { "_id": Ids::Object.of(seed, "replies", number, entries * 10), "entry": Ids::Object.of(seed, "entries", entry, entries), "text": dice.words(9), "likes": dice.int(6) }
        })
    };
    Set::new("a blog without symptoms")
        .with("writers", (0..writers).map(writer))
        .with("entries", (0..entries).map(entry))
        .with("replies", (0..entries).flat_map(reply))
}

fn many_tenants(Making { seed, scale }: Making) -> Set {
    let all = 600 * scale;
    let tenant = |number: usize| i32::try_from(number % 12).unwrap() + 1;
    let row = move |salt: &'static str| {
        move |number: usize| {
            let mut dice = Dice::at(seed, salt, number);
            with(
                doc! { "_id": Ids::Uuid.of(seed, salt, number, all), "tenantId": tenant(number), "title": dice.words(2), "version": 1, "priority": dice.int(4) },
                plain(&mut dice),
            )
        }
    };
    let company = move |number: usize| doc! { "_id": tenant(number), "name": Dice::at(seed, "companies", number).person(), "seats": 50, "plan": "pro" };
    Set::new("many tenants without symptoms")
        .with("companies", (0..12).map(company))
        .with("contracts_of_tenants", (0..all).map(row("contracts_of_tenants")))
        .with("machines", (0..all / 2).map(row("machines")))
}

fn school(Making { seed, scale }: Making) -> Set {
    let (pupils, courses) = (400 * scale, 40 * scale);
    let pupil = move |number: usize| {
        let mut dice = Dice::at(seed, "pupils", number);
        doc! { "_id": Ids::Int.of(seed, "pupils", number, pupils), "name": dice.person(), "born": dice.date(6_000), "grade": dice.int(12) + 1, "room": dice.int(40) + 1 }
    };
    let course = move |number: usize| {
        let mut dice = Dice::at(seed, "courses", number);
        let ids: Vec<i32> = (0..dice.between(8, 25)).map(|_| dice.int(pupils) + 1).collect();
        doc! { "_id": Ids::Int.of(seed, "courses", number, courses), "subject": *dice.pick(&["maths", "art", "latin", "sports"]), "pupils": ids, "hours": dice.int(5) + 1, "room": dice.int(40) + 1 }
    };
    Set::new("a school without symptoms")
        .with("pupils", (0..pupils).map(pupil))
        .with("courses", (0..courses).map(course))
}

/// Names that are data, deep documents, one document, arrays of arrays.
fn settings(Making { seed, .. }: Making) -> Set {
    let mut dice = Dice::at(seed, "settings", 0);
    let mut by_name = Document::new();
    for _ in 0..400 {
        by_name.insert(dice.word(), dice.int(90));
    }
    let matrix: Vec<Vec<i32>> = (0..20).map(|_| (0..20).map(|_| dice.int(9)).collect()).collect();
    let scores = move |number: usize| {
        let mut dice = Dice::at(seed, "scores", number);
        let mut by_user = Document::new();
        for _ in 0..dice.between(1, 12) {
            by_user.insert(format!("u{}", dice.below(5_000)), dice.int(90));
        }
        doc! { "_id": Ids::Object.of(seed, "scores", number, 200), "byUser": by_user }
    };
    Set::new("settings without symptoms")
        .with(
            "settings",
            [doc! { "_id": "app", "flags": by_name, "deep": { "a": { "b": { "c": { "d": 1 } } } }, "matrix": matrix }],
        )
        .with("scores", (0..200).map(scores))
}

fn bank(Making { seed, scale }: Making) -> Set {
    let (accounts, transfers) = (150 * scale, 1_500 * scale);
    let account = move |number: usize| {
        let mut dice = Dice::at(seed, "giro", number);
        doc! { "_id": Ids::Text.of(seed, "giro", number, accounts), "owner": dice.person(), "balance": dice.money(5_000), "limit": 500, "opened": made_of(number, accounts, 1_500) }
    };
    let transfer = move |number: usize| {
        let mut dice = Dice::at(seed, "transfers", number);
        let id = |dice: &mut Dice| Ids::Text.of(seed, "giro", dice.below(accounts), accounts);
        doc! { "_id": Ids::Uuid.of(seed, "transfers", number, transfers), "from": id(&mut dice), "to": id(&mut dice), "amount": dice.money(900), "bookedAt": made_of(number, transfers, 360), "purpose": dice.words(4) }
    };
    Set::new("a bank without symptoms")
        .with("giro", (0..accounts).map(account))
        .with("transfers", (0..transfers).map(transfer))
}

fn places(Making { seed, scale }: Making) -> Set {
    let all = 500 * scale;
    let place = move |number: usize| {
        let mut dice = Dice::at(seed, "venues", number);
        let opening: Vec<Document> = ["mon", "tue", "fri"]
            .iter()
            .map(|day| doc! { "day": *day, "from": "09:00", "to": "17:30", "kitchen": dice.chance(0.4) })
            .collect();
        doc! {
            "_id": Ids::Object.of(seed, "venues", number, all),
            "name": dice.words(2), "location": { "type": "Point", "coordinates": [dice.money(90), dice.money(90)] },
            "opening": opening, "kind": *dice.pick(&["bar", "museum", "park"]), "seen": days_ago(dice.part() * 40.0),
        }
    };
    Set::new("places without symptoms").with("venues", (0..all).map(place))
}

fn empty(_: Making) -> Set {
    Set::new("empty and single documents")
        .with("nothing", [])
        .with("one", [doc! { "_id": 1, "a": [1, [2, [3]]], "": "", "a.b": 1, "$c": 2 }])
}
