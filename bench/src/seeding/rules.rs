//! The rules that are seeded, each with the pipeline that a person would run instead.

use bson::{Document, doc};

pub(crate) const HOSTS: &str = "hosts";
pub(crate) const CHILDREN: &str = "children";

pub(crate) struct SeededRule {
    pub(crate) name: &'static str,
    /// The rules of a collection, as a declaration has them.
    pub(crate) declared: Document,
    /// The collection whose documents get the field: the hosts, or of a copy the children.
    pub(crate) host: &'static str,
    /// The collection and the pipeline that fill the field by hand.
    pub(crate) by_hand: (&'static str, Vec<Document>),
}

fn computed(name: &'static str, rule: Document, accumulator: Document) -> SeededRule {
    let group = doc! { "$group": { "_id": "$hostId", "field": accumulator } };
    of_children(name, doc! { "computed": { "field": rule } }, vec![group])
}

fn of_children(name: &'static str, declared: Document, mut pipeline: Vec<Document>) -> SeededRule {
    pipeline.push(doc! { "$merge": { "into": HOSTS, "whenMatched": "merge", "whenNotMatched": "discard" } });
    SeededRule { name, declared, host: HOSTS, by_hand: (CHILDREN, pipeline) }
}

pub(crate) fn all() -> Vec<SeededRule> {
    let shown = doc! { "v": "$v", "text": "$text", "at": "$at" };
    let distinct = vec![
        doc! { "$group": { "_id": { "hostId": "$hostId", "v": "$v" } } },
        doc! { "$group": { "_id": "$_id.hostId", "field": { "$sum": 1 } } },
    ];
    let joined = vec![
        doc! { "$lookup": { "from": HOSTS, "localField": "hostId", "foreignField": "_id", "as": "field" } },
        doc! { "$project": { "field": { "name": { "$first": "$field.name" } } } },
        doc! { "$merge": { "into": CHILDREN, "whenMatched": "merge", "whenNotMatched": "discard" } },
    ];
    vec![
        computed("count", doc! { "count": CHILDREN, "by": "hostId" }, doc! { "$sum": 1 }),
        computed("avg", doc! { "avg": "v", "from": CHILDREN, "by": "hostId" }, doc! { "$avg": "$v" }),
        computed("max", doc! { "max": "v", "from": CHILDREN, "by": "hostId" }, doc! { "$max": "$v" }),
        computed(
            "last",
            doc! { "last": "v", "from": CHILDREN, "by": "hostId", "sort": { "at": 1 } },
            doc! { "$top": { "sortBy": { "at": -1 }, "output": "$v" } },
        ),
        of_children(
            "distinct",
            doc! { "computed": { "field": { "distinct": "v", "from": CHILDREN, "by": "hostId" } } },
            distinct,
        ),
        of_children(
            "window",
            doc! { "subset": { "field": { "from": CHILDREN, "by": "hostId", "sort": { "at": -1 }, "keep": 5, "fields": ["v", "text", "at"] } } },
            vec![
                doc! { "$group": { "_id": "$hostId", "field": { "$topN": { "n": 5, "sortBy": { "at": -1 }, "output": shown } } } },
            ],
        ),
        SeededRule {
            name: "copy",
            declared: doc! { "extended_reference": { "field": { "from": HOSTS, "by": "hostId", "fields": ["name"] } } },
            host: CHILDREN,
            by_hand: (CHILDREN, joined),
        },
    ]
}
