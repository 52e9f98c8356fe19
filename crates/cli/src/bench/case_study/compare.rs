//! Declared against by hand: how many times as fast.

use super::layout::Layout;
use super::outcome::{Outcome, Row};
use super::place::Place;
use super::subject::{Subject, Way};
use serde_json::{Value, json};

/// One layout; a figure is `None` where one of the two was not measured.
pub(crate) struct Comparison {
    pub(crate) layout: Layout,
    /// Events per second, embedded and declared against a real MongoDB by hand.
    pub(crate) load_embedded: Option<f64>,
    /// Reports per second, embedded and declared against embedded by hand.
    pub(crate) reports_embedded: Option<f64>,
    /// Events per second, declared in front of a real MongoDB against by hand on it.
    pub(crate) load_proxy: Option<f64>,
    /// Reports per second, the same.
    pub(crate) reports_proxy: Option<f64>,
}

impl Comparison {
    pub(crate) fn all(outcome: &Outcome) -> Vec<Comparison> {
        let compared = |layout: Layout| Comparison::of(outcome, layout);
        Layout::ALL.into_iter().map(compared).filter(|comparison| !comparison.is_empty()).collect()
    }

    fn of(outcome: &Outcome, layout: Layout) -> Comparison {
        let row =
            |place: Place, way: Way| outcome.rows.iter().find(|row| row.subject == Subject { place, way, layout });
        let times = |of: Option<&Row>, against: Option<&Row>, rate: fn(&Row) -> f64| {
            of.zip(against).map(|(of, against)| rate(of) / rate(against).max(1e-9))
        };
        let load = |row: &Row| row.loaded.per_second();
        let reports = |row: &Row| row.reported.per_second();
        let mongod = row(Place::Mongod, Way::Hand);
        let (hand, embedded) = (row(Place::Embedded, Way::Hand), row(Place::Embedded, Way::Declared));
        let proxy = row(Place::Proxy, Way::Declared);
        Comparison {
            layout,
            load_embedded: times(embedded, mongod, load),
            reports_embedded: times(embedded, hand, reports),
            load_proxy: times(proxy, mongod, load),
            reports_proxy: times(proxy, mongod, reports),
        }
    }

    fn is_empty(&self) -> bool {
        self.figures().iter().all(Option::is_none)
    }

    pub(crate) fn figures(&self) -> [Option<f64>; 4] {
        [self.load_embedded, self.reports_embedded, self.load_proxy, self.reports_proxy]
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "layout": self.layout.name(),
            "loadEmbeddedOverMongodbByHand": self.load_embedded,
            "reportsEmbeddedOverEmbeddedByHand": self.reports_embedded,
            "loadProxyOverMongodbByHand": self.load_proxy,
            "reportsProxyOverMongodbByHand": self.reports_proxy,
        })
    }
}
