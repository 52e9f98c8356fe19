//! Which reads and writes are measured, and where they come from.

use super::run::Asked;
use lab::mix::Mix;
use lab::plan::Plan;
use lab::store::Candidate;
use lab::traffic::Traffic;

/// The mix that was given, that of the traffic, or one read per pattern and one write per source; and where it comes from.
pub(super) fn mix(asked: &Asked<'_>, traffic: &Traffic, candidates: &[Candidate], plan: &Plan) -> (Mix, Vec<String>) {
    if let Some(mix) = &asked.mix {
        return (mix.clone(), Vec::new());
    }
    let rules = || candidates.iter().flat_map(|candidate| candidate.rules.iter().map(|rule| &**rule));
    let collections: Vec<&str> = plan.members.iter().map(|member| &*member.name).collect();
    match lab::mix::of_traffic(&asked.database, traffic, rules(), &collections) {
        Some((mix, left)) => {
            let mut notes = vec![format!("the mix is that of the traffic in {}", traffic.source)];
            if !left.is_empty() {
                notes.push(format!("not in the mix, since it cannot be repeated or is seldom: {}", left.join("; ")));
            }
            (mix, notes)
        }
        None => {
            let note =
                "the mix is one read per pattern and one write per source: no traffic is known (--mix names another)";
            (lab::mix::of_rules(rules()), vec![note.to_owned()])
        }
    }
}
