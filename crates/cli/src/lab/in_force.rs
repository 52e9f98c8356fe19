//! The rules that the data has already: `now` is measured with them, and a candidate without one of them is told of it.

use lab::line::Rows;
use lab::source::Source;
use lab::store::Candidate;
use patterns::rule::Rule;
use std::sync::Arc;

/// Those that touch a collection of the candidates.
pub(super) struct InForce(Vec<Arc<Rule>>);

impl InForce {
    pub(super) async fn of(source: &Source, candidates: &[Candidate]) -> InForce {
        let mut rules = all(source).await;
        let declared = || candidates.iter().flat_map(|candidate| candidate.rules.iter());
        let touches = |rule: &Rule| {
            let namespaces = rule.namespaces();
            declared().any(|other| other.namespaces().iter().any(|namespace| namespaces.contains(namespace)))
        };
        rules.retain(|rule| touches(rule));
        InForce(rules)
    }

    pub(super) fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    /// The candidates, of which `now` has the rules that are in force.
    pub(super) fn completed(&self, candidates: &[Candidate]) -> Vec<Candidate> {
        let mut candidates = candidates.to_vec();
        for candidate in candidates.iter_mut().filter(|candidate| candidate.rules.is_empty()) {
            candidate.rules.clone_from(&self.0);
        }
        candidates
    }

    /// What candidates would take away.
    pub(super) fn missing_in(&self, candidates: &[Candidate]) -> Vec<String> {
        let mut notes = Vec::new();
        for candidate in candidates.iter().filter(|candidate| !candidate.rules.is_empty()) {
            let is_missing = |rule: &&Arc<Rule>| candidate.rules.iter().all(|other| other.name != rule.name);
            let names: Vec<&str> = self.0.iter().filter(is_missing).map(|rule| &*rule.name).collect();
            if !names.is_empty() {
                let (name, names) = (&candidate.name, names.join(", "));
                notes.push(format!(
                    "{name} has not {names}, which is in force: it is measured as after `apply --remove`"
                ));
            }
        }
        notes
    }
}

async fn all(source: &Source) -> Vec<Arc<Rule>> {
    let mut rules = Vec::new();
    // Whoever may not read the catalog is answered as if there were none.
    let Ok(mut rows) = Rows::find(&source.line, &source.db, "pleach.catalog", bson::doc! {}).await else {
        return rules;
    };
    while let Ok(Some(row)) = rows.next().await {
        if let Some(document::Value::Document(declaration)) = row.get("declaration") {
            rules.extend(patterns::declare::from_catalog(&declaration).ok().map(Arc::new));
        }
    }
    rules
}
