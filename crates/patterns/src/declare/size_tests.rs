//! A declaration has a largest size, and checking takes as long as it is large: sixteen times as much text is checked in about
//! sixteen times the time, whatever it is made of. Both sizes are measured in one run, in time of this thread on a processor.

use crate::declare::{MAX_BYTES, Severity, from_bson, from_yaml, to_bson};
use document::{Doc, DocWriter, Value};
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

const LARGE: usize = MAX_BYTES / 8;
const SMALL: usize = LARGE / 16;
/// Sixteen, and as much again for caches and for other work on the machine; the square would be 256.
const AT_MOST: u32 = 64;

/// `head`, then lines until there are `size` bytes.
fn text(size: usize, head: &str, line: impl Fn(usize) -> String) -> String {
    let mut text = head.to_owned();
    for number in 0.. {
        let line = line(number);
        if text.len() + line.len() > size {
            break;
        }
        text.push_str(&line);
    }
    text
}

/// How long this thread has run.
fn now() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap()
}

/// The shortest of some runs.
fn time(text: &str) -> Duration {
    let run = || {
        let began = now();
        let checked = from_yaml("size.yaml", text);
        assert!(checked.findings.len() <= 2_001, "{} findings", checked.findings.len());
        now() - began
    };
    (0..3).map(|_| run()).min().unwrap()
}

fn check(what: &str, make: impl Fn(usize) -> String) {
    let (small, large) = (make(SMALL), make(LARGE));
    assert!(large.len() > small.len() * 8, "{what}: {} and {} bytes", small.len(), large.len());
    let (short, long) = (time(&small), time(&large));
    assert!(long < short * AT_MOST, "{what}: {short:?} for {} bytes, {long:?} for {}", small.len(), large.len());
}

const HEAD: &str = "database: shop\ncollections:\n";

#[test]
fn the_time_of_a_check_grows_with_the_text() {
    check("keys", |size| text(size, "database: shop\n", |n| format!("k{n}: 1\n")));
    check("collections", |size| text(size, HEAD, |n| format!("  c{n}: 1\n")));
    check("patterns", |size| text(size, &format!("{HEAD}  c:\n"), |n| format!("    p{n}: 1\n")));
    check("fields", |size| text(size, &format!("{HEAD}  c:\n    computed:\n"), |n| format!("      f{n}: {{}}\n")));
    check("rules", |size| {
        text(size, &format!("{HEAD}  c:\n    computed:\n"), |n| format!("      f{n}: {{ count: r, by: c{n} }}\n"))
    });
    check("the same key", |size| {
        text(size, "database: shop\n", |n| if n.is_multiple_of(2) { format!("k{n}: 1\n") } else { "last: 1\n".into() })
    });
    check("copied fields", |size| {
        let head = format!("{HEAD}  c:\n    extended_reference:\n      o: {{ from: o, by: x, fields: [a");
        text(size, &head, |n| format!(", f{n}")) + "] }\n"
    });
    check("sums", |size| {
        let head = format!(
            "{HEAD}  c:\n    bucket:\n      time: t\n      by: [s]\n      every: day\n      slot: hour\n      sum: [a"
        );
        text(size, &head, |n| format!(", f{n}")) + "]\n"
    });
    check("warnings and types", |size| {
        text(size, "list:\n", |n| {
            if n.is_multiple_of(2) { "  - yes\n".into() } else { "  - { $date: 2026-01-31 }\n".into() }
        })
    });
    check("keys under a long one", |size| {
        text(size, &format!("? {}\n:\n", "x".repeat(size / 2)), |n| format!("  k{n}: 1\n"))
    });
    check("a filter", |size| {
        let head = format!("{HEAD}  c:\n    computed:\n      n: {{ count: r, by: x, where: {{ a: {{ $in: [0");
        text(size, &head, |n| format!(", {n}")) + "] } } }\n"
    });
    check("an expression", |size| {
        let head = format!("{HEAD}  c:\n    computed:\n      n: {{ expr: {{ $add: [0");
        text(size, &head, |n| format!(", $f{n}")) + "] } }\n"
    });
    check("flow nesting", |size| text(size, "list:\n", |_| format!("  - {}{}\n", "[".repeat(50), "]".repeat(50))));
}

#[test]
fn a_thousand_rules_are_not_compared_with_each_other() {
    // Nine hundred counts of one collection, and copies of very many other fields of it.
    let rules = |copies: usize| {
        let mut text = format!("{HEAD}  c:\n    computed:\n");
        (0..900).for_each(|n| text.push_str(&format!("      f{n}: {{ count: r, by: c{n} }}\n")));
        text.push_str("  o:\n    extended_reference:\n      c: { from: c, by: x, fields: [a");
        (0..copies).for_each(|n| text.push_str(&format!(", g{n}")));
        text + "] }\n"
    };
    let (few, many) = (time(&rules(100)), time(&rules(30_000)));
    let alone = time(&format!(
        "{HEAD}  o:\n    extended_reference:\n      c: {{ from: c, by: x, fields: [a{}] }}\n",
        (0..30_000).map(|n| format!(", g{n}")).collect::<String>()
    ));
    assert!(many < (few + alone) * 4, "{few:?} and {alone:?} apart, {many:?} together");
}

#[test]
fn a_larger_declaration_is_refused_before_it_is_read() {
    let large = text(MAX_BYTES + 1_000, "database: shop\n", |n| format!("k{n}: 1\n"));
    let checked = from_yaml("large.yaml", &large);
    assert!(checked.declaration.is_none());
    let [only] = checked.findings.as_slice() else { panic!("{:?}", checked.findings) };
    assert_eq!(only.severity, Severity::Error);
    assert!(only.message.contains("at most 1 MB"), "{}", only.message);
    assert!(to_bson(&large).is_none());
    let mut doc = DocWriter::new();
    doc.append("database", &Value::from("shop")).append("x", &Value::from("x".repeat(MAX_BYTES)));
    let doc: Doc<'static> = doc.finish();
    let checked = from_bson(&doc, None);
    assert!(checked.findings.iter().any(|finding| finding.message.contains("at most 1 MB")), "{:?}", checked.findings);
}
