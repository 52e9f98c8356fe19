//! Which paths of a host copy paths of its source.

use super::*;
use bson::{Document, doc};
use document::Doc;

struct Case {
    host_paths: Paths,
    source_paths: Paths,
    pairs: Vec<Pair>,
    sources: Vec<Row>,
    ids: Vec<PathId>,
}

/// Hosts refer to the place of their source in `ref`.
fn case(hosts: impl IntoIterator<Item = Document>, sources: impl IntoIterator<Item = Document>) -> Case {
    let (mut host_paths, mut source_paths) = (Paths::default(), Paths::default());
    let sources: Vec<Row> = sources.into_iter().map(|doc| Row::of(&Doc::from(doc), &mut source_paths)).collect();
    let pairs = hosts.into_iter().enumerate().map(|(document, host)| Pair {
        document,
        source: usize::try_from(host.get_i32("ref").unwrap()).unwrap(),
        host: Row::of(&Doc::from(host), &mut host_paths),
    });
    let pairs = pairs.collect();
    let ids = ["_id", "ref"].iter().filter_map(|path| host_paths.number(path)).collect();
    Case { host_paths, source_paths, pairs, sources, ids }
}

/// `field: name=source …; checked, wrong`.
fn copies(case: &Case) -> Vec<String> {
    let Case { host_paths, source_paths, pairs, sources, ids } = case;
    let compared = Compared { pairs, sources, host_paths, source_paths, ids };
    let shown = |copy: &Copy| {
        let fields: Vec<String> =
            copy.fields.iter().map(|it| format!("{}={}", it.name, source_paths.name(it.source))).collect();
        format!("{}: {}; {} {}", copy.field, fields.join(" "), copy.checked, copy.wrong.len())
    };
    compared.copies().iter().map(shown).collect()
}

fn tier(n: i32) -> &'static str {
    if n % 2 == 0 { "a" } else { "b" }
}

fn customer(n: i32) -> Document {
    doc! { "_id": n, "name": format!("n{n}"), "tier": tier(n), "country": "DE",
    "address": { "city": format!("c{}", n % 30), "zip": n % 40 }, "points": n * 10, "active": true }
}

#[test]
fn nested_and_flat_copies_are_found_with_what_is_wrong() {
    let hosts = (0..200).map(|n| {
        let of = (n * 7) % 50;
        let name = if n % 20 == 3 { "old".to_owned() } else { format!("n{of}") };
        doc! { "_id": n, "ref": of, "customer": { "name": name, "tier": tier(of), "town": format!("c{}", of % 30) },
        "customerName": format!("n{of}"), "country": "DE", "active": true, "total": n }
    });
    let found = copies(&case(hosts, (0..50).map(customer)));
    assert_eq!(
        found,
        ["customer: name=name tier=tier town=address.city; 200 10", "customerName: customerName=name; 200 0"]
    );
}

#[test]
fn a_copied_document_is_one_copy() {
    let hosts = (0..100)
        .map(|n| doc! { "_id": n, "ref": n % 25, "to": customer(n % 25).get_document("address").unwrap().clone() });
    assert_eq!(copies(&case(hosts, (0..25).map(customer))), ["to: city=address.city zip=address.zip; 100 0"]);
}

#[test]
fn what_any_values_do_is_no_copy() {
    // Countries, flags, zeros and small integers, equal in most pairs.
    let hosts = (0..300).map(|n| {
        doc! { "_id": n, "ref": n % 60, "country": if n % 10 == 0 { "FR" } else { "DE" }, "gift": n % 20 != 0, "discount": 0, "n": n % 3 }
    });
    let sources = (0..60).map(|n| {
        doc! { "_id": n, "country": if n % 9 == 0 { "FR" } else { "DE" }, "active": n % 30 != 1, "debt": 0, "level": n % 3 }
    });
    assert_eq!(copies(&case(hosts, sources)), Vec::<String>::new());
    // Only children: the total of one amount is no copy, and neither is the amount.
    let only = case(
        (0..80).map(|n| doc! { "_id": n, "ref": n, "amount": n * 13 }),
        (0..80).map(|n| doc! { "_id": n, "total": n * 13 }),
    );
    assert_eq!(copies(&only), Vec::<String>::new());
    // Only children may still have a copy of a name.
    let named = case((0..80).map(|n| doc! { "_id": n, "ref": n, "of": format!("n{n}") }), (0..80).map(customer));
    assert_eq!(copies(&named), ["of: of=name; 80 0"]);
    // One source only: nothing else to pair with.
    let one = case((0..80).map(|n| doc! { "_id": n, "ref": 0, "name": "n0" }), [customer(0)]);
    assert_eq!(copies(&one), Vec::<String>::new());
}

#[test]
fn null_is_missing_and_hosts_without_a_copy_are_not_wrong() {
    let hosts = (0..100).map(|n| match n % 4 {
        0 => doc! { "_id": n, "ref": n % 20 },
        1 => doc! { "_id": n, "ref": n % 20, "by": { "name": format!("n{}", n % 20), "nick": null } },
        _ => doc! { "_id": n, "ref": n % 20, "by": { "name": format!("n{}", n % 20) } },
    });
    let case = case(hosts, (0..20).map(|n| doc! { "_id": n, "name": format!("n{n}"), "nick": null }));
    let Case { host_paths, source_paths, pairs, sources, ids } = &case;
    let all = Compared { pairs, sources, host_paths, source_paths, ids }.copies();
    assert_eq!((all.len(), all[0].checked, all[0].wrong.len(), all[0].absent), (1, 75, 0, 25));
}

#[test]
fn copies_are_frozen_if_only_older_ones_differ() {
    // Every third source changed at 100; documents were written at 0..200.
    let times: Vec<Times> = (0..200).map(|n| (Some(n), Some(if n % 3 == 0 { 100 } else { -1 }))).collect();
    let older: Vec<usize> = (0..100).filter(|n| n % 3 == 0).collect();
    assert!(are_frozen(&times, &older, 1));
    assert!(are_frozen(&times, &older[..10], 1), "some changes do not touch the copy");
    assert!(!are_frozen(&times, &[older.clone(), vec![150]].concat(), 1));
    assert!(!are_frozen(&times, &[], 1));
    // All are older than the last change: that says nothing of those that differ.
    let all: Vec<Times> = (0..200).map(|n| (Some(n), Some(1_000))).collect();
    assert!(!are_frozen(&all, &[5, 6, 7], 1));
    assert!(!are_frozen(&vec![(None, None); 10], &[1], 1));
}
