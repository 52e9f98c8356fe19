//! What changes of source documents add to a host: a count, or exact numbers (SEMANTICS R8).

use crate::rule::undecided;
use document::value::{Decimal128, Number};
use document::{Code, Doc, DocWriter, Error, Value};

/// Numbers added up exactly: finite ones as decimals, the others counted, and how many there are of each type. It is both
/// a host's state (`_pleach.<field>`) and what changes it.
#[derive(Clone, Copy, Debug)]
pub struct Numbers {
    /// How many children, where the host is made and removed with them (SEMANTICS R35); else always 0.
    pub children: i64,
    /// How many numbers, whatever they are.
    pub n: i64,
    /// The finite ones, each double entering as `$toDecimal` takes it.
    pub sum: Decimal128,
    pub longs: i64,
    pub doubles: i64,
    pub decimals: i64,
    pub nans: i64,
    pub infinities: i64,
    pub negative_infinities: i64,
}

/// What a field keeps in its host beside its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateForm {
    /// The number of children: of a roll-up.
    pub children: bool,
    /// Their numbers: of a sum or an average.
    pub numbers: bool,
}

impl StateForm {
    /// Whether there is a state at all.
    pub fn is_some(self) -> bool {
        self.children || self.numbers
    }
}

/// The name of the number of children in a state.
pub const CHILDREN: &str = "children";

/// The counters that a state shows only while they are not zero, in this order.
pub const COUNTERS: [&str; 6] = ["long", "double", "decimal", "nan", "inf", "negInf"];

impl Default for Numbers {
    fn default() -> Self {
        Numbers {
            children: 0,
            n: 0,
            sum: Decimal128::ZERO,
            longs: 0,
            doubles: 0,
            decimals: 0,
            nans: 0,
            infinities: 0,
            negative_infinities: 0,
        }
    }
}

impl Numbers {
    /// One value: what is no number adds nothing.
    pub fn of(value: &Value<'_>) -> Numbers {
        let mut numbers = Numbers::default();
        let Some(number) = Number::of(value) else { return numbers };
        numbers.n = 1;
        match number {
            Number::Int32(_) => {}
            Number::Int64(_) => numbers.longs = 1,
            Number::Double(_) => numbers.doubles = 1,
            Number::Decimal(_) => numbers.decimals = 1,
        }
        if number.is_nan() {
            numbers.nans = 1;
        } else if number.is_infinite() {
            match number.is_negative() {
                true => numbers.negative_infinities = 1,
                false => numbers.infinities = 1,
            }
        } else {
            numbers.sum = number.to_decimal();
        }
        numbers
    }

    pub fn counters(&self) -> [i64; 6] {
        [self.longs, self.doubles, self.decimals, self.nans, self.infinities, self.negative_infinities]
    }

    fn counters_mut(&mut self) -> [&mut i64; 6] {
        [
            &mut self.longs,
            &mut self.doubles,
            &mut self.decimals,
            &mut self.nans,
            &mut self.infinities,
            &mut self.negative_infinities,
        ]
    }

    #[must_use]
    pub fn negated(mut self) -> Numbers {
        self.children = -self.children;
        self.n = -self.n;
        self.sum = self.sum.negate();
        self.counters_mut().into_iter().for_each(|counter| *counter = -*counter);
        self
    }

    /// `None` if the sum leaves 34 digits.
    pub fn plus(self, other: &Numbers) -> Option<Numbers> {
        let sum = exact_sum(self.sum, other.sum)?;
        Some(Numbers { sum, ..self.counted(other) })
    }

    /// What leaves 34 digits is rounded, as `$sum` does.
    #[must_use]
    pub fn rounded_plus(self, other: &Numbers) -> Numbers {
        let sum = self.sum.plus(other.sum);
        Numbers { sum, ..self.counted(other) }
    }

    /// Both counts, and this sum.
    fn counted(mut self, other: &Numbers) -> Numbers {
        self.children += other.children;
        self.n += other.n;
        for (counter, more) in self.counters_mut().into_iter().zip(other.counters()) {
            *counter += more;
        }
        self
    }

    pub fn is_zero(&self) -> bool {
        self.children == 0 && self.n == 0 && self.sum.is_zero() && self.counters().iter().all(|counter| *counter == 0)
    }

