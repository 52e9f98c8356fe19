//! Which numbers of a parent follow from its children.

use super::*;
use bson::{Document, doc};
use document::Doc;

/// Parents `0..`, and children that name theirs in `p`.
struct Case {
    paths: Paths,
    child_paths: Paths,
    parents: Vec<Row>,
    children: Vec<Row>,
    families: Vec<Vec<u32>>,
}

fn case(parents: impl IntoIterator<Item = Document>, children: impl IntoIterator<Item = Document>) -> Case {
    let (mut paths, mut child_paths) = (Paths::default(), Paths::default());
    let parents: Vec<Row> = parents.into_iter().map(|doc| Row::of(&Doc::from(doc), &mut paths)).collect();
    let mut families = vec![Vec::new(); parents.len()];
    let mut rows = Vec::new();
    for child in children {
        let parent = usize::try_from(child.get_i32("p").unwrap()).unwrap();
        families[parent].push(u32::try_from(rows.len()).unwrap());
        rows.push(Row::of(&Doc::from(child), &mut child_paths));
    }
    Case { paths, child_paths, parents, children: rows, families }
}

/// `path: making [where path]`, checked, wrong.
fn kept(case: &Case) -> Vec<(String, u64, usize)> {
    let compared = Compared { parents: &case.parents, families: &case.families, children: &case.children };
    let ids: Vec<PathId> = case.paths.number("_id").into_iter().collect();
    let child_ids: Vec<PathId> = ["_id", "p"].iter().filter_map(|path| case.child_paths.number(path)).collect();
    let mut all: Vec<(String, u64, usize)> = compared
        .kept(&ids, &child_ids)
        .into_iter()
        .map(|kept| {
            let mut text = format!("{}: {}", case.paths.name(kept.path), shown(&kept.making, &case.child_paths));
            if let Some((path, _)) = kept.making.only {
                text = format!("{text} where {}", case.child_paths.name(path));
            }
            (text, kept.checked, kept.wrong.len())
        })
        .collect();
    all.sort();
    all
}

/// So many children for a parent, uneven.
fn number(parent: i32) -> i32 {
    (parent * 7) % 13
}

fn children(parents: i32, make: impl Fn(i32, i32) -> Document) -> Vec<Document> {
    (0..parents)
        .flat_map(|parent| (0..number(parent)).map(move |n| (parent, n)))
        .map(|(parent, n)| make(parent, n))
        .collect()
}

#[test]
fn counts_sums_averages_and_extremes_are_found_with_what_is_wrong() {
    let amount = |parent: i32, n: i32| f64::from((parent * 31 + n * 17) % 97) + 0.25;
    let amounts = |parent: i32| (0..number(parent)).map(move |n| amount(parent, n));
    let parents = (0..60).map(|p| {
        let sum: f64 = amounts(p).sum();
        let mut doc =
            doc! { "_id": p, "orders": if p % 20 == 3 { 99 } else { number(p) }, "spent": sum, "luck": (p * 37) % 11 };
        if number(p) > 0 {
            doc.insert("average", (sum / f64::from(number(p)) * 10.0).round() / 10.0);
            doc.insert("most", amounts(p).fold(0.0, f64::max));
        }
        doc
    });
    let case = case(parents, children(60, |p, n| doc! { "_id": n, "p": p, "amount": amount(p, n) }));
    let expected = [
        ("average: avg of amount".to_owned(), 56, 0),
        ("most: max of amount".to_owned(), 56, 0),
        ("orders: count".to_owned(), 60, 3),
        ("spent: sum of amount".to_owned(), 60, 0),
    ];
    let found = kept(&case);
    assert_eq!(found.iter().map(|it| &it.0).collect::<Vec<_>>(), expected.iter().map(|it| &it.0).collect::<Vec<_>>());
    assert_eq!(found.iter().map(|it| it.2).collect::<Vec<_>>(), [0, 0, 3, 0]);
}

#[test]
fn a_filter_on_an_enumerated_field_is_found() {
    let status = |p: i32, n: i32| ["paid", "open", "void"][usize::try_from((p * 5 + n * n) % 3).unwrap()];
    let paid = |p: i32| i32::try_from((0..number(p)).filter(|n| status(p, *n) == "paid").count()).unwrap();
    let parents = (0..90).map(|p| doc! { "_id": p, "done": paid(p), "worth": paid(p) * (p + 3) });
    let case = case(parents, children(90, |p, n| doc! { "p": p, "status": status(p, n), "value": p + 3 }));
    let names: Vec<String> = kept(&case).into_iter().map(|(text, ..)| text).collect();
    assert_eq!(names, ["done: count where status", "worth: sum of value where status"]);
}

#[test]
fn parents_without_children_hold_nothing_or_zero() {
    let parents = (0..60).map(|p| match number(p) {
        0 if p % 2 == 0 => doc! { "_id": p },
        n => doc! { "_id": p, "count": n },
    });
    let case = case(parents, children(60, |p, _| doc! { "p": p }));
    let found = kept(&case);
    assert_eq!((&*found[0].0, found[0].2), ("count: count", 0));
}

#[test]
fn what_any_numbers_do_is_no_counter() {
    // Only children: one child each, and the number 1.
    let only = case((0..100).map(|p| doc! { "_id": p, "version": 1 }), (0..100).map(|p| doc! { "p": p, "n": p }));
    assert_eq!(kept(&only), []);
    // Only children: the sum of one amount may as well be a copy of it.
    let copied =
        case((0..100).map(|p| doc! { "_id": p, "total": p * 3 }), (0..100).map(|p| doc! { "p": p, "amount": p * 3 }));
    assert_eq!(kept(&copied), []);
    // Zeros.
    let zeros = case((0..100).map(|p| doc! { "_id": p, "discount": 0 }), (0..3).map(|p| doc! { "p": p }));
    assert_eq!(kept(&zeros), []);
    // Small integers and flags.
    let small = case(
        (0..300).map(|p| doc! { "_id": p, "level": i32::from(p % 5 == 0) + 1, "flag": i32::from(p % 9 != 0) }),
        (0..300).flat_map(|p| (0..=i32::from(p % 7 == 0)).map(move |n| doc! { "p": p, "n": n, "kind": n })),
    );
    assert_eq!(kept(&small), []);
    // Running numbers.
    let running = case((0..100).map(|p| doc! { "_id": p, "number": p }), children(100, |p, n| doc! { "p": p, "n": n }));
    assert_eq!(kept(&running), []);
    // A copy of the parent's number in each child is no average, least or greatest of them.
    let tier =
        case((0..100).map(|p| doc! { "_id": p, "tier": p * 2 }), children(100, |p, _| doc! { "p": p, "tier": p * 2 }));
    assert_eq!(kept(&tier), []);
}

#[test]
fn few_parents_show_nothing() {
    let case = case((0..4).map(|p| doc! { "_id": p, "n": number(p) }), children(4, |p, _| doc! { "p": p }));
    assert_eq!(kept(&case), []);
}
