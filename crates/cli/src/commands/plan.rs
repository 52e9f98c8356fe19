//! `pleach plan`: what `apply` would do, as plain MongoDB commands.

use crate::args::verbs::{Language, Plan};
use crate::ask::{self, Question, extended_json, grouped, list, number, text};
use crate::declaration::File;
use crate::report::{self, Failure, Verdict};
use crate::target::Purpose;
use patterns::print;
use patterns::rule::Rule;
use std::sync::Arc;

pub(crate) fn run(plan: &Plan) -> Result<Verdict, Failure> {
    let file = File::read(&plan.declare)?;
    if let Some(language) = plan.language {
        return by_hand(&file, language);
    }
    ask::run(&plan.target, Purpose::Look, plan.json, async |target| {
        let (db, question) = Question::new("plan").declared(Some(&file)).finish();
        let answer = target.ask(&db, question).await?;
        let steps = list(&answer, "steps").len();
        match plan.json {
            true => report::json(&extended_json(answer)),
            false => report::text(&told(&answer)),
        }
        Ok(if steps == 0 { Verdict::Fine } else { Verdict::Findings })
    })
}

fn by_hand(file: &File, language: Language) -> Result<Verdict, Failure> {
    let language = match language {
        Language::Mongosh => print::Language::Mongosh,
        Language::Node => print::Language::Node,
        Language::Python => print::Language::Python,
    };
    let rules: Vec<Arc<Rule>> = file.declaration.rules.iter().cloned().map(Arc::new).collect();
    let code = print::code(&rules, language).map_err(|error| Failure::new(error.message()))?;
    report::text(&code);
    Ok(Verdict::Fine)
}

fn told(answer: &bson::Document) -> String {
    let steps = list(answer, "steps");
    if steps.is_empty() {
        return "nothing to do: the rules are what the declaration says\n".to_owned();
    }
    let mut out = String::new();
    for step in &steps {
        let what = match text(step, "kind") {
            "index" => "create an index that it needs",
            "seed" => "new: make the field right in every document",
            "rebuild" => "changed: make the field anew in every document",
            "upkeep" => "changed: only how it is kept",
            "rename" => "make room for the view: rename the collection",
            "create" => "create the stored collection",
            "view" => "show the stored documents under the collection's own name",
            "move" => "bring every document into its new form, while clients go on",
            "drop" => "drop what is empty then",
            "remove" => "gone from the declaration: needs --remove",
            other => other,
        };
        out.push_str(&format!("{}  {what}\n", text(step, "rule")));
        let command = step.get("command").cloned().unwrap_or(bson::Bson::Null);
        if command.as_document().is_some_and(|command| !command.is_empty()) {
            let shown = format!("{:#}", command.into_relaxed_extjson());
            out.push_str(&format!("  on {}:\n", text(step, "namespace")));
            shown.lines().for_each(|line| out.push_str(&format!("    {line}\n")));
        }
        out.push('\n');
    }
    if let Ok(cost) = answer.get_document("cost") {
        let (read, written) = (grouped(number(cost, "read")), grouped(number(cost, "written")));
        out.push_str(&format!("about {read} documents are read, at most {written} written\n"));
    }
    out
}
