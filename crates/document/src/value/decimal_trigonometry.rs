//! Trigonometric and hyperbolic functions of decimals: series at more digits than are kept, arguments reduced by a π that
//! has enough of them.

use super::Decimal128;
use super::decimal::Parts;
use std::cmp::Ordering;
use std::sync::OnceLock;

/// Room for 240 digits.
type Wide = dec::Decimal<80>;
type Context = dec::Context<Wide>;

/// Digits of π, and of the reduction of an argument.
const REDUCTION_DIGITS: usize = 240;
/// Digits of the series: enough for 34 right ones next to a zero of the function.
const SERIES_DIGITS: usize = 90;
/// An argument with more digits before its point than this has no known place on the circle.
const MAX_ARGUMENT_EXPONENT: i32 = 150;

const RADIANS_PER_DEGREE: Decimal128 = of_digits(1_745_329_251_994_329_576_923_690_768_488_613, -35);
const DEGREES_PER_RADIAN: Decimal128 = of_digits(5_729_577_951_308_232_087_679_815_481_410_517, -32);

const fn of_digits(coefficient: u128, exponent: i32) -> Decimal128 {
    // 6176 is the bias of the exponent in the encoding.
    Decimal128::from_bytes((((6176 + exponent) as u128) << 113 | coefficient).to_le_bytes())
}

fn context(digits: usize) -> Context {
    let mut context = Context::default();
    // All three are within what the library takes.
    let _ = context.set_max_exponent(999_999);
    let _ = context.set_min_exponent(-999_999);
    let _ = context.set_precision(digits);
    context
}

fn pi() -> &'static Wide {
    static PI: OnceLock<Wide> = OnceLock::new();
    PI.get_or_init(|| {
        // Machin: 16 atan(1/5) - 4 atan(1/239).
        let mut context = context(REDUCTION_DIGITS);
        let mut term = |times: i32, divisor: i32| {
            let mut argument = Wide::from(1);
            context.div(&mut argument, &Wide::from(divisor));
            let mut result = atan_series(&mut context, &argument);
            context.mul(&mut result, &Wide::from(times));
            result
        };
        let mut pi = term(16, 5);
        let less = term(4, 239);
        context.sub(&mut pi, &less);
        pi
    })
}

/// x - x³/3 + x⁵/5 …, for small arguments.
fn atan_series(context: &mut Context, x: &Wide) -> Wide {
    let mut square = *x;
    context.mul(&mut square, x);
    context.neg(&mut square);
    sum_series(context, *x, |context, power, index| {
        context.mul(power, &square);
        let mut term = *power;
        context.div(&mut term, &Wide::from(2 * index + 1));
        term
    })
}

/// The sum of `first` and the terms that `next` gives, until they no longer count. `next` keeps its power in its argument.
fn sum_series(context: &mut Context, first: Wide, next: impl Fn(&mut Context, &mut Wide, i32) -> Wide) -> Wide {
    let (mut sum, mut power) = (first, first);
    for index in 1..1000 {
        let term = next(context, &mut power, index);
        let before = sum;
        context.add(&mut sum, &term);
        if sum == before {
            break;
        }
    }
    sum
}

fn factorial_series(context: &mut Context, x: &Wide, first: Wide, offset: i32) -> Wide {
    let mut square = *x;
    context.mul(&mut square, x);
    context.neg(&mut square);
    sum_series(context, first, |context, power, index| {
        context.mul(power, &square);
        let step = 2 * index + offset;
        context.div(power, &Wide::from(step * (step - 1)));
        *power
    })
}

fn sin_of(context: &mut Context, x: &Wide) -> Wide {
    factorial_series(context, x, *x, 1)
}

fn cos_of(context: &mut Context, x: &Wide) -> Wide {
    factorial_series(context, x, Wide::from(1), 0)
}

fn atan_of(context: &mut Context, x: &Wide) -> Wide {
    // atan(x) = 2 atan(x / (1 + √(1 + x²))): four times makes the argument small.
    let mut small = *x;
    for _ in 0..4 {
        let mut root = small;
        context.mul(&mut root, &small);
        context.add(&mut root, &Wide::from(1));
        context.sqrt(&mut root);
        context.add(&mut root, &Wide::from(1));
        context.div(&mut small, &root);
    }
    let mut result = atan_series(context, &small);
    context.mul(&mut result, &Wide::from(16));
    result
}

/// eˣ and e⁻ˣ.
fn exponentials(context: &mut Context, x: &Wide) -> (Wide, Wide) {
    let (mut up, mut down) = (*x, *x);
    context.neg(&mut down);
    context.exp(&mut up);
    context.exp(&mut down);
    (up, down)
}

/// ln(x + √(x² + add)).
fn area(context: &mut Context, x: &Wide, add: i32) -> Wide {
    let mut result = *x;
    context.mul(&mut result, x);
    context.add(&mut result, &Wide::from(add));
    context.sqrt(&mut result);
    context.add(&mut result, x);
    context.ln(&mut result);
    result
}

