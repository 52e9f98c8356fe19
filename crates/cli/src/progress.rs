//! How far long work is: a bar with rate and time left on a terminal, a line now and then elsewhere. On stderr.

use crate::ask::grouped;
use crate::report;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
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
            let style = "{bar:30} {percent:>3} %  {human_pos}/{human_len}  {per_sec}  {eta} left  {msg}";
            if let Ok(style) = ProgressStyle::with_template(style) {
                bar.set_style(style);
            }
            bar
        });
        Progress { bar, began: Instant::now(), first: None, last_line: Instant::now(), unit }
    }

    pub(crate) fn show(&mut self, done: u64, total: u64, what: &[String]) {
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
        let rate = done.saturating_sub(first) as f64 / self.began.elapsed().as_secs_f64().max(0.001);
        #[expect(clippy::cast_precision_loss, reason = "a time for people")]
        let left = total.saturating_sub(done) as f64 / rate.max(1.0);
        let number = |number: u64| grouped(i64::try_from(number).unwrap_or(i64::MAX));
        report::note(&format!(
            "{} of {} {}, {rate:.0} a second, about {left:.0} s left: {}",
            number(done),
            number(total),
            self.unit,
            what.join(", ")
        ));
    }

    pub(crate) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
