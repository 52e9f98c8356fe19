//! Several kinds of documents in one collection, and fields of few values that are no kinds.

use super::dice::{Dice, IDS, Ids, made_of};
use super::{Making, Set};
use bson::{Document, doc};

/// A collection whose discriminator decides which fields are there.
struct Domain {
    collection: &'static str,
    discriminator: &'static str,
    common: [&'static str; 2],
    kinds: &'static [(&'static str, &'static [&'static str])],
}

const DOMAINS: &[Domain] = &[
    Domain {
        collection: "products",
        discriminator: "type",
        common: ["title", "price"],
        kinds: &[
            ("book", &["isbn", "author", "pages", "publisher"]),
            ("electronics", &["brand", "voltage", "warranty"]),
            ("clothing", &["size", "color", "material", "fit"]),
        ],
    },
    Domain {
        collection: "notifications",
        discriminator: "kind",
        common: ["to", "sentAt"],
        kinds: &[
            ("email", &["subject", "body", "from", "cc"]),
            ("sms", &["phone", "text", "carrier"]),
            ("push", &["token", "platform", "badge"]),
        ],
    },
    Domain {
        collection: "vehicles",
        discriminator: "_t",
        common: ["plate", "bought"],
        kinds: &[
            ("Car", &["doors", "seats", "trunk", "isofix"]),
            ("Truck", &["payload", "axles", "trailer", "tachograph"]),
        ],
    },
    Domain {
        collection: "content",
        discriminator: "contentType",
        common: ["slug", "owner"],
        kinds: &[
            ("video", &["duration", "codec", "resolution", "subtitles"]),
            ("article", &["body", "words", "language"]),
            ("poll", &["question", "options", "closes"]),
            ("gallery", &["images", "cover", "license"]),
        ],
    },
];

fn documents(
    Making { seed, scale }: Making,
    domain: &'static Domain,
    ids: Ids,
    all: usize,
) -> impl Iterator<Item = Document> + Send + 'static {
    let all = all * scale;
    (0..all).map(move |number| {
        let mut dice = Dice::at(seed, domain.collection, number);
        let (name, fields) = *dice.pick(domain.kinds);
        let mut own = doc! { "_id": ids.of(seed, domain.collection, number, all), domain.discriminator: name };
        for field in domain.common {
            own.insert(field, dice.words(2));
        }
        for (place, field) in fields.iter().enumerate() {
            // The last one is optional.
            if place + 1 < fields.len() || dice.chance(0.7) {
                own.insert(*field, if place % 2 == 0 { dice.word().into() } else { bson::Bson::Int32(dice.int(500)) });
            }
        }
        own
    })
}

pub(super) fn sets(making: Making) -> Vec<Set> {
    let mut dice = Dice::at(making.seed, "kinds", 0);
    let mut all: Vec<Set> = DOMAINS
        .iter()
        .map(|domain| {
            let ids = IDS[dice.below(IDS.len())];
            let number = dice.between(300, 900);
            Set::new(format!("kinds of {} ({ids:?})", domain.collection))
                .with(domain.collection, documents(making, domain, ids, number))
                .shows("several_kinds", domain.collection, domain.discriminator)
        })
        .collect();
    all.extend([nothing_common(making), alike(making), states(making), optional(making)]);
    all
}

/// Kinds without a common field that no query asks for together.
fn nothing_common(Making { seed, scale }: Making) -> Set {
    let all = 500 * scale;
    let document = move |number: usize| {
        let mut dice = Dice::at(seed, "misc", number);
        let id = Ids::Object.of(seed, "misc", number, all);
        match dice.below(3) {
            0 => {
                doc! { "_id": id, "type": "setting", "key": dice.word(), "value": dice.words(2), "scope": dice.word() }
            }
            1 => {
                doc! { "_id": id, "type": "job", "queue": dice.word(), "runAt": made_of(number, all, 9), "tries": dice.int(5) }
            }
            _ => {
                doc! { "_id": id, "type": "translation", "locale": dice.word(), "source": dice.words(3), "target": dice.words(3) }
            }
        }
    };
    Set::new("kinds with nothing in common").with("misc", (0..all).map(document)).notes("several_kinds", "misc", "type")
}

/// Kinds that share most of their fields.
fn alike(Making { seed, scale }: Making) -> Set {
    let all = 600 * scale;
    let document = move |number: usize| {
        let mut dice = Dice::at(seed, "customers", number);
        let is_company = dice.chance(0.3);
        let mut own = doc! {
            "_id": Ids::Uuid.of(seed, "customers", number, all),
            "type": if is_company { "company" } else { "person" },
            "name": dice.person(), "email": dice.word(), "phone": dice.word(), "street": dice.words(2), "city": dice.word(), "since": made_of(number, all, 900),
        };
        if is_company {
            own.insert("vat", dice.word());
        }
        own
    };
    Set::new("kinds that share most fields").with("customers", (0..all).map(document))
}

/// A state decides which dates are there; the rest is the same.
fn states(Making { seed, scale }: Making) -> Set {
    let all = 800 * scale;
    let document = move |number: usize| {
        let mut dice = Dice::at(seed, "parcels", number);
        let state = dice.below(4);
        let mut own = doc! {
            "_id": Ids::Object.of(seed, "parcels", number, all),
            "status": (["new", "packed", "sent", "delivered"][state]),
            "to": dice.person(), "street": dice.words(2), "city": dice.word(), "weight": dice.money(20), "items": dice.int(9), "price": dice.money(40),
        };
        for (name, from) in [("packedAt", 1), ("sentAt", 2), ("deliveredAt", 3)] {
            if state >= from {
                own.insert(name, dice.date(50));
            }
        }
        own
    };
    Set::new("states are no kinds").with("parcels", (0..all).map(document))
}

/// Optional fields that come and go.
fn optional(Making { seed, scale }: Making) -> Set {
    let all = 600 * scale;
    let document = move |number: usize| {
        let mut dice = Dice::at(seed, "contacts", number);
        let mut own = doc! { "_id": Ids::Text.of(seed, "contacts", number, all), "group": *dice.pick(&["family", "work", "club"]), "name": dice.person() };
        for name in ["phone", "fax", "mail", "skype", "birthday", "pet"] {
            if dice.chance(0.4) {
                own.insert(name, dice.word());
            }
        }
        own
    };
    Set::new("optional fields are no kinds").with("contacts", (0..all).map(document))
}