impl Decimal128 {
    #[must_use]
    pub fn sin(self) -> Decimal128 {
        self.on_circle(sin_of)
    }

    #[must_use]
    pub fn cos(self) -> Decimal128 {
        if self.is_zero() {
            return filled(Decimal128::from_i64(1));
        }
        whole_if_one(self.on_circle(cos_of))
    }

    #[must_use]
    pub fn tan(self) -> Decimal128 {
        if self.is_zero() {
            return self.zero(-40);
        }
        self.on_circle(|context, x| {
            let mut tangent = sin_of(context, x);
            let cosine = cos_of(context, x);
            context.div(&mut tangent, &cosine);
            tangent
        })
    }

    /// The caller keeps the argument within [-1, 1].
    #[must_use]
    pub fn asin(self) -> Decimal128 {
        if self.is_zero() {
            return self.zero(-40);
        }
        if self.abs().compare(Decimal128::from_i64(1)) == Ordering::Equal {
            return half_turn(self.is_negative(), 2);
        }
        self.series(|context, x| {
            let mut root = *x;
            context.mul(&mut root, x);
            context.neg(&mut root);
            context.add(&mut root, &Wide::from(1));
            context.sqrt(&mut root);
            let mut argument = *x;
            context.div(&mut argument, &root);
            atan_of(context, &argument)
        })
    }

    /// The caller keeps the argument within [-1, 1].
    #[must_use]
    pub fn acos(self) -> Decimal128 {
        if self.compare(Decimal128::from_i64(1)) == Ordering::Equal {
            return Decimal128::from_parts(false, 0, -6176);
        }
        if self.compare(Decimal128::from_i64(-1)) == Ordering::Equal {
            return half_turn(false, 1);
        }
        // 2 atan √((1 - x) / (1 + x))
        self.series(|context, x| {
            let (mut ratio, mut below) = (Wide::from(1), Wide::from(1));
            context.sub(&mut ratio, x);
            context.add(&mut below, x);
            context.div(&mut ratio, &below);
            context.sqrt(&mut ratio);
            let mut result = atan_of(context, &ratio);
            context.mul(&mut result, &Wide::from(2));
            result
        })
    }

    #[must_use]
    pub fn atan(self) -> Decimal128 {
        match self.parts() {
            Parts::Infinity { negative } => half_turn(negative, 2),
            _ if self.is_zero() => self,
            _ => self.series(atan_of),
        }
    }

    /// The angle of the point (`x`, `self`).
    #[must_use]
    pub fn atan2(self, x: Decimal128) -> Decimal128 {
        if self.is_nan() || x.is_nan() {
            return Decimal128::NAN;
        }
        let (up, left) = (!self.is_negative(), x.is_negative());
        let signed = |angle: Decimal128| if up { angle } else { angle.negate() };
        let nothing = Decimal128::from_parts(false, 0, -6176);
        match (self.is_infinite(), x.is_infinite()) {
            (true, true) if left => signed(half_turn(false, 1).minus(half_turn(false, 4))),
            (true, true) => signed(half_turn(false, 4)),
            (true, false) => signed(half_turn(false, 2)),
            (false, true) if left => signed(half_turn(false, 1)),
            (false, true) => signed(nothing),
            (false, false) if self.is_zero() => signed(if left { half_turn(false, 1) } else { nothing }),
            (false, false) if x.is_zero() => signed(half_turn(false, 2)),
            (false, false) => {
                let mut context = context(SERIES_DIGITS);
                let mut ratio = Wide::from(self.abs().to_dec());
                context.div(&mut ratio, &Wide::from(x.abs().to_dec()));
                let mut angle = atan_of(&mut context, &ratio);
                if left {
                    context.neg(&mut angle);
                    context.add(&mut angle, pi());
                }
                signed(narrow(&angle))
            }
        }
    }

    #[must_use]
    pub fn sinh(self) -> Decimal128 {
        if self.is_zero() {
            return self.zero(-40);
        }
        self.odd(|context, x| {
            let (mut result, down) = exponentials(context, x);
            context.sub(&mut result, &down);
            context.div(&mut result, &Wide::from(2));
            result
        })
    }

    #[must_use]
    pub fn cosh(self) -> Decimal128 {
        if self.is_infinite() {
            return Decimal128::INFINITY;
        }
        self.series(|context, x| {
            let (mut result, down) = exponentials(context, x);
            context.add(&mut result, &down);
            context.div(&mut result, &Wide::from(2));
            result
        })
    }

    #[must_use]
    pub fn tanh(self) -> Decimal128 {
        if self.is_zero() || self.is_nan() {
            return self;
        }
        let limit = Decimal128::from_i64(if self.is_negative() { -1 } else { 1 });
        if self.abs().compare(Decimal128::from_i64(100)) != Ordering::Less {
            return limit;
        }
        whole_if_one(self.odd(|context, x| {
            let (mut above, down) = exponentials(context, x);
            let mut below = above;
            context.sub(&mut above, &down);
            context.add(&mut below, &down);
            context.div(&mut above, &below);
            above
        }))
    }

