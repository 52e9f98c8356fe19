//! How far long work is: a bar with rate and time left on a terminal, a line now and then elsewhere. On stderr.

use crate::ask::grouped;
use crate::report;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// How often a line is written where there is no terminal.
const BETWEEN_LINES: Duration = Duration::from_secs(10);

pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    began: Instant,
    /// What was done when it began: not of this run.
    first: Option<u64>,
    last_line: Instant,
    /// What is counted.
    unit: &'static str,
}

impl Progress {
    pub(crate) fn new() -> Progress {
        Progress::of("documents")
    }

    pub(crate) fn of(unit: &'static str) -> Progress {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
            let style = "{bar:30} {percent:>3} %  {human_pos}/{human_len}  {rate}  {eta} left  {msg}";
            if let Ok(style) = ProgressStyle::with_template(style) {
                bar.set_style(style.with_key("rate", |state: &ProgressState, out: &mut dyn std::fmt::Write| {
                    let _ = out.write_str(&rate(state.per_sec()));
                }));
            }
            bar
        });
        Progress { bar, began: Instant::now(), first: None, last_line: Instant::now(), unit }
    }

    pub(crate) fn show(&mut self, done: u64, total: u64, what: &[String]) {
        let what: Vec<String> = what.iter().map(|what| crate::plain::line(what).into_owned()).collect();
        let first = *self.first.get_or_insert(done);
        if let Some(bar) = &self.bar {
            bar.set_length(total.max(done));
            bar.set_position(done);
            bar.set_message(what.join(", "));
            return;
        }
        if self.last_line.elapsed() < BETWEEN_LINES {
            return;
        }
        self.last_line = Instant::now();
        #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
        let per_second = done.saturating_sub(first) as f64 / self.began.elapsed().as_secs_f64().max(0.001);
        report::note(&line(done, total, self.unit, per_second, &what));
    }

    pub(crate) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// How far it is, on one line.
fn line(done: u64, total: u64, unit: &str, per_second: f64, what: &[String]) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a time for people")]
    let left = total.saturating_sub(done) as f64 / per_second.max(1.0);
    let number = |number: u64| grouped(i64::try_from(number).unwrap_or(i64::MAX));
    let (done, total, rate) = (number(done), number(total), rate(per_second));
    let of = if what.is_empty() { String::new() } else { format!(" of {}", what.join(", ")) };
    format!("{done} of {total} {unit}{of}, {rate}, about {left:.0} s left")
}

/// `69 K/s`: two digits at least, and no more than three.
fn rate(per_second: f64) -> String {
    let (number, unit) = match per_second {
        number if number < 999.5 => (number, ""),
        number if number < 999_500.0 => (number / 1e3, " K"),
        number => (number / 1e6, " M"),
    };
    match unit.is_empty() || number >= 9.95 {
        true => format!("{number:.0}{unit}/s"),
        false => format!("{number:.1}{unit}/s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_short() {
        for (per_second, told) in [
            (0.0, "0/s"),
            (7.4, "7/s"),
            (950.0, "950/s"),
            (999.7, "1.0 K/s"),
            (1_234.0, "1.2 K/s"),
            (9_960.0, "10 K/s"),
            (69_123.4, "69 K/s"),
            (999_700.0, "1.0 M/s"),
            (12_345_678.0, "12 M/s"),
        ] {
            assert_eq!(rate(per_second), told);
        }
    }

    #[test]
    fn a_line_names_what_there_is() {
        let what = ["orders.customer".to_owned(), "a.b".to_owned()];
        let told = line(1_000, 70_000, "documents", 69_000.0, &what);
        assert_eq!(told, "1,000 of 70,000 documents of orders.customer, a.b, 69 K/s, about 1 s left");
        assert_eq!(line(1, 2, "events", 0.5, &[]), "1 of 2 events, 0/s, about 1 s left");
    }
}
