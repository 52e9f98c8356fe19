//! Samples and schemas of two versions, the steps between them, and that the printed declaration makes one the other.

use super::{About, Evidence, Proposal, declaration, from_declarations, from_evidence};
use crate::declare::{self, Severity};
use bson::{Bson, Document, doc};
use document::{Doc, Env};

const NUMBER: &str = "schemaVersion";

fn sample(documents: &[Document]) -> Evidence {
    Evidence::of_documents(documents.iter().cloned().map(Doc::from).collect(), NUMBER)
}

fn schema(schema: Document) -> Evidence {
    Evidence::of_schema(&Doc::from(schema), NUMBER)
}

fn about() -> About {
    About::new("shop", NUMBER)
}

fn propose(old: &Evidence, new: &Evidence) -> Proposal {
    from_evidence(old, new, "users", &about()).unwrap()
}

/// The steps as they are declared.
fn steps(proposal: &Proposal) -> Vec<Document> {
    proposal.steps.iter().map(|step| Document::try_from(&step.declared).unwrap()).collect()
}

fn text(proposal: &Proposal) -> String {
    declaration(std::slice::from_ref(proposal), &[about()])
}

/// The printed declaration is valid, and makes each older document the newer one with its `_id`.
fn round_trip(old: &[Document], new: &[Document]) -> Proposal {
    let proposal = propose(&sample(old), &sample(new));
    let text = text(&proposal);
    let checked = declare::from_yaml("printed", &text);
    assert!(checked.findings.iter().all(|it| it.severity < Severity::Error), "{text}\n{:?}", checked.findings);
    let declaration = checked.declaration.unwrap();
    let lens = declaration.rules[0].lens().unwrap();
    for before in old {
        let after = new.iter().find(|doc| doc.get("_id") == before.get("_id")).unwrap();
        let made = lens.up(&Doc::from(before.clone()), &Env::fixed()).unwrap().unwrap();
        let mut made = sorted(Document::try_from(&made).unwrap());
        assert_eq!(made.remove(NUMBER), Some(Bson::Int32(2)));
        assert_eq!(made, sorted(after.clone()), "{text}");
    }
    let trial = proposal.trial.as_ref().unwrap();
    assert_eq!((trial.same_shape, trial.equal, trial.in_both), (old.len(), old.len(), old.len()), "{trial:?}");
    proposal
}

fn sorted(doc: Document) -> Document {
    let inner = |value: Bson| match value {
        Bson::Document(doc) => Bson::Document(sorted(doc)),
        other => other,
    };
    let fields: std::collections::BTreeMap<String, Bson> =
        doc.into_iter().map(|(name, value)| (name, inner(value))).collect();
    fields.into_iter().collect()
}

#[test]
fn the_same_documents_show_every_kind_of_step() {
    let old = [
        doc! { "_id": 1, "mail": "a@x", "phone": "1", "name": "Ada L", "street": "S 1", "city": "C", "age": "7", "nick": "a", "fax": 1, "kept": 1 },
        doc! { "_id": 2, "mail": "b@x", "phone": "2", "name": "Bob M N", "street": "T 2", "city": "D", "age": "8", "nick": "b", "fax": 2, "kept": 2 },
        doc! { "_id": 3, "mail": "c@x", "name": "Cyd", "street": "U 3", "city": "E", "age": "9", "nick": "c", "kept": 3 },
    ];
    let new = [
        doc! { "_id": 1, "email": "a@x", "phone": { "number": "1", "code": "+1" }, "first": "Ada", "last": "L", "address": "S 1, C", "age": 7, "nick": ["a"], "active": true, "kept": 1 },
        doc! { "_id": 2, "email": "b@x", "phone": { "number": "2", "code": "+1" }, "first": "Bob", "last": "M N", "address": "T 2, D", "age": 8, "nick": ["b"], "active": true, "kept": 2 },
        doc! { "_id": 3, "email": "c@x", "first": "Cyd", "address": "U 3, E", "age": 9, "nick": ["c"], "active": true, "kept": 3 },
    ];
    let proposal = round_trip(&old, &new);
    let found = steps(&proposal);
    for step in [
        doc! { "rename": { "mail": "email" } },
        doc! { "nest": { "phone": { "into": "phone.number", "with": { "phone.code": "+1" } } } },
        doc! { "split": { "name": { "into": ["first", "last"], "on": " " } } },
        doc! { "join": { "address": { "from": ["street", "city"], "with": ", " } } },
        doc! { "convert": { "age": { "from": "string", "to": "int" } } },
        doc! { "wrap": ["nick"] },
        doc! { "default": { "active": true } },
        doc! { "drop": ["fax"] },
    ] {
        assert!(found.contains(&step), "{step} among {found:#?}");
    }
    assert_eq!(found.len(), 8, "{found:#?}");
    let text = text(&proposal);
    for said in ["# sure: in all 3 documents", "# guess: `active` is new", "# loses something: `fax`"] {
        assert!(text.contains(said), "{said} in {text}");
    }
}

