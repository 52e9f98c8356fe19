//! The ledger: what was measured, what was changed, what came of it. One line of JSON for each run, oldest first.

use crate::outcome::Outcome;
use serde_json::{Value, json};
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Result, Write};
use std::path::{Path, PathBuf};

pub struct Ledger {
    path: PathBuf,
}

/// One prediction of a candidate, as it was kept.
#[derive(Clone, Debug)]
pub struct Prediction {
    pub candidate: String,
    pub at: String,
    /// The stored collections that were measured.
    pub collections: Vec<String>,
    pub figures: Vec<(String, f64)>,
    pub error: f64,
}

impl Ledger {
    /// `.pleach/lab.jsonl` in a folder.
    pub fn of(folder: &Path) -> Ledger {
        Ledger { path: folder.join(".pleach").join("lab.jsonl") }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All entries; a line that a crash has cut is left out.
    pub fn entries(&self) -> Result<Vec<Value>> {
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut entries = Vec::new();
        for line in BufReader::new(file).lines() {
            entries.extend(serde_json::from_str::<Value>(&line?).ok());
        }
        Ok(entries)
    }

    fn add(&self, entry: &Value) -> Result<()> {
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut file = OpenOptions::new().create(true).append(true).open(&self.path)?;
        // In one write: two runs at once do not mix their lines.
        file.write_all(format!("{entry}\n").as_bytes())
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
            json!({ "candidate": row.name, "collections": stored, "figures": figures, "error": row.error })
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

    /// The newest prediction of a candidate in that database.
    pub fn prediction(&self, database: &str, candidate: &str) -> Result<Option<Prediction>> {
        let of_entry = |entry: &Value| {
            let mut list = entry["predicted"].as_array().into_iter().flatten();
            let found = list.find(|row| row["candidate"] == candidate)?;
            let figures = found["figures"].as_object()?.iter();
            let collections = found["collections"].as_array()?.iter();
            Some(Prediction {
                candidate: candidate.to_owned(),
                at: entry["at"].as_str().unwrap_or_default().to_owned(),
                collections: collections.filter_map(|name| name.as_str().map(str::to_owned)).collect(),
                figures: figures.filter_map(|(name, value)| Some((name.clone(), value.as_f64()?))).collect(),
                error: found["error"].as_f64().unwrap_or_default(),
            })
        };
        let entries = self.entries()?;
        let mut here = entries.iter().rev().filter(|entry| entry["database"] == database);
        Ok(here.find_map(of_entry))
    }
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

    #[test]
    fn a_prediction_is_found_again_and_broken_lines_are_left_out() {
        let folder = std::env::temp_dir().join(format!("lab-ledger-{}", std::process::id()));
        let ledger = Ledger::of(&folder);
        assert!(ledger.entries().unwrap().is_empty());
        for data in [1.0, 2.0] {
            let predicted =
                json!([{ "candidate": "c", "collections": ["a"], "figures": { "bytes.data": data }, "error": 0.1 }]);
            ledger.add(&json!({ "at": "t", "database": "shop", "predicted": predicted })).unwrap();
        }
        let mut file = OpenOptions::new().append(true).open(ledger.path()).unwrap();
        file.write_all(b"{ \"cut").unwrap();
        assert_eq!(ledger.entries().unwrap().len(), 2);
        let found = ledger.prediction("shop", "c").unwrap().unwrap();
        assert_eq!((found.figures[0].1, &*found.collections[0]), (2.0, "a"));
        assert!(ledger.prediction("shop", "other").unwrap().is_none());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn off_is_a_share_of_the_truth() {
        let compared = |predicted, real| Compared { candidate: "c".into(), figure: "f".into(), predicted, real }.off();
        assert_eq!((compared(98.0, 100.0), compared(0.0, 0.0), compared(1.0, 0.0)), (-0.02, 0.0, 1.0));
    }
}
