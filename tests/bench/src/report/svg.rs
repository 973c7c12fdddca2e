//! A canvas that writes SVG: a plot's frame, legend and shapes, legible on light and on dark ground.

use std::fmt::Write;

/// Colours that stand apart from each other and from white and black, also for the colour-blind.
const COLOURS: [&str; 9] = [
    "#8a8f98", "#56b4e9", "#d55e00", "#c99a00", "#009e73", "#cc79a7", "#2f81d6", "#7f6fd0",
    "#a0724a",
];

const STYLE: &str = "text{font:13px sans-serif;fill:#1f2328}\
.title{font-size:16px;font-weight:bold}\
.ground{fill:#ffffff}.grid{stroke:#d1d9e0;stroke-width:1}.axis{stroke:#59636e;stroke-width:1.5}\
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.ground{fill:#0d1117}\
.grid{stroke:#30363d}.axis{stroke:#9198a1}}";

/// Where the plot itself is, in pixels; around it stand title, legend, ticks and labels.
pub(super) const LEFT: f64 = 80.0;
pub(super) const TOP: f64 = 90.0;
pub(super) const HEIGHT: f64 = 340.0;
pub(super) const BOTTOM: f64 = TOP + HEIGHT;

/// How a text stands to its place.
#[derive(Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A plot that is being drawn.
pub(super) struct Canvas {
    body: String,
    right: f64,
}

impl Canvas {
    /// A plot `width` pixels wide, without what stands around it.
    pub(super) fn new(title: &str, width: f64) -> Self {
        let mut canvas = Self {
            body: String::new(),
            right: LEFT + width,
        };
        let _ = writeln!(
            canvas.body,
            r#"<text class="title" x="{LEFT}" y="28">{}</text>"#,
            escaped(title)
        );
        canvas
    }

    /// The right edge of the plot itself.
    pub(super) fn right(&self) -> f64 {
        self.right
    }

    /// One entry per series, by its colour.
    pub(super) fn legend(&mut self, names: &[&str]) {
        let mut x = LEFT;
        for (index, name) in names.iter().enumerate() {
            self.bar(x, 46.0, 12.0, 12.0, index, "");
            self.text(x + 18.0, 57.0, Anchor::Start, name);
            // A generous guess at the name's width: nothing here can measure a text.
            x += 44.0 + 7.5 * f64::from(u16::try_from(name.len()).unwrap_or(u16::MAX));
        }
    }

    /// What the axes tell of, with units.
    pub(super) fn labels(&mut self, across: &str, up: &str) {
        let middle = f64::midpoint(LEFT, self.right);
        self.text(middle, BOTTOM + 52.0, Anchor::Middle, across);
        let y = f64::midpoint(TOP, BOTTOM);
        let _ = writeln!(
            self.body,
            r#"<text x="20" y="{y}" text-anchor="middle" transform="rotate(-90 20 {y})">{}</text>"#,
            escaped(up)
        );
    }

    /// A tick of the axis that goes up, with its line across the plot.
    pub(super) fn tick(&mut self, y: f64, text: &str, class: &str) {
        let right = self.right;
        let _ = writeln!(
            self.body,
            r#"<line class="{class}" x1="{LEFT}" x2="{right}" y1="{y:.1}" y2="{y:.1}"/>"#
        );
        self.text(LEFT - 8.0, y + 4.5, Anchor::End, text);
    }

    /// A rectangle in the colour of a series, with what a pointer over it shows.
    pub(super) fn bar(
        &mut self,
        x: f64,
        y: f64,
        width: f64,
        height: f64,
        series: usize,
        tip: &str,
    ) {
        let _ = writeln!(
            self.body,
            r#"<rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" fill="{}"><title>{}</title></rect>"#,
            colour(series),
            escaped(tip)
        );
    }

    /// A line through points in the colour of a series.
    pub(super) fn line(&mut self, points: &[(f64, f64)], series: usize) {
        let colour = colour(series);
        let path: Vec<String> = points
            .iter()
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        let _ = writeln!(
            self.body,
            r#"<polyline points="{}" fill="none" stroke="{colour}" stroke-width="2.5"/>"#,
            path.join(" ")
        );
    }

    /// A point with the range of its runs.
    pub(super) fn point(&mut self, x: f64, y: f64, range: (f64, f64), series: usize, tip: &str) {
        let (colour, (low, high)) = (colour(series), range);
        let _ = writeln!(
            self.body,
            r#"<line x1="{x:.1}" x2="{x:.1}" y1="{low:.1}" y2="{high:.1}" stroke="{colour}" stroke-width="1.5"/><circle cx="{x:.1}" cy="{y:.1}" r="4.5" fill="{colour}"><title>{}</title></circle>"#,
            escaped(tip)
        );
    }

    pub(super) fn text(&mut self, x: f64, y: f64, anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let _ = writeln!(
            self.body,
            r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{}</text>"#,
            escaped(text)
        );
    }

    /// The whole file.
    pub(super) fn finish(self) -> String {
        let (width, height) = (self.right + 24.0, BOTTOM + 70.0);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\">\n\
             <style>{STYLE}</style>\n<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n{}</svg>\n",
            self.body
        )
    }
}

fn colour(series: usize) -> &'static str {
    COLOURS[series % COLOURS.len()]
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
