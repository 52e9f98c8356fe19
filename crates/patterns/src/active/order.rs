//! The order of rules: by what each reads of the fields that others keep (SEMANTICS R29).

use crate::active::{ActiveRule, RuleInState};
use crate::fields::Program;
use crate::rule::{Rule, Upkeep};
use document::op::{Capture, Namespace};
use document::value::Path;

/// What each of some rules reads.
pub(super) struct Reads(Vec<Vec<(Namespace, Capture)>>);

impl Reads {
    pub(super) fn of(rules: &[RuleInState], programs: &[Option<Program>]) -> Reads {
        Reads(rules.iter().zip(programs).map(|(placed, program)| reads(&placed.rule, program.as_ref())).collect())
    }

    /// Rules by number, level by level: each level reads only fields of those before it.
    pub(super) fn levels(&self, rules: &[RuleInState]) -> Vec<Vec<usize>> {
        let depends = |reader: usize, kept: usize| {
            reader != kept && rules.get(kept).is_some_and(|placed| self.reads(reader, &placed.rule))
        };
        let mut left: Vec<usize> = (0..rules.len()).collect();
        let mut levels = Vec::new();
        while !left.is_empty() {
            let (ready, waiting): (Vec<usize>, Vec<usize>) =
                left.iter().partition(|reader| !left.iter().any(|kept| depends(**reader, *kept)));
            // A cycle between fields is refused when a declaration is checked: what is left of one runs in its order.
            let (ready, waiting) = if ready.is_empty() { (waiting, Vec::new()) } else { (ready, waiting) };
            levels.push(ready);
            left = waiting;
        }
        levels
    }

    /// Whether another rule than the one with this number reads its field.
    pub(super) fn is_read(&self, number: usize, rule: &Rule) -> bool {
        (0..self.0.len()).any(|other| other != number && self.reads(other, rule))
    }

    fn reads(&self, reader: usize, kept: &Rule) -> bool {
        is_read(self.0.get(reader).map(Vec::as_slice).unwrap_or_default(), kept)
    }
}

/// Whether a rule reads what another one keeps.
pub(super) fn is_reader(reader: &ActiveRule, kept: &Rule) -> bool {
    is_read(&reads(&reader.rule, reader.program.as_ref()), kept)
}

fn is_read(reads: &[(Namespace, Capture)], kept: &Rule) -> bool {
    reads.iter().any(|(ns, capture)| *ns == kept.host && overlaps(capture, kept))
}

/// What a rule reads, of its host and of its source.
fn reads(rule: &Rule, program: Option<&Program>) -> Vec<(Namespace, Capture)> {
    let mut reads = vec![(rule.host.clone(), Capture::Paths(host_reads(rule, program)))];
    if let (Upkeep::Link(link), Some(program)) = (&rule.upkeep, program) {
        reads.push((link.source.clone(), program.watched_source().clone()));
    }
    reads
}

/// What a rule reads of its own host, its own fields left out.
pub(super) fn host_reads(rule: &Rule, program: Option<&Program>) -> Vec<Path> {
    let owned = rule.owned();
    let reads = match (&rule.upkeep, program) {
        (Upkeep::Expression(expression), _) => expression.reads.clone(),
        (Upkeep::Link(_), Some(program)) => program.watched_host().to_vec(),
        (Upkeep::Link(link), None) => vec![link.local.path.clone()],
        (Upkeep::Bucket(_), _) => Vec::new(),
    };
    reads.into_iter().filter(|path| !owned.contains(path)).collect()
}

fn overlaps(capture: &Capture, kept: &Rule) -> bool {
    match capture {
        Capture::Nothing => false,
        Capture::Everything => true,
        Capture::Paths(paths) => {
            paths.iter().any(|path| path.is_prefix_of(&kept.field) || kept.field.is_prefix_of(path))
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::active::Rules;
    use crate::life::State;
    use std::sync::Arc;

    /// The names of the kept rules, level by level.
    fn levels(collections: &str) -> Vec<Vec<String>> {
        let text = format!("database: shop\ncollections:\n{collections}");
        let declared = crate::declare::from_yaml("pleach.yaml", &text).into_result().unwrap();
        let rules = declared.rules.into_iter().map(|rule| (Arc::new(rule), State::On).into()).collect();
        let rules = Rules::new(rules, None).unwrap();
        let names =
            |level: &Vec<Arc<crate::active::ActiveRule>>| level.iter().map(|kept| kept.rule.name.to_string()).collect();
        rules.levels().iter().map(names).collect()
    }

    #[test]
    fn a_rule_stands_behind_those_whose_fields_it_reads() {
        let collections = "
  orders:
    extended_reference:
      customer: { from: customers, by: customerId, fields: [region] }
    computed:
      doubled: { expr: { $multiply: [$total, 2] } }
      total: { sum: amount, from: lines, by: orderId }
  customers:
    extended_reference:
      region: { from: regions, by: regionId, fields: [name] }
";
        let expected = [vec!["customers.region", "orders.total"], vec!["orders.customer", "orders.doubled"]];
        let mut found = levels(collections);
        found.iter_mut().for_each(|level| level.sort());
        assert_eq!(found, expected);
    }
}
