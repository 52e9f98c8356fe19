//! SEMANTICS R1 and R31: effects that are decided by a look at the host, or by asking for its children again.

mod conflicts;
mod plans;
mod rolled_up;
mod scripted;

use bson::doc;

/// A review of product 1.
fn review(id: i32, does: &str, gives: &str) -> bson::Document {
    doc! {"_id": id, "productId": 1, "does": does, "gives": gives}
}

/// The same about a part of the value.
fn review_about(id: i32, does: &str, about: &str, gives: &str) -> bson::Document {
    doc! {"_id": id, "productId": 1, "does": does, "about": about, "gives": gives}
}
