//! First stages whose documents come from the server itself: `$collStats`, `$indexStats`, `$currentOp`, and all of `system.profile`. They are run here and put in front
//! of the other stages as `$documents`.

use crate::batch::AGGREGATING;
use crate::commands::{current_op, timeseries};
use crate::dispatch::Call;
use crate::params::{Param, Params};
use crate::profiler::collection;
use crate::statements::single;
use crate::workload::Kind;
use crate::{identity, index_stats, namespace};
use document::op::{AdminOp, Namespace};
use document::{Array, ArrayWriter, Code, Doc, DocWriter, Error, Result, Value};

/// The pipeline with such a stage replaced; `None` if it has none.
pub(crate) async fn replaced(call: &mut Call<'_>) -> Result<Option<Array<'static>>> {
    let request = call.request;
    let Some(Value::Array(stages)) = request.params("").find(|param| param.name() == "pipeline").map(|it| it.value)
    else {
        return Ok(None);
    };
    if let Some(entries) = collection::entries(call) {
        return Ok(Some(behind(entries, stages.iter())));
    }
    let Some(Value::Document(stage)) = stages.get(0) else { return Ok(None) };
    let Some((name, spec)) = stage.iter().next() else { return Ok(None) };
    let has_collection = matches!(request.target, Value::String(_));
    let documents = match name.as_str() {
        "$collStats" if has_collection => {
            check_outside(call, "$collStats")?;
            vec![collection_figures(call, &spec).await?]
        }
        "$currentOp" if !has_collection && request.db.as_str() == "admin" => {
            check_outside(call, "$currentOp")?;
            current_op::list(call)
        }
        "$indexStats" if has_collection => {
            check_outside(call, "$indexStats")?;
            index_stats::documents(call, &spec).await?
        }
        _ => return Ok(None),
    };
    Ok(Some(behind(documents, stages.iter().skip(1))))
}

/// The stages, over these documents.
fn behind<'a>(documents: Vec<Doc<'static>>, stages: impl Iterator<Item = Value<'a>>) -> Array<'static> {
    let mut pipeline = ArrayWriter::new();
    let documents: Array<'static> = documents.into_iter().map(Value::Document).collect();
    let literal = single("$literal", &Value::Array(documents));
    pipeline.push(&Value::Document(single("$documents", &Value::Document(literal))));
    for stage in stages {
        pipeline.push(&stage);
    }
    pipeline.finish()
}

fn check_outside(call: &Call<'_>, stage: &str) -> Result<()> {
    if call.transaction().is_none() {
        return Ok(());
    }
    Err(Error::new(
        Code::OperationNotSupportedInTransaction,
        format!("Stage not supported inside of a multi-document transaction: {stage}"),
    ))
}

async fn collection_figures(call: &mut Call<'_>, spec: &Value<'_>) -> Result<Doc<'static>> {
    let Value::Document(spec) = spec else {
        return Err(Error::new(
            Code::Location(5_447_000),
            format!("$collStats must take a nested object but found: {}", document::value::show::element(spec)),
        ));
    };
    let ns = namespace::to_read(call.db(), &call.request.target)?;
    let (mut storage, mut count, mut latency) = (None, false, None);
    for param in Params::of("$collStats", spec) {
        match param.name() {
            "storageStats" => storage = Some(scale(param)?),
            "count" => count = true,
            "latencyStats" => latency = Some(with_histograms(param)?),
            "queryExecStats" => {
                return Err(Error::not_implemented(format!("$collStats with '{}'", param.name())));
            }
            _ => return Err(param.unknown()),
        }
    }
    let mut figures = DocWriter::new();
    figures.append("ns", &Value::from(ns.to_string())).append("host", &Value::from(call.server.host()));
    figures.append("localTime", &Value::DateTime(identity::milliseconds()));
    if latency.is_some() {
        latency_figures(call, &ns, &mut figures);
    }
    if storage.is_none() && !count {
        return Ok(figures.finish());
    }
    let op = AdminOp::CollStats { ns: ns.clone(), scale: storage.unwrap_or(1) };
    let answers = call.server.backend.admin(&mut call.session, &call.context, op).await?;
    if count {
        timeseries::refuse_figures(&ns, &answers).map_err(|error| error.context(AGGREGATING))?;
    }
    let stats = answers.into_iter().next().unwrap_or_else(Doc::empty);
    let exists = stats.contains("timeseries")
        || stats.get("nindexes").and_then(|number| number.as_i64_exact()).is_some_and(|number| number > 0);
    if !exists {
        let what = if storage.is_some() { "storageStats" } else { "count" };
        return Err(Error::new(
            Code::NamespaceNotFound,
            format!(
                "{AGGREGATING}Unable to retrieve {what} in $collStats stage :: caused by :: Collection [{ns}] not found."
            ),
        ));
    }
    if storage.is_some() {
        figures.start_document("storageStats");
        for (name, value) in stats.iter().filter(|(name, _)| name.as_str() != "ns") {
            figures.append(name.as_str(), &value);
        }
        figures.end();
    }
    if count {
        figures.append("count", &stats.get("count").unwrap_or(Value::Int32(0)));
    }
    Ok(figures.finish())
}

/// Time in microseconds and number of reads, writes and other commands, as the server counts them.
fn latency_figures(call: &Call<'_>, ns: &Namespace, figures: &mut DocWriter) {
    let activity = call.server.workload.namespaces.find(&ns.to_string());
    figures.start_document("latencyStats");
    let kinds: [(&str, &[Kind]); 4] = [
        ("reads", &[Kind::Query, Kind::GetMore, Kind::ReadCommand]),
        ("writes", &[Kind::Insert, Kind::Update, Kind::Remove, Kind::WriteCommand]),
        ("commands", &[Kind::Command]),
        ("transactions", &[]),
    ];
    for (name, kinds) in kinds {
        let (latency, operations) = activity.as_ref().map_or((0, 0), |activity| activity.of(kinds));
        figures.start_document(name);
        figures.append("latency", &Value::Int64(latency)).append("ops", &Value::Int64(operations)).end();
    }
    figures.end();
}

/// The options of `latencyStats`. Only sums are kept.
fn with_histograms(param: Param<'_>) -> Result<()> {
    let options = param.document()?;
    for option in Params::of("$collStats.latencyStats", &options.borrow()) {
        match option.name() {
            "histograms" if option.bool()? => {
                return Err(Error::not_implemented("$collStats with 'latencyStats.histograms'"));
            }
            "histograms" => {}
            _ => return Err(option.unknown()),
        }
    }
    Ok(())
}

fn scale(param: Param<'_>) -> Result<i64> {
    let mut scale = 1;
    let options = param.document()?;
    for option in Params::of("$collStats.storageStats", &options.borrow()) {
        match option.name() {
            "scale" => scale = option.positive()?,
            "verbose" | "waitForLock" | "numericOnly" => {}
            _ => return Err(option.unknown()),
        }
    }
    Ok(scale)
}
