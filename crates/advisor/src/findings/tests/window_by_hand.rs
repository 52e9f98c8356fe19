//! Windows that are kept by hand: found, with the wrong ones counted, and what is no window.

use crate::Severity;
use crate::testing::{DAY, Fixture, NOW, evidence, id_of_age};
use bson::{Document, doc};

const SYMPTOM: &str = "window_by_hand";
const KEEP: usize = 3;

fn number(post: i64) -> i64 {
    (post * 5) % 9
}

/// Comments of a post, not in the order of their dates.
fn comments(post: i64) -> Vec<Document> {
    (0..number(post))
        .map(|n| {
            let date = bson::DateTime::from_millis(NOW - ((n * 4 + post) % 11) * DAY - n);
            doc! { "_id": id_of_age(5, (post * 20 + n) as u32), "post": id_of_age(50, post as u32), "who": format!("u{post}.{n}"), "text": format!("t{}", n % 4), "at": date }
        })
        .collect()
}

fn newest(post: i64) -> Vec<Document> {
    let mut all = comments(post);
    all.sort_by_key(|comment| std::cmp::Reverse(*comment.get_datetime("at").unwrap()));
    all.truncate(KEEP);
    all
}

fn short(comment: &Document) -> Document {
    doc! { "author": comment.get_str("who").unwrap(), "text": comment.get_str("text").unwrap() }
}

async fn blog(window: impl Fn(i64) -> Vec<Document>) -> Fixture {
    let posts =
        (0..200).map(|n| doc! { "_id": id_of_age(50, n as u32), "title": format!("post {n}"), "latest": window(n) });
    Fixture::new().with("posts", posts).await.with("comments", (0..200).flat_map(comments)).await
}

#[tokio::test]
async fn a_right_window_is_a_note_and_wrong_ones_are_counted() {
    let right = |n: i64| newest(n).iter().map(short).collect::<Vec<_>>();
    let finding = blog(right).await.one(SYMPTOM).await;
    assert_eq!((&*finding.collection, &*finding.field, finding.severity), ("posts", "latest", Severity::Note));
    let declaration = finding.declaration.unwrap();
    let expected =
        "latest: { from: comments, by: post, sort: { at: -1 }, keep: 3, fields: { author: who, text: text } }";
    assert!(declaration.contains(expected), "{declaration}");

    let stale = |n: i64| match n % 40 {
        12 => newest(n).iter().skip(1).map(short).collect(),
        _ => right(n),
    };
    let finding = blog(stale).await.one(SYMPTOM).await;
    let figures = evidence(&finding);
    assert_eq!(
        (finding.severity, figures.get_i32("wrong").unwrap(), figures.get_i32("keep").unwrap()),
        (Severity::Act, 5, 3)
    );
}

#[tokio::test]
async fn whole_children_need_no_fields_and_the_newest_may_be_last() {
    let reversed = |n: i64| newest(n).into_iter().rev().collect::<Vec<_>>();
    let finding = blog(reversed).await.one(SYMPTOM).await;
    assert_eq!((finding.severity, finding.against.len()), (Severity::Note, 1));
    assert!(finding.declaration.unwrap().contains("latest: { from: comments, by: post, sort: { at: -1 }, keep: 3 }"));
}

#[tokio::test]
async fn all_children_or_any_of_them_are_no_window() {
    let all = |n: i64| comments(n).iter().map(short).collect::<Vec<_>>();
    assert_eq!(blog(all).await.found(SYMPTOM).await.len(), 0);
    let any = |n: i64| {
        let mut all = comments(n);
        all.sort_by_key(|comment| {
            comment.get_str("who").unwrap().bytes().map(|byte| u64::from(byte) * 31 % 17).sum::<u64>()
        });
        all.iter().take(KEEP).map(short).collect::<Vec<_>>()
    };
    assert_eq!(blog(any).await.found(SYMPTOM).await.len(), 0);
    // Only children.
    let posts = (0..100_i64).map(|n| doc! { "_id": id_of_age(50, n as u32), "latest": [{ "text": format!("t{n}") }] });
    let comments = (0..100_i64).map(|n| doc! { "_id": n, "post": id_of_age(50, n as u32), "text": format!("t{n}") });
    let fixture = Fixture::new().with("posts", posts).await.with("comments", comments).await;
    assert_eq!(fixture.found(SYMPTOM).await.len(), 0);
}
