//! The examples of the pattern literature, as they are before a pattern is applied: the advisor names the pattern of each.

use crate::judge::judge;
use bson::{Bson, DateTime, Document, doc};
use pleach_advisor::{Options, Severity};
use testing::labelled::{DAY, Dice, NOW, Score, Set};

fn dice(what: &str, number: i32) -> Dice {
    Dice::at(1, what, usize::try_from(number).unwrap())
}

fn date(days_ago: i64) -> Bson {
    DateTime::from_millis(NOW - days_ago * DAY).into()
}

fn id(what: u8, number: i32) -> Bson {
    let mut bytes = [what; 12];
    let made = u32::try_from((NOW - DAY * 300) / 1_000).unwrap() + u32::try_from(number).unwrap() * 60;
    bytes[..4].copy_from_slice(&made.to_be_bytes());
    bytes[8..].copy_from_slice(&number.to_be_bytes());
    Bson::ObjectId(bson::oid::ObjectId::from_bytes(bytes))
}

/// The patterns that are named at `warn` or above, each with its place.
async fn named(set: Set) -> Vec<String> {
    let judged = judge(set, &Options::default(), &mut Score::default()).await;
    let findings = judged.report.findings.iter().filter(|finding| finding.severity > Severity::Note);
    let mut all: Vec<String> =
        findings.map(|finding| format!("{} {}.{}", finding.pattern, finding.collection, finding.field)).collect();
    all.sort();
    all
}

/// Orders hold the customer's name, email and tier, and nobody follows the customer when it changes.
#[tokio::test]
async fn extended_reference() {
    let customer = |n: i32| doc! { "_id": id(1, n), "name": dice("name", n).person(), "email": format!("c{n}@example.org"), "tier": *dice("tier", n).pick(&["gold", "silver"]), "address": dice("at", n).words(4) };
    let order = move |n: i32| {
        let mut of = customer(n % 60);
        if n % 25 == 0 {
            of.insert("name", dice("old name", n).person());
        }
        let get = |name: &str| of.get(name).cloned().unwrap();
        doc! { "_id": id(2, n), "customerId": get("_id"), "customer": { "name": get("name"), "email": get("email"), "tier": get("tier") }, "total": dice("total", n).money(90) }
    };
    let set = Set::new("orders").with("customers", (0..60).map(customer)).with("orders", (0..600).map(order));
    assert_eq!(named(set).await, ["extended_reference orders.customer"]);
}

/// A product's review count and average, and its revenue, updated by whoever writes a review or a sale.
#[tokio::test]
async fn computed() {
    let reviews = |product: i32| -> Vec<Document> {
        let of = dice("reviews", product).int(14);
        (0..of).map(|n| doc! { "_id": id(3, product * 20 + n), "productId": id(1, product), "rating": dice("rating", product * 20 + n).int(5) + 1 }).collect()
    };
    let product = move |n: i32| {
        let all = reviews(n);
        let sum: i32 = all.iter().map(|review| review.get_i32("rating").unwrap()).sum();
        let count = i32::try_from(all.len()).unwrap();
        let lost = i32::from(n % 20 == 0 && count > 0);
        let average =
            if count == 0 { Bson::Null } else { Bson::Double(f64::from(sum) / f64::from(count) + f64::from(lost)) };
        doc! { "_id": id(1, n), "name": dice("product", n).words(2), "reviewCount": count + lost, "avgRating": average }
    };
    let set = Set::new("products").with("products", (0..400).map(product)).with("reviews", (0..400).flat_map(reviews));
    assert_eq!(named(set).await, ["computed products.avgRating", "computed products.reviewCount"]);
}

/// All reviews are in the product, newest or not.
#[tokio::test]
async fn subset() {
    let review = |n: i32| doc! { "userId": id(4, n), "rating": n % 5 + 1, "text": dice("text", n).words(6), "date": date(i64::from(n % 300)) };
    let product = move |n: i32| {
        let reviews: Vec<Document> = (0..dice("of", n).int(300)).map(|place| review(n * 300 + place)).collect();
        doc! { "_id": id(1, n), "name": dice("product", n).words(2), "reviews": reviews }
    };
    assert_eq!(named(Set::new("products").with("products", (0..100).map(product))).await, ["subset products.reviews"]);
}

/// One document for each reading.
#[tokio::test]
async fn bucket() {
    let reading = |n: i32| {
        let ts = DateTime::from_millis(NOW - DAY * 3 + i64::from(n) * 20_000);
        doc! { "_id": id(1, n), "sensorId": n % 5, "ts": ts, "temp": dice("temp", n).money(40), "humid": dice("humid", n).money(99) }
    };
    let set = Set::new("sensors").with("sensor_data", (0..6_000).map(reading));
    assert_eq!(named(set).await, ["bucket sensor_data.ts"]);
}

/// Each element repeats its day.
#[tokio::test]
async fn field_names() {
    let bucket = |n: i32| {
        let quarter = NOW - NOW.rem_euclid(DAY) - 91 * DAY * i64::from(n % 4 + 1);
        let days = (0..90).filter(|day| dice("day", n * 100 + day).chance(0.12));
        let items: Vec<Document> =
            days.map(|day| doc! { "date": DateTime::from_millis(quarter + i64::from(day) * DAY), "a": dice("a", n + day).int(9) + 1 }).collect();
        doc! { "_id": id(1, n), "key": format!("{:064x}", n / 4), "items": items }
    };
    let set = Set::new("events").with("events", (0..400).map(bucket));
    assert_eq!(named(set).await, ["field_names events.items"]);
}

/// A few users have followers without number.
#[tokio::test]
async fn outlier() {
    let user = |n: i32| {
        let all = if n % 400 == 7 { 6_000 } else { dice("followers", n).int(40) };
        let followers: Vec<Bson> = (0..all).map(|place| id(5, n * 7 + place)).collect();
        doc! { "_id": id(1, n), "name": dice("user", n).person(), "followers": followers }
    };
    let set = Set::new("users").with("users", (0..1_200).map(user));
    assert_eq!(named(set).await, ["outlier users.followers"]);
}

/// Books, electronics and clothing in one collection.
#[tokio::test]
async fn polymorphic() {
    let product = |n: i32| {
        let mut own = doc! { "_id": id(1, n), "title": dice("title", n).words(2), "price": dice("price", n).money(90) };
        own.extend(match n % 3 {
            0 => doc! { "type": "book", "isbn": format!("978-{n}"), "author": dice("author", n).person(), "pages": n % 900 },
            1 => doc! { "type": "electronics", "brand": dice("brand", n).word(), "voltage": 230, "warranty": n % 5 },
            _ => doc! { "type": "clothing", "size": *dice("size", n).pick(&["S", "M", "L"]), "material": dice("of", n).word(), "color": "red" },
        });
        own
    };
    let set = Set::new("products").with("products", (0..300).map(product));
    assert_eq!(named(set).await, ["polymorphic products.type"]);
}

/// The phone number became a document.
#[tokio::test]
async fn versions() {
    let user = |n: i32| {
        let mut own = doc! { "_id": id(1, n), "name": dice("user", n).person() };
        own.insert(
            "phone",
            if n < 250 {
                Bson::from(format!("555-{n}"))
            } else {
                doc! { "countryCode": "+1", "number": format!("555-{n}") }.into()
            },
        );
        own
    };
    assert_eq!(named(Set::new("users").with("users", (0..600).map(user))).await, ["versions users.phone"]);
}
