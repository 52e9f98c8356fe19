//! The proposal as a declaration, with the evidence for each step as a comment.

use super::{About, Proposal, ProposedStep};
use crate::languages::yaml::{flow, word};
use document::Value;

/// Comments are folded at this column.
const WIDTH: usize = 80;

pub(super) fn declaration(proposals: &[Proposal], about: &[About]) -> String {
    let all: Vec<(&Proposal, &About)> =
        proposals.iter().zip(about).filter(|(proposal, _)| !proposal.steps.is_empty()).collect();
    let Some((_, first)) = all.first() else { return String::new() };
    let mut text = format!("database: {}\ncollections:\n", word(&first.database));
    for (proposal, about) in all {
        text.push_str(&format!("  {}:\n    versions:\n", word(&proposal.collection)));
        text.push_str(&format!("      field: {}\n      steps:\n", word(&about.number)));
        about.before.iter().for_each(|steps| text.push_str(&format!("        - {}\n", flow(steps))));
        text.push_str(&format!("        - # {} to {}\n", about.before.len() + 1, about.before.len() + 2));
        proposal.steps.iter().for_each(|step| text.push_str(&of_step(step)));
    }
    text
}

fn of_step(step: &ProposedStep) -> String {
    let word = if step.is_sure { "sure" } else { "guess" };
    let mut text = comment(&format!("{word}: {}", step.because));
    for loss in &step.losses {
        text.push_str(&comment(&format!("loses something: {loss}")));
    }
    text.push_str(&format!("          - {}\n", flow(&Value::Document(step.declared.borrow()))));
    text
}

fn comment(text: &str) -> String {
    const MARGIN: &str = "          # ";
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let is_full =
            lines.last().is_some_and(|line| !line.is_empty() && MARGIN.len() + line.len() + word.len() >= WIDTH);
        if is_full {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.iter().map(|line| format!("{MARGIN}{line}\n")).collect()
}
