//! `each`, `match`, expressions on documents that are there, and children in the same collection.

use crate::harness::*;
use bson::{Bson, bson, doc};

#[test]
fn a_tag_counts_each_post_once() {
    let world = World::new("\n  tags:\n    computed:\n      postCount: { count: posts, by: tags, each: true }\n");
    run(async {
        world.did(insert("tags", vec![doc! {"_id": "a"}, doc! {"_id": "b"}])).await;
        let post = |id: i32, tags: Bson| doc! {"_id": id, "tags": tags};
        world
            .did(insert(
                "posts",
                vec![post(1, bson!(["a", "a", "b"])), post(2, bson!("a")), post(3, bson!([["a"], null]))],
            ))
            .await;
        assert_eq!(world.all("tags").await, [doc! {"_id": "a", "postCount": 2}, doc! {"_id": "b", "postCount": 1}]);
        world.did(update("posts", doc! {"_id": 1}, doc! {"$pull": {"tags": "a"}}, &[])).await;
        world.did(insert("tags", vec![doc! {"_id": "c"}])).await;
        world.did(update("posts", doc! {}, doc! {"$set": {"tags": ["c", "b"]}}, &["multi"])).await;
        assert_eq!(world.field("tags", "a", "postCount").await, Some(0.into()));
        assert_eq!(world.field("tags", "c", "postCount").await, Some(3.into()));
        // A host that comes later.
        world.did(delete("tags", doc! {"_id": "b"}, false)).await;
        world.did(insert("tags", vec![doc! {"_id": "b"}])).await;
        assert_eq!(world.field("tags", "b", "postCount").await, Some(3.into()));
        world.check().await;
    });
}

#[test]
fn elements_inside_arrays_of_documents_link_as_they_are_written() {
    let world = World::new("\n  tags:\n    computed:\n      n: { sum: n, from: posts, by: parts.tags, each: true }\n");
    run(async {
        let parts = bson!([{ "tags": ["a", "b"] }, { "tags": "a" }, 5, [{ "tags": "b" }], { "tags": [["c"]] }]);
        world.did(insert("posts", vec![doc! {"_id": 1, "n": 7, "parts": parts}])).await;
        // Evaluated from scratch.
        world.did(insert("tags", ["a", "b", "c"].iter().map(|id| doc! {"_id": *id}).collect())).await;
        world.did(insert("posts", vec![doc! {"_id": 2, "n": 1, "parts": { "tags": ["b", "b"] }}])).await;
        for (tag, n) in [("a", 7), ("b", 8), ("c", 0)] {
            assert_eq!(world.field("tags", tag, "n").await, Some(n.into()), "{tag}");
        }
        world.check().await;
    });
}

#[test]
fn a_host_is_found_by_another_field() {
    let world = World::new("\n  users:\n    computed:\n      mails: { count: mails, by: to, match: address }\n");
    run(async {
        world.did(insert("users", vec![doc! {"_id": 1, "address": "a"}, doc! {"_id": 2, "address": "b"}])).await;
        world.did(insert("mails", (0..3).map(|id| doc! {"_id": id, "to": "a"}).collect())).await;
        assert_eq!(world.field("users", 1, "mails").await, Some(3.into()));
        world.did(update("users", doc! {"_id": 1}, doc! {"$set": {"address": "x"}}, &[])).await;
        world.did(update("users", doc! {"_id": 2}, doc! {"$set": {"address": "a"}}, &[])).await;
        assert_eq!(world.field("users", 1, "mails").await, Some(0.into()));
        assert_eq!(world.field("users", 2, "mails").await, Some(3.into()));
        world.check().await;
    });
}

#[test]
fn a_comment_counts_its_replies() {
    let world = World::new("\n  comments:\n    computed:\n      replies: { count: comments, by: parent }\n");
    run(async {
        let comment = |id: i32, parent: Bson| doc! {"_id": id, "parent": parent};
        world
            .did(insert(
                "comments",
                vec![comment(1, Bson::Null), comment(2, 1.into()), comment(3, 1.into()), comment(4, 3.into())],
            ))
            .await;
        assert_eq!(world.field("comments", 1, "replies").await, Some(2.into()));
        world.did(delete("comments", doc! {"_id": 3}, false)).await;
        assert_eq!(world.field("comments", 1, "replies").await, Some(1.into()));
        world.did(insert("comments", vec![comment(3, 2.into())])).await;
        assert_eq!(world.field("comments", 3, "replies").await, Some(1.into()));
        assert_eq!(world.field("comments", 2, "replies").await, Some(1.into()));
        world.check().await;
    });
}

#[test]
fn an_expression_links_documents_that_are_there() {
    let world = World::new(
        "\n  words:\n    computed:\n      uses: { count: texts, by: { $toLower: $word } }\n      length: { avg: n, from: texts, by: { $toLower: $word } }\n",
    );
    run(async {
        world.did(insert("words", vec![doc! {"_id": "tree"}])).await;
        let text = |id: i32, word: Bson| doc! {"_id": id, "word": word, "n": id};
        // What is no string, or nothing, links nowhere, and its write goes through.
        world
            .did(insert(
                "texts",
                vec![
                    text(1, "Tree".into()),
                    text(2, "TREE".into()),
                    text(3, 5.into()),
                    text(4, bson!(["tree"])),
                    text(5, Bson::Null),
                ],
            ))
            .await;
        assert_eq!(world.field("words", "tree", "uses").await, Some(2.into()));
        world.did(update("texts", doc! {"_id": 3}, doc! {"$set": {"word": "tree"}}, &[])).await;
        world.did(update("texts", doc! {"_id": 1}, doc! {"$set": {"word": "bush"}}, &[])).await;
        world.did(insert("words", vec![doc! {"_id": "bush"}])).await;
        assert_eq!(world.field("words", "tree", "uses").await, Some(2.into()));
        assert_eq!(world.field("words", "tree", "length").await, Some(2.5.into()));
        assert_eq!(world.field("words", "bush", "uses").await, Some(1.into()));
        world.check().await;
    });
}
