//! Replays every corpus through its target, each input as it is and with single bytes changed.

use std::fs;
use std::path::Path;

#[test]
fn every_corpus_runs_clean() {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for target in pleach_fuzz::TARGETS {
        let folder = corpora.join(target.name);
        let mut inputs = 0;
        for entry in fs::read_dir(&folder).unwrap_or_else(|_| panic!("no corpus for {}", target.name)).flatten() {
            let bytes = fs::read(entry.path()).unwrap();
            (target.run)(&bytes);
            // A cheap neighbourhood: enough to notice a parser that trusts its input.
            for at in (0..bytes.len()).step_by(bytes.len() / 24 + 1) {
                for change in [0x00, 0x7f, 0xff] {
                    let mut changed = bytes.clone();
                    changed[at] = change;
                    (target.run)(&changed);
                }
                (target.run)(&bytes[..at]);
            }
            inputs += 1;
        }
        assert!(inputs >= 10, "{} has only {inputs} inputs", target.name);
    }
}

#[test]
fn targets_are_sorted_and_documented() {
    let names: Vec<_> = pleach_fuzz::TARGETS.iter().map(|target| target.name).collect();
    assert!(names.is_sorted());
    assert!(pleach_fuzz::TARGETS.iter().all(|target| target.help.ends_with('.')));
}