#[test]
fn values_may_move_and_change_their_type_at_once() {
    let old = [doc! { "_id": 1, "born": "1815", "tag": "x" }, doc! { "_id": 2, "born": "1912", "tag": "y" }];
    let new = [doc! { "_id": 1, "year": 1815, "tags": ["x"] }, doc! { "_id": 2, "year": 1912, "tags": ["y"] }];
    let found = steps(&round_trip(&old, &new));
    assert_eq!(found.len(), 4, "{found:?}");
    assert!(found.contains(&doc! { "convert": { "year": { "from": "string", "to": "int" } } }), "{found:?}");
}

#[test]
fn documents_are_renamed_whole_and_fields_come_out_of_them() {
    let old = [
        doc! { "_id": 1, "addr": { "street": "S", "city": "C" }, "contact": { "mail": "a" }, "n": 1 },
        doc! { "_id": 2, "addr": { "street": "T", "city": "D" }, "contact": { "mail": "b" }, "n": 2 },
    ];
    let new = [
        doc! { "_id": 1, "address": { "street": "S", "city": "C" }, "email": "a", "n": 1 },
        doc! { "_id": 2, "address": { "street": "T", "city": "D" }, "email": "b", "n": 2 },
    ];
    let found = steps(&round_trip(&old, &new));
    assert_eq!(found, [doc! { "rename": { "addr": "address" } }, doc! { "rename": { "contact.mail": "email" } }]);
}

#[test]
fn samples_of_different_documents_give_guesses() {
    let old = sample(&[
        doc! { "_id": "a", "phone": "1", "name": "Ada L", "old": 1 },
        doc! { "_id": "b", "phone": "2", "name": "Bob M", "old": 2 },
    ]);
    let new = sample(&[
        doc! { "_id": "c", "phoneNumber": "3", "first": "Cyd", "last": "N" },
        doc! { "_id": "d", "phoneNumber": "4", "first": "Dan", "last": "O", "nick": "d" },
    ]);
    let proposal = propose(&old, &new);
    assert_eq!(
        steps(&proposal),
        [
            doc! { "split": { "name": { "into": ["first", "last"], "on": " " } } },
            doc! { "rename": { "phone": "phoneNumber" } },
            doc! { "drop": ["old"] },
        ],
        "{proposal:?}"
    );
    assert!(proposal.steps.iter().all(|step| !step.is_sure), "{proposal:?}");
    assert!(proposal.notes.iter().any(|note| note.text.contains("`nick`") && !note.is_difference), "{proposal:?}");
    let trial = proposal.trial.unwrap();
    assert_eq!((trial.documents, trial.same_shape, trial.in_both), (2, 2, 0));
}

#[test]
fn numbers_that_both_samples_count_from_one_are_no_evidence() {
    let old = sample(&[doc! { "_id": 1, "mail": "a", "n": 1 }, doc! { "_id": 2, "mail": "b", "n": 2 }]);
    let new = sample(&[doc! { "_id": 1, "email": "c", "n": 3 }, doc! { "_id": 2, "email": "d", "n": 4 }]);
    assert_eq!(steps(&propose(&old, &new)), [doc! { "rename": { "mail": "email" } }]);
}

