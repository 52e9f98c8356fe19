//! What a block of versions is lowered to, and that its normal form gives the same rule again.

use crate::declare::block::Block;
use crate::declare::finding::{At, Findings};
use crate::declare::kinds::DeclaredField;
use crate::declare::{normal, yaml};
use crate::rule::{Kind, Rule};
use bson::{Document, doc};
use document::op::Namespace;
use document::value::Path;
use document::{Doc, Env};

fn read(text: &str) -> (Option<Rule>, Vec<String>) {
    let mut findings = Findings::default();
    let node = yaml::read(text, &mut findings).unwrap();
    let block = Block::open(&node, At::default(), "", &mut findings).unwrap();
    let host = Namespace::new("shop", "users");
    let target = DeclaredField { name: "users.versions".into(), host, field: Path::new("versions") };
    let rule = super::lower(&block, &target, &mut findings);
    (
        rule,
        findings.list.into_iter().map(|finding| format!("{} {}", finding.severity.name(), finding.message)).collect(),
    )
}

const ALL: &str = r#"
field: schemaVersion
steps:
  - { nest: { phone: { into: phone.number, with: { phone.countryCode: "+1" } } } }
  - [{ rename: { mail: email } }, { wrap: [email] }]
  - split: { name: { into: [first, last], on: " " } }
    convert: { age: { from: string, to: int } }
  - { join: { address: { from: [street, city], with: ", " } }, default: { active: true }, drop: [fax] }
  - { up: [{ $set: { n: { $size: "$email" } } }], down: [{ $unset: n }] }
migrate: { on_read: true, hours: "23:00-05:30", rate: 2000/s }
"#;

#[test]
fn the_whole_contract_is_read() {
    let (rule, findings) = read(ALL);
    let rule = rule.unwrap_or_else(|| panic!("{findings:?}"));
    let Kind::Lens(lens) = &rule.kind else { panic!("{rule:?}") };
    assert_eq!((lens.newest(), &*lens.field), (6, "schemaVersion"));
    assert_eq!(lens.migrate.hours, Some((23 * 60, 5 * 60 + 30)));
    assert_eq!((lens.migrate.rate, lens.migrate.on_read, lens.migrate.background), (Some(2000), true, true));
    let old =
        Doc::from(doc! { "phone": "5", "mail": "a", "name": "A B", "age": "7", "street": "S", "city": "C", "fax": 1 });
    let newest = Document::try_from(&lens.up(&old, &Env::fixed()).unwrap().unwrap()).unwrap();
    let expected = doc! { "phone": { "countryCode": "+1", "number": "5" }, "age": 7, "email": ["a"], "first": "A", "last": "B",
    "address": "S, C", "active": true, "n": 1, "schemaVersion": 6 };
    let sorted = |doc: Document| doc.into_iter().collect::<std::collections::BTreeMap<_, _>>();
    assert_eq!(sorted(newest), sorted(expected));
}

#[test]
fn the_normal_form_gives_the_rule_again() {
    let rule = read(ALL).0.unwrap();
    let block = normal::collection_block(&rule.declaration).unwrap();
    let node = {
        let mut findings = Findings::default();
        crate::declare::bson::read(&block, &mut findings)
    };
    let mut findings = Findings::default();
    let block = Block::open(&node, At::default(), "", &mut findings).unwrap();
    let target = DeclaredField { name: rule.name.clone(), host: rule.host.clone(), field: rule.field.clone() };
    let again = super::lower(&block, &target, &mut findings).unwrap();
    assert_eq!(again.declaration, rule.declaration);
}

#[test]
fn what_is_lost_is_told() {
    let lossy = [
        ("[{ drop: [fax] }]", "gone for every version"),
        ("[{ split: { name: { into: [a, b], on: ' ' } } }]", "cut at another place"),
        ("[{ convert: { age: { from: double, to: int } } }]", "digits behind the point"),
        ("[{ wrap: [email] }]", "behind the first"),
    ];
    for (steps, loss) in lossy {
        let (rule, findings) = read(&format!("field: v\nsteps: {steps}"));
        assert!(rule.is_some(), "{findings:?}");
        assert!(matches!(&*findings, [only] if only.starts_with("warning") && only.contains(loss)), "{findings:?}");
    }
    assert_eq!(read("field: v\nsteps: [{ rename: { a: b } }]").1, Vec::<String>::new());
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let wrong = [
        ("field: a.b\nsteps: [{ rename: { a: b } }]", "cannot hold a version number"),
        ("field: v\nsteps: []", "needs 1 to 100"),
        ("field: v\nsteps: { rename: { a: b } }", "must be a list"),
        ("field: v\nsteps: [{ renmae: { a: b } }]", "unknown key `renmae`"),
        ("field: v\nsteps: [{ rename: { v: b } }]", "no step may change `v`"),
        ("field: v\nsteps: [{ rename: { a: _id } }]", "no step may change `_id`"),
        ("field: v\nsteps: [{ rename: { a: b, b: a } }]", "named twice"),
        ("field: v\nsteps: [{ nest: { a: { into: b } } }]", "no path inside a document"),
        ("field: v\nsteps: [{ split: { a: { into: [b], on: x } } }]", "two or more fields"),
        ("field: v\nsteps: [{ split: { a: { into: [b, b.c], on: x } } }]", "two or more fields"),
        ("field: v\nsteps: [{ convert: { a: { from: int, to: int } } }]", "which is the same"),
        ("field: v\nsteps: [{ convert: { a: { from: text, to: int } } }]", "`from` cannot be `text`"),
        ("field: v\nsteps: [{ up: [{ $group: { _id: 1 } }], down: [] }]", "`up`"),
        ("field: v\nsteps: [{ down: [] }]", "`down` without `up`"),
        ("field: v\nsteps: [{ up: [] }]", "has no `down`"),
        ("field: v\nsteps: [{ drop: [a] }]\nmigrate: { hours: 25:00-26:00 }", "is no span of a day"),
        ("field: v\nsteps: [{ drop: [a] }]\nmigrate: { rate: fast }", "`rate` must be a number"),
        ("field: v\nsteps: [{ drop: [a] }]\nmigrate: { background: false, rate: 5/s }", "`background` is false"),
    ];
    for (text, expected) in wrong {
        let (rule, findings) = read(text);
        assert!(rule.is_none(), "{text}");
        assert!(
            findings.iter().any(|told| told.starts_with("error") && told.contains(expected)),
            "{text}: {findings:?}"
        );
    }
}
