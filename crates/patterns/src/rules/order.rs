//! The order of rules: by what each reads of the fields that others keep (SEMANTICS R29).

use crate::life::State;
use crate::link::Program;
use crate::rule::{Rule, Upkeep};
use document::Result;
use document::op::{Capture, Namespace};
use document::value::Path;
use std::sync::Arc;

/// Rules by number, level by level: each level reads only fields of those before it.
pub(super) fn levels(rules: &[(Arc<Rule>, State)]) -> Result<Vec<Vec<usize>>> {
    let mut reads = Vec::with_capacity(rules.len());
    for (rule, _) in rules {
        reads.push(all_reads(rule)?);
    }
    let depends = |reader: usize, kept: usize| {
        reader != kept
            && reads.get(reader).zip(rules.get(kept)).is_some_and(|(reads, (kept, _))| {
                reads.iter().any(|(ns, capture)| *ns == kept.host && overlaps(capture, kept))
            })
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
    Ok(levels)
}

/// Whether another rule reads the field of this one.
pub(super) fn is_read(rule: &Arc<Rule>, rules: &[(Arc<Rule>, State)]) -> Result<bool> {
    for (other, _) in rules {
        if Arc::ptr_eq(other, rule) {
            continue;
        }
        if all_reads(other)?.iter().any(|(ns, capture)| *ns == rule.host && overlaps(capture, rule)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What a rule reads of its own host, its own fields left out.
pub(super) fn host_reads(rule: &Rule, program: Option<&Program>) -> Vec<Path> {
    let owned = rule.owned();
    let reads = match (&rule.upkeep, program) {
        (Upkeep::Expression(expression), _) => expression.reads.clone(),
        (Upkeep::Link(_), Some(program)) => program.watched_host().to_vec(),
        (Upkeep::Link(link), None) => vec![link.local.path.clone()],
    };
    reads.into_iter().filter(|path| !owned.contains(path)).collect()
}

fn all_reads(rule: &Arc<Rule>) -> Result<Vec<(Namespace, Capture)>> {
    let program = Program::new(rule)?;
    let mut reads = vec![(rule.host.clone(), Capture::Paths(host_reads(rule, program.as_ref())))];
    if let (Upkeep::Link(link), Some(program)) = (&rule.upkeep, &program) {
        reads.push((link.source.clone(), program.watched_source().clone()));
    }
    Ok(reads)
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