    /// Equal numbers: the sum whatever its exponent.
    pub fn equals(&self, other: &Numbers) -> bool {
        (self.children, self.n) == (other.children, other.n)
            && self.counters() == other.counters()
            && self.sum.compare(other.sum).is_eq()
    }

    /// As the host keeps it.
    pub fn to_state(&self, form: StateForm) -> Doc<'static> {
        let mut writer = DocWriter::with_capacity(64);
        if form.children {
            writer.append(CHILDREN, &count(self.children));
        }
        if form.numbers {
            writer.append("n", &count(self.n));
            writer.append("sum", &Value::Decimal(self.sum));
            for (name, counter) in COUNTERS.into_iter().zip(self.counters()) {
                if counter != 0 {
                    writer.append(name, &count(counter));
                }
            }
        }
        writer.finish()
    }

    /// All parts, zeros too: what a pipeline's variable holds.
    pub fn to_constant(&self, form: StateForm) -> Doc<'static> {
        let mut writer = DocWriter::with_capacity(112);
        if form.children {
            writer.append(CHILDREN, &count(self.children));
        }
        if form.numbers {
            writer.append("n", &count(self.n));
            writer.append("sum", &Value::Decimal(self.sum));
            for (name, counter) in COUNTERS.into_iter().zip(self.counters()) {
                writer.append(name, &count(counter));
            }
        }
        writer.finish()
    }

    /// A host's state; a missing one is empty. `None` if it is no state at all.
    pub fn from_state(state: &Value<'_>) -> Option<Numbers> {
        let mut numbers = Numbers::default();
        let state = match state {
            Value::Document(state) => state,
            nullish if nullish.is_nullish() => return Some(numbers),
            _ => return None,
        };
        let whole = |name: &str| match state.get(name) {
            None | Some(Value::Null) => Some(0),
            Some(value) => value.as_i64_exact(),
        };
        numbers.children = whole(CHILDREN)?;
        numbers.n = whole("n")?;
        for (name, counter) in COUNTERS.into_iter().zip(numbers.counters_mut()) {
            *counter = whole(name)?;
        }
        if let Some(sum) = state.get("sum").filter(|sum| !sum.is_nullish()) {
            numbers.sum = sum.as_number()?.to_decimal();
        }
        Some(numbers)
    }
}

/// A counter as MongoDB's `$sum: 1` gives it: an int while it fits.
pub fn count(n: i64) -> Value<'static> {
    Number::int_or_long(n).into()
}

/// The sum, if it is exact: taking either operand away gives the other back exactly if nothing was rounded.
pub fn exact_sum(a: Decimal128, b: Decimal128) -> Option<Decimal128> {
    let sum = a.plus(b);
    let same = |x: Decimal128, y: Decimal128| x.compare(y).is_eq();
    // As MongoDB's `$add` does, the sum of all that is no decimal is added last: a zero, which may change the exponent.
    (same(sum.minus(a), b) && same(sum.minus(b), a)).then(|| sum.plus(Decimal128::ZERO))
}

/// What the error of a sum without room says before and behind the name of its rule.
const BEFORE_RULE: &str = "the sum of rule ";
const AFTER_RULE: &str = " would need more than 34 digits";

/// A derived write's error in our own words: in a pipeline a sum without room, or a place that is not told, can only end as a
/// failed conversion.
pub fn translated(error: Error) -> Error {
    let rule = || {
        let (_, rest) = error.message().split_once(BEFORE_RULE)?;
        rest.split_once(AFTER_RULE).map(|(rule, _)| rule)
    };
    if undecided::is_undecided(&error) {
        return undecided::error();
    }
    match (error.code() == Code::ConversionFailure).then(rule).flatten() {
        Some(rule) => too_many_digits(rule),
        None => error,
    }
}

/// The error of a sum that leaves 34 digits: the write that would do it changes nothing.
pub fn too_many_digits(rule: &str) -> Error {
    Error::bad_value(format!("{BEFORE_RULE}{rule}{AFTER_RULE}")).with_hint(
        "Pleach keeps sums exactly, in 34 decimal digits; values that differ by more orders of magnitude cannot be added",
    )
}
