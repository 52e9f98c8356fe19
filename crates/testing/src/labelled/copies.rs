//! Copies that applications keep by hand, and what only looks like one.

use super::dice::{DAY, Dice, IDS, Ids, NOW, days_ago, made_of, plain, with};
use super::{Making, Set};
use bson::{Bson, Document, doc};

/// Who refers to whom, by which field, and what is copied.
#[derive(Clone, Copy)]
struct Domain {
    host: &'static str,
    source: &'static str,
    reference: &'static str,
    copy: &'static str,
    flat: &'static str,
    fields: [&'static str; 2],
}

const DOMAINS: &[Domain] = &[
    Domain {
        host: "orders",
        source: "customers",
        reference: "customerId",
        copy: "customer",
        flat: "customerName",
        fields: ["name", "email"],
    },
    Domain {
        host: "posts",
        source: "users",
        reference: "authorId",
        copy: "author",
        flat: "authorName",
        fields: ["displayName", "avatar"],
    },
    Domain {
        host: "tickets",
        source: "agents",
        reference: "assignee",
        copy: "assigneeInfo",
        flat: "assignee_name",
        fields: ["fullName", "phone"],
    },
    Domain {
        host: "loans",
        source: "members",
        reference: "member_id",
        copy: "member",
        flat: "memberName",
        fields: ["name", "card"],
    },
    Domain {
        host: "tracks",
        source: "artists",
        reference: "artist_id",
        copy: "artist",
        flat: "artistLabel",
        fields: ["stageName", "label"],
    },
    Domain {
        host: "shipments",
        source: "warehouses",
        reference: "from.warehouse",
        copy: "origin",
        flat: "originName",
        fields: ["title", "address"],
    },
    Domain {
        host: "Invoices",
        source: "Accounts",
        reference: "account",
        copy: "billTo",
        flat: "account_title",
        fields: ["company", "vat"],
    },
];

/// One way to keep a copy.
#[derive(Clone, Copy)]
struct Copying {
    ids: Ids,
    /// So many of the copies are not what the source has now.
    wrong: f64,
    /// So many sources per host.
    sources: usize,
    hosts: usize,
    shape: Shape,
}

#[derive(Clone, Copy, PartialEq)]
enum Shape {
    Nested,
    Flat,
    BothFlat,
    Renamed,
}

fn source(seed: u64, domain: &Domain, ids: Ids, number: usize, all: usize) -> Document {
    let mut dice = Dice::at(seed, domain.source, number);
    let (first, second) = (dice.person(), dice.word() + "@" + &dice.word());
    let own = doc! {
        "_id": ids.of(seed, domain.source, number, all),
        domain.fields[0]: first,
        domain.fields[1]: second,
        "since": made_of(number, all, 900),
        "level": dice.int(5),
    };
    with(own, plain(&mut dice))
}

fn reference(path: &str, value: Bson) -> Document {
    match path.split_once('.') {
        Some((above, name)) => doc! { above: { name: value } },
        None => doc! { path: value },
    }
}

fn copying(making: Making, domain: Domain, how: Copying) -> Set {
    let Making { seed, scale } = making;
    let (sources, hosts) = (how.sources * scale, how.hosts * scale);
    let host = move |number: usize| {
        let mut dice = Dice::at(seed, domain.host, number);
        let of = dice.below(sources);
        let mut copied = source(seed, &domain, how.ids, of, sources);
        if dice.chance(how.wrong) {
            copied.insert(domain.fields[0], dice.person());
        }
        let own = doc! {
            "_id": Ids::Object.of(seed, domain.host, number, hosts),
            "total": dice.money(500),
            "state": *dice.pick(&["new", "open", "done"]),
            "madeAt": made_of(number, hosts, 365),
        };
        let own = with(own, reference(domain.reference, copied.get("_id").cloned().unwrap()));
        let value = |name: &str| copied.get(name).cloned().unwrap();
        let [first, second] = domain.fields;
        match how.shape {
            Shape::Nested => with(own, doc! { domain.copy: { first: value(first), second: value(second) } }),
            Shape::Renamed => with(own, doc! { domain.copy: { "label": value(first), "contact": value(second) } }),
            Shape::Flat => with(own, doc! { domain.flat: value(first) }),
            Shape::BothFlat => {
                with(own, doc! { domain.flat: value(first), format!("{}_2", domain.flat): value(second) })
            }
        }
    };
    Set::new("")
        .with(domain.source, (0..sources).map(move |number| source(seed, &domain, how.ids, number, sources)))
        .with(domain.host, (0..hosts).map(host))
}

pub(super) fn sets(making: Making) -> Vec<Set> {
    let seed = making.seed;
    let mut dice = Dice::at(seed, "copies", 0);
    let start = dice.below(DOMAINS.len());
    let mut all = Vec::new();
    let ways: [(&str, f64, Shape, Option<&'static str>); 7] = [
        ("a nested copy, some wrong", 0.02 + dice.part() * 0.05, Shape::Nested, Some("act")),
        ("a nested copy, many wrong", 0.15 + dice.part() * 0.2, Shape::Nested, Some("urgent")),
        ("a nested copy, all right", 0.0, Shape::Nested, None),
        ("a flat copy, some wrong", 0.03 + dice.part() * 0.04, Shape::Flat, Some("act")),
        ("a flat copy, all right", 0.0, Shape::Flat, None),
        ("two flat copies, one of them wrong in some", 0.05, Shape::BothFlat, Some("act")),
        ("a copy under other names, some wrong", 0.04, Shape::Renamed, Some("act")),
    ];
    for (place, (name, wrong, shape, severity)) in ways.into_iter().enumerate() {
        let domain = DOMAINS[(start + place) % DOMAINS.len()];
        let ids = IDS[(place + dice.below(2)) % IDS.len()];
        let how = Copying { ids, wrong, sources: dice.between(60, 200), hosts: dice.between(700, 1_500), shape };
        let field = if matches!(shape, Shape::Flat | Shape::BothFlat) { domain.flat } else { domain.copy };
        let set = copying(making, domain, how).named(format!("{name} ({}, {ids:?})", domain.host));
        all.push(match severity {
            Some(severity) => set.shows_as(severity, "copy_by_hand", domain.host, field),
            None => set.notes("copy_by_hand", domain.host, field),
        });
    }
    let domain = DOMAINS[dice.below(DOMAINS.len())];
    let how = Copying { ids: Ids::Object, wrong: 0.75, sources: 90, hosts: 900, shape: Shape::Nested };
    all.push(copying(making, domain, how).named(format!("what is mostly not the same is no copy ({})", domain.host)));
    all.extend([
        in_items(making),
        frozen(making),
        by_unique(making),
        of_a_superior(making),
        by_chance(making),
        running_numbers(making),
    ]);
    all
}

/// `items: [{ productId, name, quantity }]`.
fn in_items(Making { seed, scale }: Making) -> Set {
    let (products, orders) = (120 * scale, 800 * scale);
    let product = move |number: usize| {
        let mut dice = Dice::at(seed, "catalog", number);
        doc! { "_id": Ids::Text.of(seed, "catalog", number, products), "title": dice.words(3), "stock": dice.int(900), "color": *dice.pick(&["red", "blue", "green"]) }
    };
    let order = move |number: usize| {
        let mut dice = Dice::at(seed, "baskets", number);
        let items: Vec<Document> = (0..dice.between(1, 5))
            .map(|_| {
                let of = product(dice.below(products));
                let title =
                    if dice.chance(0.05) { Bson::String(dice.words(3)) } else { of.get("title").cloned().unwrap() };
                doc! { "productId": of.get("_id").cloned().unwrap(), "title": title, "quantity": dice.int(4) + 1 }
            })
            .collect();
        doc! { "_id": Ids::Object.of(seed, "baskets", number, orders), "items": items, "paid": dice.chance(0.7) }
    };
    Set::new("a copy in each item, some wrong")
        .with("catalog", (0..products).map(product))
        .with("baskets", (0..orders).map(order))
        .label(super::Label {
            severity: Some("act"),
            ..super::Label::new("copy_by_hand", "baskets", &["items.title", "items"])
        })
}

/// The price at the time of the order: sources that changed later do not make it wrong.
fn frozen(Making { seed, scale }: Making) -> Set {
    let (plans, contracts) = (80 * scale, 900 * scale);
    let changed = move |number: usize| {
        Dice::at(seed, "changed", number).chance(0.4).then(|| days_ago(Dice::at(seed, "when", number).part() * 300.0))
    };
    let price = move |number: usize, at: i64| {
        let mut dice = Dice::at(seed, "prices", number);
        let (before, now) = (dice.money(400), dice.money(400));
        match changed(number) {
            Some(when) if at < when.timestamp_millis() => before,
            _ => now,
        }
    };
    let plan = move |number: usize| {
        let made = made_of(number, plans, 500);
        doc! {
            "_id": Ids::Object.of(seed, "plans", number, plans),
            "price": price(number, NOW),
            "createdAt": bson::DateTime::from_millis(made.timestamp_millis() - 400 * DAY),
            "updatedAt": changed(number).unwrap_or(days_ago(800.0)),
        }
    };
    let contract = move |number: usize| {
        let mut dice = Dice::at(seed, "contracts", number);
        let (of, when) = (dice.below(plans), made_of(number, contracts, 360));
        doc! {
            "_id": Ids::Object.of(seed, "contracts", number, contracts),
            "planId": Ids::Object.of(seed, "plans", of, plans),
            "signedAt": when,
            "agreed": { "price": price(of, when.timestamp_millis()) },
        }
    };
    Set::new("a copy that is frozen on purpose")
        .with("plans", (0..plans).map(plan))
        .with("contracts", (0..contracts).map(contract))
        .notes("copy_by_hand", "contracts", "agreed")
}

/// By a unique field that is not `_id`.
fn by_unique(Making { seed, scale }: Making) -> Set {
    let (parts, lines) = (150 * scale, 900 * scale);
    let part = move |number: usize| {
        let mut dice = Dice::at(seed, "parts", number);
        doc! { "_id": Ids::Object.of(seed, "parts", number, parts), "sku": format!("P-{:05}-{}", number * 7, dice.word()), "description": dice.words(5), "weight": dice.money(40) }
    };
    let line = move |number: usize| {
        let mut dice = Dice::at(seed, "stock_moves", number);
        let of = part(dice.below(parts));
        let description = if dice.chance(0.04) { dice.words(5) } else { of.get_str("description").unwrap().to_owned() };
        doc! {
            "_id": Ids::Uuid.of(seed, "stock_moves", number, lines),
            "sku": of.get_str("sku").unwrap(),
            "description": description,
            "moved": dice.int(50) - 25,
            "at": made_of(number, lines, 90),
        }
    };
    Set::new("a flat copy by a unique text, some wrong")
        .with("parts", (0..parts).map(part))
        .with("stock_moves", (0..lines).map(line))
        .unique("parts", "sku")
        .shows_as("act", "copy_by_hand", "stock_moves", "description")
}

/// Of a document of the same collection.
fn of_a_superior(Making { seed, scale }: Making) -> Set {
    let all = 900 * scale;
    let name = move |number: usize| Dice::at(seed, "staff", number).person();
    let employee = move |number: usize| {
        let mut dice = Dice::at(seed, "staffing", number);
        let mut own =
            doc! { "_id": Ids::Object.of(seed, "staff", number, all), "name": name(number), "floor": dice.int(9) };
        if number > 0 {
            let of = dice.below(number.min(80));
            own.insert("managerId", Ids::Object.of(seed, "staff", of, all));
            own.insert("managerName", if dice.chance(0.05) { dice.person() } else { name(of) });
        }
        own
    };
    Set::new("a flat copy of the superior's name, some wrong").with("staff", (0..all).map(employee)).shows_as(
        "act",
        "copy_by_hand",
        "staff",
        "managerName",
    )
}

/// A reference, and beside it fields that are often equal because they have few values, or are the same tenant.
fn by_chance(Making { seed, scale }: Making) -> Set {
    let (accounts, deals) = (150 * scale, 900 * scale);
    let tenant = |number: usize| format!("tenant-{}", number % 6);
    let few = |dice: &mut Dice| {
        doc! {
            "country": if dice.chance(0.7) { "DE" } else { *dice.pick(&["FR", "US", "PT"]) },
            "active": dice.chance(0.85),
            "currency": if dice.chance(0.8) { "EUR" } else { "USD" },
            "retries": i32::from(dice.chance(0.2)),
            "version": 1,
        }
    };
    let account = move |number: usize| {
        let mut dice = Dice::at(seed, "accounts", number);
        with(
            doc! { "_id": Ids::Uuid.of(seed, "accounts", number, accounts), "tenantId": tenant(number), "name": dice.person() },
            few(&mut dice),
        )
    };
    let deal = move |number: usize| {
        let mut dice = Dice::at(seed, "deals", number);
        let of = dice.below(accounts);
        let own = doc! { "_id": Ids::Uuid.of(seed, "deals", number, deals), "tenantId": tenant(of), "accountId": Ids::Uuid.of(seed, "accounts", of, accounts), "title": dice.words(3) };
        with(own, few(&mut dice))
    };
    Set::new("fields of few values are equal by chance")
        .with("accounts", (0..accounts).map(account))
        .with("deals", (0..deals).map(deal))
}

/// Two collections with running numbers that have nothing to do with each other.
fn running_numbers(Making { seed, scale }: Making) -> Set {
    let all = 900 * scale;
    let row = move |salt: &'static str| {
        move |number: usize| {
            let mut dice = Dice::at(seed, salt, number);
            let number = i32::try_from(number).unwrap() + 1;
            with(
                doc! { "_id": number, "number": number + 1_000, "position": dice.int(all), "version": dice.int(3), "quantity": dice.int(10) },
                plain(&mut dice),
            )
        }
    };
    Set::new("running numbers are no references")
        .with("letters", (0..all).map(row("letters")))
        .with("drawers", (0..all / 2).map(row("drawers")))
}
