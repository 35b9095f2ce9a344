//! `versus model`: how far parity filters are from the bound, computed, and measured on built filters.
//!
//! The model is exact in the number of keys of a line (Poisson) and in the number of equations that hold
//! before the first contradiction; it uses averages for the keys' places within a line, and for the number of
//! checks that hold. See `docs/parity.md`.

use crate::error::Result;
use crate::format::{number, percent};
use crate::keys::mix;
use crate::report::plot::{self, PlotAxis, PlotSeries};
use crate::table::{aligned, headed};
use plotters::style::RGBColor;
use sidebloom::filter::{BuiltFilter, FilterSpec, Width};
use std::path::PathBuf;

/// Draw how far parity filters are from the bound, as computed and as measured
#[derive(clap::Args)]
pub struct Args {
    /// The plot to write, as SVG
    #[arg(long, value_name = "FILE", default_value = "docs/parity.svg")]
    out: PathBuf,
    /// Keys of the measured filters
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1000..=1_000_000_000))]
    keys: u64,
}

/// A layout: lanes, rows, spare bits, most null vectors used, and quota step of lines that bump, in checks.
struct Layout {
    width: Width,
    lanes: u32,
    rows: u32,
    spare: u32,
    null_vectors: u32,
    step: f64,
    color: RGBColor,
}

const LAYOUTS: [Layout; 7] = [
    Layout::new(Width::Seven, 13, 0.125, RGBColor(150, 90, 200)),
    Layout::new(Width::Eight, 12, 0.125, RGBColor(30, 120, 220)),
    Layout::new(Width::Nine, 10, 0.125, RGBColor(20, 160, 160)),
    Layout::new(Width::Ten, 9, 0.1875, RGBColor(40, 160, 60)),
    Layout::new(Width::Eleven, 8, 0.1875, RGBColor(150, 160, 30)),
    Layout::new(Width::Twelve, 8, 0.25, RGBColor(220, 140, 20)),
    Layout::new(Width::Sixteen, 3, 0.5, RGBColor(210, 60, 50)),
];

impl Layout {
    const fn new(width: Width, null_vectors: u32, step: f64, color: RGBColor) -> Self {
        let (lanes, bits) = (width.number(), 504);
        let (rows, spare) = (bits / lanes, bits % lanes);
        Layout { width, lanes, rows, spare, null_vectors, step, color }
    }

    /// The probability that the first `n` equations hold: each is independent of the earlier ones, or fits.
    fn hold(&self, n: u32) -> f64 {
        let by_chance = 0.5f64.powi(self.lanes as i32);
        (0..n).map(|i| 1.0 - 0.5f64.powi((self.rows.saturating_sub(i)) as i32) * (1.0 - by_chance)).product()
    }

    /// Large filters with λ keys per line.
    fn model(&self, keys_per_line: f64, checks: bool) -> Cost {
        let (mut fpr, mut bumped_keys, mut bumped_probes) = (0.0, 0.0, 0.0);
        let mut share = (-keys_per_line).exp();
        for keys in 0..4 * self.rows {
            if keys > 0 {
                share *= keys_per_line / f64::from(keys);
            }
            for kept in 0..=keys.min(self.rows + 2) {
                let here = self.hold(kept) - if kept < keys { self.hold(kept + 1) } else { 0.0 };
                let bumped = if kept < keys { f64::from(keys - kept) / f64::from(keys) } else { 0.0 };
                // A threshold bumps half a step too much on average.
                let bumped = (bumped + if kept < keys { 1.0 / 256.0 } else { 0.0 }).min(1.0);
                let weight = share * here;
                bumped_probes += weight * bumped;
                bumped_keys += weight * bumped * f64::from(keys);
                let quota =
                    if checks { self.quota(f64::from(keys) * (1.0 - bumped), kept < keys) } else { 0.0 };
                let rate = 0.5f64.powf(quota.floor()) * (1.0 - quota.fract() / 2.0);
                fpr += weight * (1.0 - bumped) * 0.5f64.powi(self.lanes as i32) * rate;
            }
        }
        // The next levels are like the first.
        let bits = 512.0 / keys_per_line / (1.0 - bumped_keys / keys_per_line);
        Cost { bits, fpr: fpr / (1.0 - bumped_probes), lines: 1.0 / (1.0 - bumped_probes) }
    }

