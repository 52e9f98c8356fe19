//! Which arrays of a parent hold its first children.

use super::*;
use crate::values::key_bytes;
use bson::{Bson, DateTime, Document, doc};
use document::Doc;

struct Case {
    arrays: Arrays,
    child_paths: Paths,
    children: Vec<Child>,
    families: Vec<Vec<u32>>,
}

/// Children name their parent's place in `p`; the arrays are given by parent.
fn case(arrays: Vec<Option<Vec<Document>>>, children: Vec<Document>) -> Case {
    let mut case = Case {
        arrays: Arrays::default(),
        child_paths: Paths::default(),
        children: Vec::new(),
        families: vec![Vec::new(); arrays.len()],
    };
    for child in children {
        let parent = usize::try_from(child.get_i32("p").unwrap()).unwrap();
        case.families[parent].push(u32::try_from(case.children.len()).unwrap());
        let doc = Doc::from(child);
        let id = key_bytes(&doc.get("_id").unwrap()).into();
        case.children.push(Child { row: Row::of(&doc, &mut case.child_paths), id });
    }
    for array in arrays {
        let rows = array.map(|items| {
            items.into_iter().map(|item| Row::of(&Doc::from(item), &mut case.arrays.item_paths)).collect()
        });
        case.arrays.items.push(rows);
    }
    case
}

fn window(case: &Case) -> Option<Window> {
    let Case { arrays, child_paths, children, families } = case;
    Compared { arrays, families, children, child_paths }.window()
}

fn number(parent: i32) -> i32 {
    (parent * 7) % 11
}

/// Reviews of 60 parents, inserted out of order.
fn reviews() -> Vec<Document> {
    let of = |p: i32| (0..number(p)).map(move |n| (p, n));
    (0..60)
        .flat_map(of)
        .map(|(p, n)| {
            let date = DateTime::from_millis(i64::from((n * 5 + p) % 23) * 1_000_000 + i64::from(n));
            doc! { "_id": p * 100 + n, "p": p, "text": format!("t{p}.{n}"), "stars": n % 5 + 1, "date": date }
        })
        .collect()
}

/// What the window of a parent should be: the newest three, cut to an item.
fn newest(p: i32, item: impl Fn(&Document) -> Document) -> Vec<Document> {
    let mut all: Vec<Document> = reviews().into_iter().filter(|child| child.get_i32("p").unwrap() == p).collect();
    all.sort_by_key(|child| std::cmp::Reverse(*child.get_datetime("date").unwrap()));
    all.iter().take(3).map(item).collect()
}

fn short(child: &Document) -> Document {
    doc! { "said": child.get("text").cloned().unwrap_or(Bson::Null), "stars": child.get("stars").cloned().unwrap_or(Bson::Null) }
}

fn names(case: &Case, window: &Window) -> Vec<String> {
    window.fields.iter().map(|field| format!("{}={}", field.name, case.child_paths.name(field.child))).collect()
}

#[test]
fn the_newest_children_are_a_window_with_renamed_fields() {
    let arrays = (0..60).map(|p| Some(newest(p, short))).collect();
    let case = case(arrays, reviews());
    let found = window(&case).unwrap();
    let date = case.child_paths.number("date").unwrap();
    assert_eq!((found.keep, &found.order, found.is_reversed, found.wrong.len()), (3, &Order::Path(date), false, 0));
    assert_eq!(names(&case, &found), ["said=text", "stars=stars"]);
    assert_eq!(found.checked, 54, "parents without children and items say nothing");
}

#[test]
fn wrong_windows_are_counted_and_pushed_ones_are_reversed() {
    let arrays = (0..60).map(|p| {
        let mut items = newest(p, |child| child.clone());
        items.reverse();
        if p == 9 {
            items[0].insert("text", "stale");
        }
        if p == 20 {
            items.clear();
        }
        Some(items)
    });
    let case = case(arrays.collect(), reviews());
    let found = window(&case).unwrap();
    assert_eq!((found.wrong.clone(), found.is_reversed, found.keep), (vec![9, 20], true, 3));
    assert_eq!(found.fields.len(), 5, "whole children");
}

#[test]
fn what_leaves_nothing_out_or_follows_no_order_is_no_window() {
    // All children.
    let all = (0..60).map(|p| {
        Some(
            reviews().into_iter().filter(|child| child.get_i32("p").unwrap() == p).map(|child| short(&child)).collect(),
        )
    });
    assert!(window(&case(all.collect(), reviews())).is_none());
    // Only children.
    let only = (0..50).map(|p| doc! { "_id": p, "p": p, "text": format!("t{p}") }).collect();
    let arrays = (0..50).map(|p| Some(vec![doc! { "text": format!("t{p}") }])).collect();
    assert!(window(&case(arrays, only)).is_none());
    // Some children, in no order.
    let arrays = (0..60).map(|p| {
        let mut all: Vec<Document> = reviews().into_iter().filter(|child| child.get_i32("p").unwrap() == p).collect();
        all.sort_by_key(|child| (child.get_i32("_id").unwrap() * 7_919) % 101);
        Some(all.iter().take(3).map(short).collect())
    });
    assert!(window(&case(arrays.collect(), reviews())).is_none());
    // Items that have nothing to do with the children but their small numbers.
    let arrays = (0..60).map(|p| Some((0..3).map(|n| doc! { "stars": (p + n) % 5 + 1 }).collect()));
    assert!(window(&case(arrays.collect(), reviews())).is_none());
}