#[test]
fn what_no_step_explains_is_left() {
    let old = sample(&[doc! { "_id": 1, "a": "x", "n": 1 }, doc! { "_id": 2, "a": "y", "n": 2 }]);
    let new = sample(&[doc! { "_id": 1, "a": { "b": 1 }, "n": 1 }, doc! { "_id": 2, "a": { "b": 2 }, "n": 2 }]);
    let proposal = propose(&old, &new);
    assert!(!proposal.steps.iter().any(|step| step.is_sure), "{proposal:?}");
    assert_eq!(proposal.trial.as_ref().map(|trial| trial.equal), Some(0), "{proposal:?}");
    let same = propose(&old, &old.clone());
    assert!(same.steps.is_empty() && same.trial.is_none() && text(&same).is_empty(), "{same:?}");
}

#[test]
fn schemas_say_names_types_and_what_is_required() {
    let old = schema(doc! { "bsonType": "object", "required": ["mail"], "properties": {
        "mail": { "bsonType": "string" }, "age": { "bsonType": "string" }, "tag": { "bsonType": "string" },
        "fullName": { "bsonType": "string" }, "fax": { "bsonType": "string" },
    } });
    let new = schema(doc! { "bsonType": "object", "required": ["email", "status"], "properties": {
        "email": { "bsonType": "string" }, "age": { "bsonType": "int" },
        "tag": { "bsonType": "array", "items": { "bsonType": "string" } },
        "firstName": { "bsonType": "string" }, "lastName": { "bsonType": "string" },
        "status": { "enum": ["active", "gone"], "bsonType": "string" }, "note": { "bsonType": "string" },
    } });
    let proposal = propose(&old, &new);
    let found = steps(&proposal);
    for step in [
        doc! { "rename": { "mail": "email" } },
        doc! { "split": { "fullName": { "into": ["firstName", "lastName"], "on": " " } } },
        doc! { "convert": { "age": { "from": "string", "to": "int" } } },
        doc! { "wrap": ["tag"] },
        doc! { "default": { "status": "active" } },
        doc! { "drop": ["fax"] },
    ] {
        assert!(found.contains(&step), "{step} among {found:#?}");
    }
    assert_eq!(found.len(), 6, "{found:#?}");
    assert!(declare::from_yaml("printed", &text(&proposal)).declaration.is_some());
}

const OLD: &str = "
database: shop
collections:
  products:
    polymorphic:
      discriminator: type
      kinds:
        book: { required: [title, isbn], schema: { properties: { title: { bsonType: string }, pages: { bsonType: string } } } }
        lamp: { required: [title] }
    versions: { field: v, steps: [{ rename: { name: title } }] }
";

const NEW: &str = "
database: shop
collections:
  products:
    polymorphic:
      discriminator: type
      kinds:
        book: { required: [title, isbn, language], schema: { properties: { title: { bsonType: string }, pages: { bsonType: int }, language: { enum: [en] } } } }
        lamp: { required: [title] }
        toy:  { required: [title, age] }
";

#[test]
fn declarations_are_compared_by_the_schemas_of_their_kinds() {
    let read = |text: &str| declare::from_yaml("it", text).into_result().unwrap();
    let all = from_declarations(&read(OLD), &read(NEW), NUMBER).unwrap();
    let (proposals, about): (Vec<_>, Vec<_>) = all.into_iter().unzip();
    let text = declaration(&proposals, &about);
    let checked = declare::from_yaml("printed", &text).declaration.unwrap_or_else(|| panic!("{text}"));
    let lens = checked.rules[0].lens().unwrap();
    // The version that was declared before stays the second, under the field that it had.
    assert_eq!((lens.newest(), &*lens.field), (3, "v"), "{text}");
    let made = |doc: Document| Document::try_from(&lens.up(&Doc::from(doc), &Env::fixed()).unwrap().unwrap()).unwrap();
    assert_eq!(
        sorted(made(doc! { "type": "book", "name": "Emma", "pages": "300", "isbn": "1" })),
        doc! { "isbn": "1", "language": "en", "pages": 300, "title": "Emma", "type": "book", "v": 3 }
    );
    // What one kind must have is nothing for the others, and kinds that are new change no document.
    assert_eq!(
        sorted(made(doc! { "type": "lamp", "title": "L", "v": 2 })),
        doc! { "title": "L", "type": "lamp", "v": 3 }
    );
    let none = declare::from_yaml("it", "database: shop\ncollections: {}\n").into_result();
    let none = none.map(|none| from_declarations(&read(OLD), &none, NUMBER).unwrap_err().message().to_owned());
    assert!(none.is_err() || none.is_ok_and(|message| message.contains("no collection")));
}
