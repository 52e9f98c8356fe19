//! From a stratified sample to the whole: totals, and how far they may be from the truth.
//!
//! Within a class of size the new layout's bytes are nearly proportional to what the unit takes today, and what the whole class
//! takes today is known: so each class is estimated by its ratio. The error is what the spread around the ratio implies, with the
//! quantile of Student's distribution: the truth lies inside it 19 times in 20.

use crate::strata::Stratum;
use crate::student::two_sided_95;

/// How many degrees of freedom the spread of all classes together lends to each class: few units of one class say little.
const LENT: f64 = 2.0;

/// A total with its variance.
#[derive(Clone, Copy, Debug, Default)]
pub struct Estimate {
    pub total: f64,
    variance: f64,
    /// The sum of squared variances over their degrees of freedom.
    spread: f64,
}

/// A unit of the sample, measured: its class, what it takes today, what it takes in the candidate.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    pub stratum: usize,
    pub today: f64,
    pub then: f64,
}

/// The figures of one class.
#[derive(Clone, Copy, Default)]
struct Class {
    sampled: f64,
    today: f64,
    then: f64,
    /// Squared residuals around the class's ratio.
    residuals: f64,
}

impl Class {
    fn ratio(&self) -> f64 {
        if self.today > 0.0 { self.then / self.today } else { 0.0 }
    }
}

impl Estimate {
    /// A total that is known.
    pub fn exact(total: f64) -> Estimate {
        Estimate { total, ..Estimate::default() }
    }

    /// The total over all units of the strata.
    pub fn of(strata: &[Stratum], sample: &[Measured]) -> Estimate {
        let mut classes = vec![Class::default(); strata.len()];
        for unit in sample {
            let Some(class) = classes.get_mut(unit.stratum) else { continue };
            class.sampled += 1.0;
            class.today += unit.today;
            class.then += unit.then;
        }
        for unit in sample {
            let Some(class) = classes.get_mut(unit.stratum) else { continue };
            class.residuals += (unit.then - class.ratio() * unit.today).powi(2);
        }
        let pooled = pooled(&classes);
        let overall = Overall::of(&classes);
        let mut all = Estimate::default();
        for (stratum, class) in strata.iter().zip(&classes) {
            all = all.and(of_class(stratum, class, pooled, &overall));
        }
        all
    }

    /// The sum of two independent totals.
    #[must_use]
    pub fn and(self, other: Estimate) -> Estimate {
        Estimate {
            total: self.total + other.total,
            variance: self.variance + other.variance,
            spread: self.spread + other.spread,
        }
    }

    /// A multiple of it.
    #[must_use]
    pub fn times(self, factor: f64) -> Estimate {
        Estimate {
            total: self.total * factor,
            variance: self.variance * factor.powi(2),
            spread: self.spread * factor.powi(4),
        }
    }

    /// How far the truth may be from the total.
    pub fn error(&self) -> f64 {
        if self.variance <= 0.0 {
            return 0.0;
        }
        let degrees = if self.spread > 0.0 { self.variance.powi(2) / self.spread } else { f64::INFINITY };
        two_sided_95(degrees) * self.variance.sqrt()
    }

    /// The same as a share of the total.
    pub fn share(&self) -> f64 {
        if self.total > 0.0 { self.error() / self.total } else { 0.0 }
    }
}

/// The ratio of all classes together, and how far those of single classes are from it.
struct Overall {
    ratio: f64,
    spread: f64,
}

impl Overall {
    fn of(classes: &[Class]) -> Overall {
        let today: f64 = classes.iter().map(|class| class.today).sum();
        let then: f64 = classes.iter().map(|class| class.then).sum();
        let ratio = if today > 0.0 { then / today } else { 0.0 };
        let there = classes.iter().filter(|class| class.today > 0.0);
        let spread = there.map(|class| (class.ratio() - ratio).abs()).fold(0.0, f64::max);
        Overall { ratio, spread }
    }
}

/// The mean squared residual as a share of the unit's size, over all classes.
fn pooled(classes: &[Class]) -> f64 {
    let several = classes.iter().filter(|class| class.sampled >= 2.0 && class.today > 0.0);
    let (sum, degrees) = several.fold((0.0, 0.0), |(sum, degrees), class| {
        let mean = class.today / class.sampled;
        (sum + class.residuals / mean.powi(2), degrees + class.sampled - 1.0)
    });
    if degrees > 0.0 { sum / degrees } else { 0.0 }
}

fn of_class(stratum: &Stratum, class: &Class, pooled: f64, overall: &Overall) -> Estimate {
    let (units, bytes) = (stratum.units as f64, stratum.bytes as f64);
    if units == 0.0 {
        return Estimate::default();
    }
    if class.sampled == 0.0 || class.today == 0.0 {
        // Nothing of it was seen: it may be as far from the others as these are from one another.
        let variance = (bytes * overall.spread.max(overall.ratio * 0.1)).powi(2);
        return Estimate { total: bytes * overall.ratio, variance, spread: variance.powi(2) / LENT };
    }
    let left = 1.0 - (class.sampled / units).min(1.0);
    let mean = class.today / class.sampled;
    let squared = (class.residuals + LENT * pooled * mean.powi(2)) / (class.sampled - 1.0 + LENT);
    let variance = units.powi(2) * left * squared / class.sampled;
    let degrees = class.sampled - 1.0 + LENT;
    Estimate { total: bytes * class.ratio(), variance, spread: variance.powi(2) / degrees }
}

#[cfg(test)]
#[path = "estimate_tests.rs"]
mod tests;
