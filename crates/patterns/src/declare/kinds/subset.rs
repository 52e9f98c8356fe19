//! Subset: the first few child documents, by an order, kept inside their parent.

use crate::declare::kinds::{Pattern, Status};

pub(super) const PATTERN: Pattern = Pattern {
    name: "subset",
    title: "Subset",
    help: "Keeps the first few child documents, by an order, inside their parent.",
    problem: "A page shows the five newest comments, and the document holds all of them or needs a second query.",
    mechanism: "The window is kept right under every write of a child; the whole list stays in its own collection.",
    symptom: "An array that grows without bound, or a sorted and limited second query on almost every read.",
    when_not: "Readers want all of the children, or the children change all the time.",
    example: "posts:\n  subset:\n    recent: { from: comments, by: postId, sort: { date: -1 }, keep: 5 }",
    status: Status::NotYet,
};
