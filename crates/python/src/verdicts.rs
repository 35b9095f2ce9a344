//! Answers for many keys as a numpy array of bool.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyByteArray;
use sidebloom::filter::Verdict;

/// A numpy array with one element per answer. It takes over the memory of the bytes that are copied here.
pub fn array<'py>(py: Python<'py>, answers: &[bool]) -> PyResult<Bound<'py, PyAny>> {
    static NUMPY: PyOnceLock<(Py<PyAny>, Py<PyAny>)> = PyOnceLock::new();
    let (from_buffer, dtype) = NUMPY.get_or_try_init(py, || -> PyResult<_> {
        let numpy = py.import("numpy")?;
        Ok((numpy.getattr("frombuffer")?.unbind(), numpy.getattr("bool_")?.unbind()))
    })?;
    let bytes = PyByteArray::new_with(py, answers.len(), |bytes| {
        bytes.iter_mut().zip(answers).for_each(|(byte, &answer)| *byte = u8::from(answer));
        Ok(())
    })?;
    from_buffer.bind(py).call1((bytes, dtype))
}

/// Appends whether each verdict is "maybe".
pub fn extend(answers: &mut Vec<bool>, verdicts: &[Verdict]) {
    answers.extend(verdicts.iter().map(|&verdict| verdict == Verdict::Maybe));
}