    #[must_use]
    pub fn asinh(self) -> Decimal128 {
        if self.is_zero() {
            return self.zero(-6176);
        }
        if self.is_negative() {
            return self.negate().asinh().negate();
        }
        self.odd(|context, x| area(context, x, 1))
    }

    /// The caller keeps the argument at 1 or above.
    #[must_use]
    pub fn acosh(self) -> Decimal128 {
        if self.compare(Decimal128::from_i64(1)) == Ordering::Equal {
            return Decimal128::ZERO;
        }
        if self.is_infinite() {
            return self;
        }
        self.series(|context, x| area(context, x, -1))
    }

    /// The caller keeps the argument within [-1, 1].
    #[must_use]
    pub fn atanh(self) -> Decimal128 {
        if self.is_zero() {
            return self.zero(-6176);
        }
        if self.abs().compare(Decimal128::from_i64(1)) == Ordering::Equal {
            return if self.is_negative() { Decimal128::NEGATIVE_INFINITY } else { Decimal128::INFINITY };
        }
        self.odd(|context, x| {
            let (mut above, mut below) = (Wide::from(1), Wide::from(1));
            context.add(&mut above, x);
            context.sub(&mut below, x);
            context.div(&mut above, &below);
            context.ln(&mut above);
            context.div(&mut above, &Wide::from(2));
            above
        })
    }

    #[must_use]
    pub fn to_radians(self) -> Decimal128 {
        self.times(RADIANS_PER_DEGREE)
    }

    #[must_use]
    pub fn to_degrees(self) -> Decimal128 {
        self.times(DEGREES_PER_RADIAN)
    }

    /// Zero with the sign of `self`.
    fn zero(self, exponent: i32) -> Decimal128 {
        Decimal128::from_parts(self.is_negative(), 0, exponent)
    }

    /// A function of the circle: the argument brought into one turn first.
    fn on_circle(self, function: impl Fn(&mut Context, &Wide) -> Wide) -> Decimal128 {
        match self.parts() {
            Parts::Finite { coefficient, exponent, .. } if coefficient != 0 => {
                if exponent > MAX_ARGUMENT_EXPONENT {
                    return Decimal128::NAN;
                }
            }
            Parts::Finite { .. } => return self,
            Parts::NaN | Parts::Infinity { .. } => return Decimal128::NAN,
        }
        let mut reduction = context(REDUCTION_DIGITS);
        let mut turn = *pi();
        reduction.mul(&mut turn, &Wide::from(2));
        let mut x = Wide::from(self.to_dec());
        reduction.rem(&mut x, &turn);
        narrow(&function(&mut context(SERIES_DIGITS), &x))
    }

    fn series(self, function: impl Fn(&mut Context, &Wide) -> Wide) -> Decimal128 {
        match self.parts() {
            Parts::Finite { .. } => narrow(&function(&mut context(SERIES_DIGITS), &Wide::from(self.to_dec()))),
            Parts::NaN | Parts::Infinity { .. } => self,
        }
    }

    /// A function that is its argument as far as 34 digits show when the argument is tiny.
    fn odd(self, function: impl Fn(&mut Context, &Wide) -> Wide) -> Decimal128 {
        const TINY: Decimal128 = of_digits(1, -30);
        if self.abs().compare(TINY) == Ordering::Less {
            return filled(self);
        }
        self.series(function)
    }
}

/// π divided by `parts`.
fn half_turn(negative: bool, parts: i32) -> Decimal128 {
    let mut angle = *pi();
    let mut context = context(SERIES_DIGITS);
    context.div(&mut angle, &Wide::from(parts));
    if negative {
        context.neg(&mut angle);
    }
    narrow(&angle)
}

fn narrow(number: &Wide) -> Decimal128 {
    filled(Decimal128::from_dec(number.to_decimal128()))
}

/// With all 34 digits, as results that are not exact have.
fn filled(number: Decimal128) -> Decimal128 {
    match number.parts() {
        Parts::Finite { negative, mut coefficient, mut exponent } if coefficient != 0 => {
            const FULL: u128 = 1_000_000_000_000_000_000_000_000_000_000_000;
            while coefficient < FULL && exponent > super::decimal::MIN_EXPONENT {
                coefficient *= 10;
                exponent -= 1;
            }
            Decimal128::from_parts(negative, coefficient, exponent)
        }
        _ => number,
    }
}

fn whole_if_one(number: Decimal128) -> Decimal128 {
    let one = Decimal128::from_i64(1);
    match number.abs().compare(one) {
        Ordering::Equal if number.is_negative() => one.negate(),
        Ordering::Equal => one,
        _ => number,
    }
}
