//! Keys of links beyond a plain field: expressions, `each`, `match`, and documents that are made with their first child.

mod kinds;
mod late;
mod orders;
mod rolled_up;
mod seeded;

/// Orders by month and region, counted and added up; the documents come and go with the orders.
pub(crate) const MONTHS: &str = "
  months:
    computed:
      orders: { count: orders, by: { month: { $dateTrunc: { date: $at, unit: month } }, region: $region }, create: true }
      revenue: { sum: total, from: orders, by: { month: { $dateTrunc: { date: $at, unit: month } }, region: $region }, create: true }
";
