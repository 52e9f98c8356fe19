//! Applies what the advisor declares, and audits.

use crate::judge::Judged;
use bson::doc;
use pleach_advisor::Severity;
use testing::{Living, World};

/// Applies the declarations of the findings at `warn` and above, one after the other, and audits. Says what went wrong.
pub(crate) async fn apply_all(judged: Judged) -> Vec<String> {
    let Judged { world, report, .. } = judged;
    let World { layer, opened, db, .. } = world;
    let living = Living::of(World::of(layer, opened, &db));
    let mut wrong = Vec::new();
    for finding in report.findings.iter().filter(|finding| finding.severity > Severity::Note) {
        let place = format!("{} at {}.{}", finding.symptom, finding.collection, finding.field);
        let Some(text) = &finding.declaration else {
            wrong.push(format!("{place}: nothing is declared"));
            continue;
        };
        let fields = doc! { "declaration": text, "wait": true, "overwrite": true };
        if let Err(error) = living.ask("apply", fields).await {
            wrong.push(format!("{place}: {error:?}\n{text}"));
            continue;
        }
        living.rest().await;
        let audit = living.ask("audit", doc! {}).await.unwrap();
        if audit.get_i64("drifted").ok() != Some(0) {
            wrong.push(format!("{place}: {audit}\n{text}"));
        }
    }
    wrong
}
