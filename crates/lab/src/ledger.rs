//! The ledger: what was measured, what was changed, what came of it. One line of JSON for each run, oldest first.

use crate::outcome::Outcome;
use serde_json::{Value, json};
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Result, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

pub struct Ledger {
    path: PathBuf,
}

/// One prediction of a candidate, as the ledger has it.
#[derive(Clone, Debug)]
pub struct Prediction {
    pub candidate: String,
    pub at: String,
    /// The stored collections that were measured.
    pub collections: Vec<String>,
    pub figures: Vec<(String, f64)>,
    pub error: f64,
    /// Whether it is of the very rules that were asked for; the file of that name has changed since if not.
    pub is_same: bool,
}

impl Ledger {
    /// `.pleach/lab.jsonl` in a folder.
    pub fn of(folder: &Path) -> Ledger {
        Ledger { path: folder.join(".pleach").join("lab.jsonl") }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All entries, and how many lines are none: a crash may cut one, an editor may break one.
    pub fn entries(&self) -> Result<(Vec<Value>, usize)> {
        let bytes = match fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok((Vec::new(), 0)),
            Err(error) => return Err(error),
        };
        let (mut entries, mut broken) = (Vec::new(), 0);
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
            match serde_json::from_slice::<Value>(line) {
                Ok(entry) if entry.is_object() => entries.push(entry),
                _ => broken += 1,
            }
        }
        Ok((entries, broken))
    }

    fn add(&self, entry: &Value) -> Result<()> {
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut file = OpenOptions::new().create(true).read(true).append(true).open(&self.path)?;
        // A line that was cut must not swallow this one.
        let start = if ends_a_line(&mut file)? { "" } else { "\n" };
        // In one write: two runs at once do not mix their lines.
        file.write_all(format!("{start}{entry}\n").as_bytes())
    }

    /// What was measured.
    pub fn measured(&self, at: &str, outcome: &Outcome) -> Result<()> {
        let mut entry = json!({
            "at": at, "what": "measured", "database": outcome.database, "seed": outcome.seed,
            "sampled": outcome.sampled, "of": outcome.of, "memory": outcome.memory,
        });
        let predicted = outcome.rows.iter().map(|row| {
            let figures: serde_json::Map<String, Value> =
                row.figures().into_iter().map(|(name, value)| (name.to_owned(), json!(value))).collect();
            let stored: Vec<&str> = row.sizes.collections.iter().map(|stored| &*stored.name).collect();
            json!({ "candidate": row.name, "declaration": row.declaration, "collections": stored, "figures": figures, "error": row.error })
        });
        if let (Value::Object(entry), Value::Object(found)) = (&mut entry, outcome.json()) {
            entry.insert("predicted".to_owned(), predicted.collect());
            entry.extend(found);
        }
        self.add(&entry)
    }

    /// What came of it.
    pub fn verified(&self, at: &str, database: &str, verify: &Value) -> Result<()> {
        self.add(&json!({ "at": at, "what": "verified", "database": database, "verify": verify }))
    }

    /// The newest prediction of these rules in that database; of a candidate of that name if there is none of the same rules.
    pub fn prediction(&self, database: &str, candidate: &str, declaration: &Value) -> Result<Option<Prediction>> {
        let (entries, _) = self.entries()?;
        let newest = |fits: &dyn Fn(&Value) -> bool| {
            let of_database = entries.iter().rev().filter(|entry| entry["database"] == database);
            let mut rows = of_database
                .flat_map(|entry| entry["predicted"].as_array().into_iter().flatten().map(move |row| (entry, row)));
            rows.find(|(_, row)| fits(row))
        };
        let same = newest(&|row| row["declaration"] == *declaration);
        let found = same.or_else(|| newest(&|row| row["candidate"] == candidate));
        let prediction = |(entry, found): (&Value, &Value)| {
            let figures = found["figures"].as_object()?.iter();
            let collections = found["collections"].as_array()?.iter();
            Some(Prediction {
                candidate: candidate.to_owned(),
                at: entry["at"].as_str().unwrap_or_default().to_owned(),
                collections: collections.filter_map(|name| name.as_str().map(str::to_owned)).collect(),
                figures: figures.filter_map(|(name, value)| Some((name.clone(), value.as_f64()?))).collect(),
                error: found["error"].as_f64().unwrap_or_default(),
                is_same: found["declaration"] == *declaration,
            })
        };
        Ok(found.and_then(prediction))
    }
}

