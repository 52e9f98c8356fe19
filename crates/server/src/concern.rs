//! Read and write concern, as one node that is its own majority gives them.

use crate::params::Params;
use document::op::{Durability, ReadConcern};
use document::value::show;
use document::{Code, DocWriter, Error, Result, Value};

/// What `writeConcern` asks for.
#[derive(Debug, Default)]
pub(crate) struct WriteConcern {
    pub(crate) durability: Durability,
    /// What one node cannot satisfy: reported beside the result.
    pub(crate) error: Option<Error>,
}

/// The largest `w`.
const MAX_NODES: i64 = 50;

impl WriteConcern {
    pub(crate) fn parse(value: Option<&Value<'_>>) -> Result<WriteConcern> {
        let Some(value) = value else { return Ok(WriteConcern::default()) };
        let Value::Document(concern) = value else {
            return Err(Error::type_mismatch(format!(
                "\"writeConcern\" had the wrong type. Expected object, found {}",
                value.type_name()
            )));
        };
        let (mut w, mut journal, mut sync, mut timeout) = (None, None, false, 0);
        for param in Params::of("WriteConcernOptions", concern) {
            match param.name() {
                "w" => w = Some(param.value),
                "j" => journal = Some(param.loose_bool()?),
                "fsync" => sync = param.loose_bool()?,
                "wtimeout" => timeout = param.integer().unwrap_or_default(),
                "provenance" | "wElectionId" | "wOpTime" | "getLastError" => {}
                _ => return Err(param.unknown()),
            }
        }
        if journal == Some(true) && sync {
            return Err(Error::failed_to_parse("fsync and j options cannot be used together"));
        }
        let (nodes, error) = match &w {
            None => (None, None),
            Some(w) => nodes(w)?,
        };
        let relaxed = nodes.is_some_and(|nodes| nodes <= 1) && journal != Some(true) && !sync;
        let error = error.map(|error| {
            let mut info = DocWriter::new();
            info.start_document("writeConcern");
            match w.as_ref().unwrap_or(&Value::Missing) {
                Value::Null => info.append("w", &Value::from("")),
                w => info.append("w", w),
            };
            if let Some(journal) = journal {
                info.append("j", &Value::Bool(journal));
            }
            let timeout = i32::try_from(timeout).map_or(Value::Int64(timeout), Value::Int32);
            info.append("wtimeout", &timeout).append("provenance", &Value::from("clientSupplied"));
            error.with_info(info.finish())
        });
        Ok(WriteConcern { durability: if relaxed { Durability::Relaxed } else { Durability::Synced }, error })
    }
}

/// How many nodes `w` asks for; `None` for a majority. And what is wrong with it on one node.
fn nodes(w: &Value<'_>) -> Result<(Option<i64>, Option<Error>)> {
    if let Some(number) = w.as_number() {
        let nodes = number.to_i64_saturated();
        if !(0..=MAX_NODES).contains(&nodes) {
            return Err(Error::failed_to_parse(format!(
                "w has to be a non-negative number and not greater than {MAX_NODES}; found: {nodes}"
            )));
        }
        let unsatisfiable = || Error::new(Code::UnsatisfiableWriteConcern, "Not enough data-bearing nodes");
        return Ok((Some(nodes), (nodes > 1).then(unsatisfiable)));
    }
    let unknown_mode = |mode: &str| {
        Error::new(
            Code::UnknownReplWriteConcern,
            format!("No write concern mode named '{mode}' found in replica set configuration"),
        )
    };
    match w {
        Value::String(mode) if mode.as_str() == "majority" => Ok((None, None)),
        Value::String(mode) => Ok((None, Some(unknown_mode(mode.as_str())))),
        Value::Null => Ok((None, Some(unknown_mode("")))),
        Value::Document(tags) => {
            let tag = tags.iter().next().map(|(name, _)| name.to_string()).unwrap_or_default();
            let error = Error::new(Code::NoSuchKey, format!("No replica set tag key {tag} in config"));
            Ok((None, Some(error)))
        }
        other => Err(Error::failed_to_parse(format!(
            "w has to be a number, string, or object; found: {}",
            other.type_name()
        ))),
    }
}

/// What `readConcern` asks for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reading {
    pub(crate) level: Option<ReadConcern>,
    pub(crate) given: bool,
}

impl Reading {
    /// `now` is the newest commit; `None` if another server knows it.
    pub(crate) fn parse(value: Option<&Value<'_>>, now: Option<u64>) -> Result<Reading> {
        let Some(value) = value else { return Ok(Reading::default()) };
        let Value::Document(concern) = value else {
            return Err(Error::failed_to_parse("readConcern field should be an object"));
        };
        let mut reading = Reading { level: None, given: !concern.is_empty() };
        for (name, value) in concern.iter() {
            match name.as_str() {
                "level" => reading.level = Some(level(&value)?),
                "afterClusterTime" => check_time("afterClusterTime", &value, now)?,
                "atClusterTime" if now.is_none() => {}
                "atClusterTime" => return Err(Error::not_implemented("reading at a given cluster time")),
                "afterOpTime" | "provenance" | "allowTransactionTableSnapshot" | "waitLastStableRecoveryTimestamp" => {}
                other => {
                    return Err(Error::new(
                        Code::InvalidOptions,
                        format!("Unrecognized option in readConcern: {other}"),
                    ));
                }
            }
        }
        Ok(reading)
    }
}

