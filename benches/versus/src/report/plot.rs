//! Line and bar charts as SVG. Text and axes have the page's color, readable in light and dark mode.

use crate::error::Result;
use plotters::prelude::*;

/// Width and height in pixels.
const SIZE: (u32, u32) = (900, 420);
const AXIS: RGBColor = BLACK;
const GRID: RGBColor = RGBColor(128, 128, 128);

/// A named line or group of points.
pub struct PlotSeries {
    /// The name in the legend.
    pub name: String,
    /// A color of medium lightness.
    pub color: RGBColor,
    /// Whether to draw it thick.
    pub strong: bool,
    /// The points, as x and y.
    pub points: Vec<(f64, f64)>,
}

/// An axis: how its numbers are placed and labeled.
pub struct PlotAxis {
    /// Its caption.
    pub name: &'static str,
    /// Whether the axis is logarithmic.
    pub log: bool,
    /// The label of a number.
    pub show: Box<dyn Fn(f64) -> String>,
}

impl PlotAxis {
    fn place(&self, x: f64) -> f64 {
        if self.log { x.max(1e-9).log10() } else { x }
    }

    fn label(&self, placed: f64) -> String {
        (self.show)(if self.log { 10f64.powf(placed) } else { placed })
    }
}

/// A line chart with a mark at each point. Without `joined`, only the marks.
pub fn lines(title: &str, x: &PlotAxis, y: &PlotAxis, joined: bool, series: &[PlotSeries]) -> Result<String> {
    let placed = |series: &PlotSeries| -> Vec<(f64, f64)> {
        series.points.iter().map(|&(px, py)| (x.place(px), y.place(py))).collect()
    };
    let all: Vec<(f64, f64)> = series.iter().flat_map(placed).collect();
    let (x_range, y_range) = (range(all.iter().map(|p| p.0)), range(all.iter().map(|p| p.1)));
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        let mut chart = ChartBuilder::on(&root)
            .caption(title, ("sans-serif", 18, &AXIS))
            .margin(10)
            .margin_right(200)
            .x_label_area_size(40)
            .y_label_area_size(70)
            .build_cartesian_2d(x_range, y_range)?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(GRID.mix(0.3))
            .axis_style(GRID)
            .label_style(("sans-serif", 13, &AXIS))
            .x_desc(x.name)
            .y_desc(y.name)
            .x_labels(8)
            .y_labels(7)
            .x_label_formatter(&|placed| x.label(*placed))
            .y_label_formatter(&|placed| y.label(*placed))
            .draw()?;
        for one in series {
            let points = placed(one);
            let width = if one.strong { 4 } else { 2 };
            if joined {
                chart.draw_series(LineSeries::new(points.clone(), one.color.stroke_width(width)))?;
            }
            if !joined || points.len() < 12 {
                chart.draw_series(
                    points.into_iter().map(|point| Circle::new(point, width + 1, one.color.filled())),
                )?;
            }
        }
        legend(&root, series.iter().map(|one| (one.name.as_str(), one.color)))?;
        root.present()?;
    }
    Ok(in_current_color(&svg))
}

/// A bar chart with a number next to each bar. The longest bar fills the width.
pub fn bars(title: &str, show: fn(f64) -> String, bars: &[(String, RGBColor, f64)]) -> Result<String> {
    const ROW: i32 = 30;
    let longest = bars.iter().map(|bar| bar.2).fold(f64::MIN_POSITIVE, f64::max);
    let height = 50 + ROW as u32 * bars.len() as u32;
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (SIZE.0, height)).into_drawing_area();
        root.draw(&Text::new(title.to_owned(), (20, 14), ("sans-serif", 18, &AXIS).into_text_style(&root)))?;
        let text = ("sans-serif", 14, &AXIS).into_text_style(&root);
        for ((name, color, value), top) in bars.iter().zip((44..).step_by(ROW as usize)) {
            let end = 180 + (560.0 * value / longest).round().max(1.0) as i32;
            root.draw(&Text::new(name.clone(), (20, top + 3), text.clone()))?;
            root.draw(&Rectangle::new([(180, top), (end, top + ROW - 10)], color.filled()))?;
            root.draw(&Text::new(show(*value), (end + 8, top + 3), text.clone()))?;
        }
        root.present()?;
    }
    Ok(in_current_color(&svg))
}

fn legend<'a>(
    root: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    entries: impl Iterator<Item = (&'a str, RGBColor)>,
) -> Result<()> {
    let left = SIZE.0 as i32 - 190;
    for ((name, color), top) in entries.zip((50..).step_by(22)) {
        root.draw(&Rectangle::new([(left, top), (left + 16, top + 10)], color.filled()))?;
        root.draw(&Text::new(
            name.to_owned(),
            (left + 24, top - 2),
            ("sans-serif", 14, &AXIS).into_text_style(root),
        ))?;
    }
    Ok(())
}

/// The range of the values, with a margin.
fn range(values: impl Iterator<Item = f64>) -> std::ops::Range<f64> {
    let (least, most) = values.fold((f64::MAX, f64::MIN), |(least, most), x| (least.min(x), most.max(x)));
    if least > most {
        return 0.0..1.0;
    }
    let room = ((most - least) * 0.04).max(1e-3);
    least - room..most + room
}

fn in_current_color(svg: &str) -> String {
    svg.replace("#000000", "currentColor")
}

/// The SVG for a page, which sets its size.
pub fn inline(svg: &str) -> String {
    svg.replacen("<svg ", "<svg role=\"img\" ", 1)
}

/// The SVG for its own file. The color of its text follows the reader's color scheme.
pub fn standalone(svg: &str) -> String {
    let style = "<style>svg{color:#1f2328}@media(prefers-color-scheme:dark){svg{color:#e6edf3}}</style>";
    match svg.find('>') {
        Some(end) => format!("{}{style}{}", &svg[..=end], &svg[end + 1..]),
        None => svg.to_owned(),
    }
}
