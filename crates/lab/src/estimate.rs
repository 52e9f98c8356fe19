//! From a stratified sample to the whole: totals, and how far they may be from the truth.
//!
//! What each class of size has today is known. What a candidate makes of it is either nearly proportional to that (buckets), or
//! differs from it by about the same for each unit (a field that is added): both models are fitted, and the one with the smaller
//! error is taken. The error is what the spread around the model implies, with the quantile of Student's distribution: the truth
//! lies inside it 19 times in 20.

use crate::quantile::two_sided_95;

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

/// A unit of the sample, measured: its class, what it has today, what it has in the candidate.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    pub stratum: usize,
    pub today: f64,
    pub then: f64,
}

/// What is known of all units of a class: how many there are, and what they have today.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known {
    pub units: f64,
    pub today: f64,
}

/// How what a unit has in the candidate follows from what it has today.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Model {
    /// Each class by its ratio.
    Ratio,
    /// Each class by what comes to a unit.
    Difference,
}

/// The figures of one class.
#[derive(Clone, Copy, Default)]
struct Class {
    sampled: f64,
    today: f64,
    then: f64,
    /// Squared residuals around the model.
    residuals: f64,
}

impl Class {
    fn ratio(&self) -> f64 {
        if self.today > 0.0 { self.then / self.today } else { 0.0 }
    }

    /// What a unit with so much today would have in the candidate.
    fn expected(&self, today: f64, model: Model) -> f64 {
        match model {
            Model::Ratio => self.ratio() * today,
            Model::Difference => today + (self.then - self.today) / self.sampled.max(1.0),
        }
    }

    fn total(&self, known: &Known, model: Model) -> f64 {
        match model {
            Model::Ratio => known.today * self.ratio(),
            Model::Difference => known.today + known.units * (self.then - self.today) / self.sampled.max(1.0),
        }
    }
}

impl Estimate {
    /// A total that is known.
    pub fn exact(total: f64) -> Estimate {
        Estimate { total, ..Estimate::default() }
    }

    /// The total over all units of the classes.
    pub fn of(classes: &[Known], sample: &[Measured]) -> Estimate {
        let [ratio, difference] =
            [Model::Ratio, Model::Difference].map(|model| Estimate::by_model(classes, sample, model));
        if difference.error() < ratio.error() { difference } else { ratio }
    }

    fn by_model(known: &[Known], sample: &[Measured], model: Model) -> Estimate {
        let mut classes = vec![Class::default(); known.len()];
        for unit in sample {
            let Some(class) = classes.get_mut(unit.stratum) else { continue };
            class.sampled += 1.0;
            class.today += unit.today;
            class.then += unit.then;
        }
        for unit in sample {
            let Some(class) = classes.get_mut(unit.stratum) else { continue };
            class.residuals += (unit.then - class.expected(unit.today, model)).powi(2);
        }
        let pooled = pooled(&classes);
        let overall = Overall::of(&classes);
        let mut all = Estimate::default();
        for (known, class) in known.iter().zip(&classes) {
            all = all.and(of_class(known, class, pooled, &overall, model));
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

fn of_class(known: &Known, class: &Class, pooled: f64, overall: &Overall, model: Model) -> Estimate {
    let Known { units, today } = *known;
    if units == 0.0 {
        return Estimate::default();
    }
    if class.sampled == 0.0 || class.today == 0.0 {
        // Nothing of it was seen: it may be as far from the others as these are from one another.
        let variance = (today * overall.spread.max(overall.ratio * 0.1)).powi(2);
        return Estimate { total: today * overall.ratio, variance, spread: variance.powi(2) / LENT };
    }
    let left = 1.0 - (class.sampled / units).min(1.0);
    let mean = class.today / class.sampled;
    let squared = (class.residuals + LENT * pooled * mean.powi(2)) / (class.sampled - 1.0 + LENT);
    let variance = units.powi(2) * left * squared / class.sampled;
    let degrees = class.sampled - 1.0 + LENT;
    Estimate { total: class.total(known, model), variance, spread: variance.powi(2) / degrees }
}

#[cfg(test)]
#[path = "estimate_tests.rs"]
mod tests;