fn level(value: &Value<'_>) -> Result<ReadConcern> {
    match value.as_str() {
        Some("local") => Ok(ReadConcern::Local),
        Some("available") => Ok(ReadConcern::Available),
        Some("majority") => Ok(ReadConcern::Majority),
        Some("linearizable") => Ok(ReadConcern::Linearizable),
        Some("snapshot") => Ok(ReadConcern::Snapshot),
        Some(_) => Err(Error::failed_to_parse(
            "readConcern.level must be either 'local', 'majority', 'linearizable', 'available', or 'snapshot'",
        )),
        None => Err(Error::type_mismatch(format!(
            "\"level\" had the wrong type. Expected string, found {}",
            value.type_name()
        ))),
    }
}

fn check_time(name: &str, value: &Value<'_>, now: Option<u64>) -> Result<()> {
    match (value, now) {
        (Value::Timestamp(0), _) => Err(Error::new(Code::InvalidOptions, format!("{name} cannot be a null timestamp"))),
        (Value::Timestamp(_), None) => Ok(()),
        (Value::Timestamp(time), Some(now)) if *time <= now => Ok(()),
        (Value::Timestamp(_), Some(now)) => Err(Error::new(
            Code::InvalidOptions,
            format!(
                "readConcern {name} value must not be greater than the current clusterTime. Requested clusterTime: {{ ts: {} }}; current clusterTime: {{ ts: {} }}",
                show::element(value),
                show::element(&Value::Timestamp(now))
            ),
        )),
        (other, _) => Err(Error::type_mismatch(format!(
            "\"{name}\" had the wrong type. Expected timestamp, found {}",
            other.type_name()
        ))),
    }
}

/// The time a command may take, from `maxTimeMS`; `None` if it is not limited.
pub(crate) fn time_limit(value: Option<&Value<'_>>) -> Result<Option<std::time::Duration>> {
    let Some(value) = value else { return Ok(None) };
    let Some(number) = value.as_number() else {
        return Err(Error::bad_value("maxTimeMS must be a number"));
    };
    let Some(milliseconds) = number.as_i64_exact() else {
        return Err(Error::bad_value("maxTimeMS has non-integral value"));
    };
    match u64::try_from(milliseconds) {
        Ok(0) => Ok(None),
        Ok(limit) if limit <= u64::from(i32::MAX.unsigned_abs()) => Ok(Some(std::time::Duration::from_millis(limit))),
        _ => Err(Error::bad_value(format!("{milliseconds} value for maxTimeMS is out of range"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::{Bson, doc};

    fn parse(concern: Bson) -> Result<WriteConcern> {
        WriteConcern::parse(Some(&Value::from(concern)))
    }

    #[test]
    fn only_an_explicit_w_1_is_relaxed() {
        use Durability::{Relaxed, Synced};
        assert_eq!(WriteConcern::parse(None).unwrap().durability, Synced);
        let rows = [
            (doc! {}, Synced),
            (doc! {"w": 1}, Relaxed),
            (doc! {"w": 0}, Relaxed),
            (doc! {"w": 1, "j": true}, Synced),
            (doc! {"w": 1, "j": false}, Relaxed),
            (doc! {"w": "majority"}, Synced),
            (doc! {"w": "majority", "j": false}, Synced),
            (doc! {"w": 1.5}, Relaxed),
        ];
        for (concern, durability) in rows {
            let parsed = parse(concern.clone().into()).unwrap();
            assert_eq!(parsed.durability, durability, "{concern}");
            assert!(parsed.error.is_none(), "{concern}");
        }
    }

    #[test]
    fn what_one_node_cannot_give_is_reported_beside_the_result() {
        let rows = [
            (doc! {"w": 2}, 100, "Not enough data-bearing nodes"),
            (doc! {"w": "foo"}, 79, "No write concern mode named 'foo' found in replica set configuration"),
            (doc! {"w": {"a": 1}}, 4, "No replica set tag key a in config"),
        ];
        for (concern, code, message) in rows {
            let error = parse(concern.into()).unwrap().error.unwrap();
            assert_eq!((error.code().number(), error.message()), (code, message));
        }
    }

    #[test]
    fn nonsense_is_refused() {
        let rows = [
            (Bson::Int32(3), 14, "\"writeConcern\" had the wrong type. Expected object, found int"),
            (doc! {"w": 60}.into(), 9, "w has to be a non-negative number and not greater than 50; found: 60"),
            (doc! {"x": 1}.into(), 40415, "BSON field 'WriteConcernOptions.x' is an unknown field."),
            (doc! {"j": true, "fsync": true}.into(), 9, "fsync and j options cannot be used together"),
        ];
        for (concern, code, message) in rows {
            let error = parse(concern).unwrap_err();
            assert_eq!((error.code().number(), error.message()), (code, message));
        }
    }

    #[test]
    fn max_time_is_a_whole_number_in_range() {
        assert_eq!(time_limit(Some(&Value::Int32(0))).unwrap(), None);
        assert_eq!(time_limit(Some(&Value::Double(5.0))).unwrap(), Some(std::time::Duration::from_millis(5)));
        for (value, message) in [
            (Value::Int32(-1), "-1 value for maxTimeMS is out of range"),
            (Value::Int64(1 << 40), "1099511627776 value for maxTimeMS is out of range"),
            (Value::Double(1.5), "maxTimeMS has non-integral value"),
            (Value::from("a"), "maxTimeMS must be a number"),
        ] {
            assert_eq!(time_limit(Some(&value)).unwrap_err().message(), message);
        }
    }
}
