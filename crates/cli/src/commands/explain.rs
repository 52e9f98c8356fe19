//! `pleach explain`: what a command would do, rules included. Runs nothing.

use crate::args::verbs::Explain;
use crate::ask::{self, Question, extended_json};
use crate::declaration;
use crate::report::{self, Failure, Verdict};
use crate::target::Purpose;
use document::{Doc, Value};

pub(crate) fn run(explain: &Explain) -> Result<Verdict, Failure> {
    let command = parse(&explain.command)?;
    let db = declaration::database(explain.db.as_deref(), explain.declare.as_deref())?;
    ask::run(&explain.target, Purpose::Look, explain.json, async |target| {
        let question = Question::new("explain").on(db.as_deref()).with("command", Value::Document(command.borrow()));
        let (db, question) = question.finish();
        let answer = target.ask(&db, question).await?;
        report::json(&extended_json(answer));
        Ok(Verdict::Fine)
    })
}

fn parse(text: &str) -> Result<Doc<'static>, Failure> {
    let wrong = |error: String| {
        Failure::new(format!("the command is no Extended JSON document: {error}"))
            .hint("such as '{ \"insert\": \"reviews\", \"documents\": [{ \"productId\": 1 }] }'")
    };
    let value: serde_json::Value = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
    match bson::Bson::try_from(value) {
        Ok(bson::Bson::Document(command)) => Ok(Doc::from(command)),
        Ok(_) => Err(wrong("it is not a document".to_owned())),
        Err(error) => Err(wrong(error.to_string())),
    }
}
