//! Applies what the advisor declares, and audits.

use crate::judge::Judged;
use bson::doc;
use pleach_advisor::Severity;
use std::collections::BTreeSet;
use testing::{Living, World};

/// Applies the declarations of the findings at `warn` and above, each together with those before it, and audits. Says what went wrong. Of
/// one collection the strongest is taken: which of several its owner wants is not for a program to say.
pub(crate) async fn apply_all(judged: Judged) -> Vec<String> {
    let Judged { world, report, .. } = judged;
    let World { layer, opened, db, .. } = world;
    let living = Living::of(World::of(layer, opened, &db));
    let (mut wrong, mut declared, mut known) = (Vec::new(), String::new(), BTreeSet::new());
    for finding in report.findings.iter().filter(|finding| finding.severity > Severity::Note) {
        let place = format!("{} at {}.{}", finding.symptom, finding.collection, finding.field);
        let Some(text) = &finding.declaration else {
            wrong.push(format!("{place}: nothing is declared"));
            continue;
        };
        if !known.insert(&finding.collection) {
            continue;
        }
        declared.push_str(text.split_once("collections:\n").map_or("", |(_, rules)| rules));
        let text = format!("database: {db}\ncollections:\n{declared}");
        let fields = doc! { "declaration": &text, "wait": false, "overwrite": true };
        if let Err(error) = living.ask("apply", fields).await {
            wrong.push(format!("{place}: {error:?}\n{text}"));
            break;
        }
        living.rest().await;
        let audit = living.ask("audit", doc! {}).await.unwrap();
        if audit.get_i64("drifted").ok() != Some(0) {
            wrong.push(format!("{place}: {audit}\n{text}"));
        }
    }
    wrong
}
