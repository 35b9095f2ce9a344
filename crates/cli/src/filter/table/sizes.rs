//! The sizes that the formulas give, without measuring anything.

use crate::context::{Context, Failure, Outcome};
use crate::human;
use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;
use sidebloom::filter::shape::{exact_fpr, optimal_bits, optimal_hashes};
use std::io::Write;

#[derive(Serialize)]
struct Size {
    fpr: f64,
    keys: u64,
    bits: u64,
    k: u32,
    bits_per_key: f64,
    exact_fpr: f64,
}

/// Prints bits and k for rates of 1 % to 0.0001 % and 1 K to 1 M keys.
pub fn print(cx: &Context) -> Result<Outcome, Failure> {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED.with_rounded_corners());
    table.set_header(["FPR", "keys", "bits (m)", "bytes", "k", "bits/key", "FPR, exactly"]);
    for fpr in [0.01, 0.001, 0.0001, 0.00001, 0.000001] {
        for keys in [1_000, 10_000, 100_000, 1_000_000] {
            let bits = optimal_bits(keys, fpr)?;
            let k = optimal_hashes(bits, keys);
            let exact_fpr = exact_fpr(keys, bits, k);
            let bits_per_key = bits as f64 / keys as f64;
            if cx.json {
                cx.print_json(&Size { fpr, keys, bits, k, bits_per_key, exact_fpr })?;
                continue;
            }
            table.add_row([
                human::percent(fpr, 1.0),
                human::count(keys),
                human::count(bits),
                human::bytes(bits as f64 / 8.0),
                k.to_string(),
                format!("{bits_per_key:.2}"),
                human::percent(exact_fpr, 1.0),
            ]);
        }
    }
    if !cx.json {
        table.column_iter_mut().skip(1).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
        writeln!(cx.out(), "{table}")?;
    }
    Ok(Outcome::Found)
}