fn ends_a_line(file: &mut File) -> Result<bool> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(true);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

/// Prediction beside reality.
#[derive(Clone, Debug)]
pub struct Compared {
    pub candidate: String,
    pub figure: String,
    pub predicted: f64,
    pub real: f64,
}

impl Compared {
    /// By which share of the truth the prediction is off.
    pub fn off(&self) -> f64 {
        match self.real {
            0.0 if self.predicted == 0.0 => 0.0,
            0.0 => 1.0,
            real => (self.predicted - real) / real,
        }
    }

    pub fn json(&self) -> Value {
        let round = |number| crate::outcome::rounded(number, 2);
        json!({
            "candidate": self.candidate, "figure": self.figure,
            "predicted": round(self.predicted), "real": round(self.real), "off": crate::outcome::rounded(self.off(), 4),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger(name: &str) -> (Ledger, PathBuf) {
        let folder = std::env::temp_dir().join(format!("lab-ledger-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        (Ledger::of(&folder), folder)
    }

    fn entry(candidate: &str, rules: i32, data: f64) -> Value {
        let predicted = json!([{ "candidate": candidate, "declaration": { "a": rules }, "collections": ["a"], "figures": { "bytes.data": data }, "error": 0.1 }]);
        json!({ "at": "t", "database": "shop", "predicted": predicted })
    }

    #[test]
    fn broken_lines_lose_no_others() {
        let (ledger, folder) = ledger("broken");
        assert_eq!(ledger.entries().unwrap().0.len(), 0);
        ledger.add(&entry("c", 1, 1.0)).unwrap();
        for broken in [&b"{ \"cut"[..], &[0xFF, 0xFE, b'\n'], b"[]\n", b"\n"] {
            OpenOptions::new().append(true).open(ledger.path()).unwrap().write_all(broken).unwrap();
            ledger.add(&entry("c", 1, 2.0)).unwrap();
        }
        let (entries, broken) = ledger.entries().unwrap();
        assert_eq!((entries.len(), broken), (5, 3));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn runs_at_once_do_not_mix_their_lines() {
        let (ledger, folder) = ledger("runs");
        std::thread::scope(|scope| {
            for run in 0..4 {
                let ledger = &ledger;
                scope
                    .spawn(move || (0..50).for_each(|number| ledger.add(&entry("c", run, f64::from(number))).unwrap()));
            }
        });
        let (entries, broken) = ledger.entries().unwrap();
        assert_eq!((entries.len(), broken), (200, 0));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_prediction_is_found_by_its_rules_and_then_by_its_name() {
        let (ledger, folder) = ledger("found");
        for (candidate, rules, data) in [("a", 1, 1.0), ("b", 2, 2.0), ("b", 3, 3.0)] {
            ledger.add(&entry(candidate, rules, data)).unwrap();
        }
        let find = |name: &str, rules: i32| {
            let found = ledger.prediction("shop", name, &json!({ "a": rules })).unwrap();
            found.map(|found| (found.figures[0].1, found.is_same))
        };
        assert_eq!((find("b", 2), find("other", 2)), (Some((2.0, true)), Some((2.0, true))));
        assert_eq!((find("b", 9), find("c", 9)), (Some((3.0, false)), None));
        assert!(ledger.prediction("elsewhere", "a", &json!({ "a": 1 })).unwrap().is_none());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn off_is_a_share_of_the_truth() {
        let compared = |predicted, real| Compared { candidate: "c".into(), figure: "f".into(), predicted, real }.off();
        assert_eq!((compared(98.0, 100.0), compared(0.0, 0.0), compared(1.0, 0.0)), (-0.02, 0.0, 1.0));
    }
}