    /// Checks per key of a line with this many keys. The first contradiction costs a random system 1.6 rows.
    fn quota(&self, kept: f64, bumps: bool) -> f64 {
        let free = (f64::from(self.rows) - kept).clamp(0.0, f64::from(self.null_vectors));
        let checks = (f64::from(self.lanes) * free + f64::from(self.spare) - 1.6).max(0.0);
        let (step, most) = if bumps { (self.step, 3.0 * self.step) } else { (1.0 / 16.0, 63.0 / 16.0) };
        if kept < 1.0 { most } else { ((checks / kept / step).floor() * step).min(most) }
    }
}

/// What a filter costs.
struct Cost {
    bits: f64,
    fpr: f64,
    lines: f64,
}

impl Cost {
    fn over_bound(&self) -> f64 {
        self.bits / -self.fpr.log2()
    }
}

impl Args {
    /// Prints the table, and writes the plot.
    pub fn run(self) -> Result<()> {
        let keys: Vec<u64> = (0..self.keys).map(mix).collect();
        let head = [
            "width",
            "bits/key",
            "false positives",
            "÷ bound",
            "lines/probe",
            "÷ bound, model",
            "without checks",
        ];
        let mut rows = Vec::new();
        let mut series = Vec::new();
        for layout in &LAYOUTS {
            let filter = BuiltFilter::build(FilterSpec::Parity { width: layout.width }, &keys)?;
            let built = Cost {
                bits: 512.0 * filter.lines.len() as f64 / self.keys as f64,
                fpr: filter.expected_fpr(),
                lines: filter.lines_per_probe(),
            };
            let curve = |checks: bool| {
                let costs = (60..=112).map(move |percent| {
                    layout.model(f64::from(layout.rows) * f64::from(percent) / 100.0, checks)
                });
                costs.filter(|cost| (1.015..1.08).contains(&cost.lines)).collect::<Vec<Cost>>()
            };
            let at = |curve: &[Cost]| {
                let near = |cost: &&Cost| (cost.lines - built.lines).abs();
                curve.iter().min_by(|a, b| near(a).total_cmp(&near(b))).map_or(f64::NAN, Cost::over_bound)
            };
            let (with, without) = (curve(true), curve(false));
            rows.push(vec![
                layout.width.number().to_string(),
                number(built.bits),
                percent(built.fpr),
                format!("{:.3}", built.over_bound()),
                format!("{:.3}", built.lines),
                format!("{:.3}", at(&with)),
                format!("{:.3}", at(&without)),
            ]);
            let points = |costs: &[Cost]| costs.iter().map(|cost| (cost.lines, cost.over_bound())).collect();
            let mut add = |name, strong, points| {
                series.push(PlotSeries { name, color: layout.color, strong, points });
            };
            if matches!(layout.width, Width::Eight | Width::Twelve | Width::Sixteen) {
                let width = layout.width.number();
                add(format!("width {width}"), true, points(&with));
                add(format!("width {width}, without checks"), false, points(&without));
                add(format!("width {width}, built (dot)"), false, points(&[built]));
            }
        }
        println!("{}", aligned(&headed(head, rows)));
        let axis = |name| PlotAxis { name, log: false, show: Box::new(|x| format!("{x:.2}")) };
        let title = "Size against lines per probe: bits per key ÷ log2(1 / false-positive rate)";
        let svg = plot::lines(title, &axis("lines per probe"), &axis("÷ bound"), true, &series)?;
        std::fs::write(&self.out, svg)?;
        println!("plot: {}", self.out.display());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_says_what_built_filters_measure() {
        let keys: Vec<u64> = (0..200_000).map(mix).collect();
        for layout in &LAYOUTS {
            let filter = BuiltFilter::build(FilterSpec::Parity { width: layout.width }, &keys).unwrap();
            let bits = 512.0 * filter.lines.len() as f64 / 200_000.0;
            // The keys per line for this size: more keys take fewer bits.
            let (mut few, mut many) = (0.6 * f64::from(layout.rows), 1.1 * f64::from(layout.rows));
            for _ in 0..12 {
                let middle = f64::midpoint(few, many);
                let half = if layout.model(middle, true).bits > bits { &mut few } else { &mut many };
                *half = middle;
            }
            let best = many;
            let model = layout.model(best, true);
            let found = bits / -filter.expected_fpr().log2();
            assert!((model.over_bound() / found - 1.0).abs() < 0.01, "{:?}: {found}", layout.width);
            assert!(
                (model.lines - filter.lines_per_probe()).abs() < 0.003,
                "{:?}: {}",
                layout.width,
                model.lines
            );
        }
    }
}
