//! Statistics as dictionaries.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use sidebloom::{LevelStats, Stats};

pub fn of_store<'py>(py: Python<'py>, stats: &Stats) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, count) in stats.counters() {
        dict.set_item(name, count)?;
    }
    dict.set_item("segments_quarantined", stats.segments_quarantined)?;
    dict.set_item("segments_open", stats.segments_open)?;
    dict.set_item("segment_bytes_mapped", stats.segment_bytes_mapped)?;
    dict.set_item("index_bytes", stats.index_bytes)?;
    dict.set_item("filters_mapped", stats.filters_mapped)?;
    dict.set_item("memtable_bytes", stats.memtable_bytes)?;
    dict.set_item("write_amplification", stats.write_amplification())?;
    dict.set_item("expected_false_positives", stats.expected_false_positives())?;
    dict.set_item("key_hash", stats.key_hash.name())?;
    dict.set_item("follower_age", stats.follower_age.map(|age| age.as_secs_f64()))?;
    let levels = PyList::empty(py);
    for level in &stats.levels {
        levels.append(of_level(py, level)?)?;
    }
    dict.set_item("levels", levels)?;
    Ok(dict)
}

fn of_level<'py>(py: Python<'py>, level: &LevelStats) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("level", level.level)?;
    dict.set_item("runs", level.runs)?;
    dict.set_item("segments", level.segments)?;
    dict.set_item("keys", level.keys)?;
    dict.set_item("tombstones", level.tombstones)?;
    dict.set_item("data_bytes", level.data_bytes)?;
    dict.set_item("filter_bytes", level.filter_bytes)?;
    dict.set_item("expected_fpp", level.expected_fpr)?;
    Ok(dict)
}
