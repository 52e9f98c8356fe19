//! Several kinds of documents in one collection, and collections of one kind.

use crate::Severity;
use crate::testing::{Fixture, evidence};
use bson::{Document, doc};

const SYMPTOM: &str = "several_kinds";

fn products() -> impl Iterator<Item = Document> {
    (0..300).map(|n| match n % 3 {
        0 => doc! { "_id": n, "type": "book", "title": "a", "isbn": format!("978-{n}"), "pages": n, "author": "x" },
        1 => doc! { "_id": n, "type": "electronics", "title": "b", "brand": "y", "volts": 230, "warranty": 2 },
        _ => doc! { "_id": n, "type": "clothing", "title": "c", "size": "M", "material": "wool", "colour": "red" },
    })
}

#[tokio::test]
async fn kinds_with_fields_of_their_own_are_declared() {
    let finding = Fixture::new().with("products", products()).await.one(SYMPTOM).await;
    assert_eq!((&*finding.collection, &*finding.field, finding.pattern), ("products", "type", "polymorphic"));
    assert_eq!(finding.severity, Severity::Warn);
    let declaration = finding.declaration.as_deref().unwrap();
    assert!(declaration.contains("discriminator: type") && declaration.contains("isbn"), "{declaration}");
    let evidence = evidence(&finding);
    assert!(evidence.get_f64("overlap").unwrap() < 0.5, "{evidence}");
    assert_eq!(evidence.get_array("kinds").unwrap().len(), 3);
}

#[tokio::test]
async fn a_state_is_no_kind() {
    let orders = (0..300).map(|n| {
        let mut doc = doc! { "_id": n, "customer": n, "total": 5, "items": 2, "placed": 1, "state": if n % 2 == 0 { "open" } else { "sent" } };
        if n % 2 == 1 {
            doc.insert("sentAt", n);
        }
        doc
    });
    Fixture::new().with("orders", orders).await.assert_none(SYMPTOM).await;
}

#[tokio::test]
async fn kinds_without_anything_in_common_are_a_note() {
    let mixed = (0..100).map(|n| match n % 2 {
        0 => doc! { "_id": n, "type": "invoice", "amount": n, "due": 1 },
        _ => doc! { "_id": n, "type": "picture", "width": n, "height": 1 },
    });
    let finding = Fixture::new().with("things", mixed).await.one(SYMPTOM).await;
    assert_eq!(finding.severity, Severity::Note, "{finding:#?}");
}
