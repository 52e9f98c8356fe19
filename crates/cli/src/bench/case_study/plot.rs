//! Bars as inline SVG: no script, no font, no file of anybody else; colours come from the page, so it is readable light and dark.

use std::fmt::Write;

/// Bars of one figure, in groups.
pub(crate) struct Plot {
    pub(crate) title: String,
    pub(crate) unit: &'static str,
    /// How many digits after the point a value is shown with.
    pub(crate) digits: usize,
    pub(crate) groups: Vec<Group>,
}

pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) bars: Vec<Bar>,
}

pub(crate) struct Bar {
    /// Which of the page's colours, `c0` and on; the legend says what it is.
    pub(crate) colour: usize,
    pub(crate) name: String,
    pub(crate) value: f64,
}

const WIDTH: f64 = 900.0;
const LEFT: f64 = 170.0;
const RIGHT: f64 = 90.0;
const BAR: f64 = 16.0;
const GAP: f64 = 14.0;

impl Plot {
    pub(crate) fn svg(&self) -> String {
        let largest = self.groups.iter().flat_map(|group| &group.bars).map(|bar| bar.value).fold(0.0, f64::max);
        let mut body = String::new();
        let mut y = 6.0;
        for group in &self.groups {
            let middle = y + height(group) / 2.0 + 4.0;
            let name = escaped(&group.name);
            let _ = writeln!(body, r#"<text x="{:.0}" y="{middle:.0}" text-anchor="end">{name}</text>"#, LEFT - 10.0);
            for bar in &group.bars {
                let width = if largest > 0.0 { bar.value / largest * (WIDTH - LEFT - RIGHT) } else { 0.0 };
                let shown = format!("{:.*}", self.digits, bar.value);
                let _ = writeln!(
                    body,
                    r#"<rect x="{LEFT:.0}" y="{y:.0}" width="{width:.1}" height="{:.0}" class="c{}"><title>{}: {shown} {}</title></rect>"#,
                    BAR - 3.0,
                    bar.colour,
                    escaped(&bar.name),
                    self.unit,
                );
                let (x, baseline) = (LEFT + width + 6.0, y + BAR - 6.0);
                let _ = writeln!(body, r#"<text x="{x:.1}" y="{baseline:.0}" class="value">{shown}</text>"#);
                y += BAR;
            }
            y += GAP;
        }
        let title = escaped(&self.title);
        format!(
            "<figure><figcaption>{title} <small>({})</small></figcaption>\n\
             <svg viewBox=\"0 0 {WIDTH:.0} {y:.0}\" role=\"img\" aria-label=\"{title}\">\n{body}</svg></figure>\n",
            self.unit
        )
    }
}

#[expect(clippy::cast_precision_loss, reason = "a handful of bars")]
fn height(group: &Group) -> f64 {
    group.bars.len() as f64 * BAR
}

/// Text as HTML holds it.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_bar_has_the_largest_value_and_names_are_escaped() {
        let bar = |colour: usize, value: f64| Bar { colour, name: "a<b".to_owned(), value };
        let group = Group { name: "R&D".to_owned(), bars: vec![bar(0, 2.0), bar(1, 4.0)] };
        let plot = Plot { title: "t".to_owned(), unit: "bytes", digits: 1, groups: vec![group] };
        let svg = plot.svg();
        assert!(svg.contains(r#"width="320.0""#) && svg.contains(r#"width="640.0""#), "{svg}");
        assert!(svg.contains("R&amp;D") && svg.contains("a&lt;b: 4.0 bytes"), "{svg}");
    }
}
