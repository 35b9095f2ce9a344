//! Passing rows without looking at each: in leads, or by the fronts of their keys.

use super::pass::Pass;
use super::{MergeCursor, MergeSource};
use crate::error::Result;

/// After this many rows without a lead, the next ones are passed by their fronts, …
const PASSED_SINGLY: u64 = 16;
/// … at most this many, after which there may be leads again.
const PASSED_BY_FRONTS: u64 = 4096;

impl MergeCursor {
    /// Sets whether the walk wants keys only. Values mean nothing then, until it is set to `false`.
    pub fn want_keys(&mut self, keys_only: bool) -> Result<()> {
        self.inputs.all.iter_mut().try_for_each(|source| source.want_keys(keys_only))?;
        let top = self.inputs.all.get(self.top).filter(|top| keys_only || top.has_values());
        // A group of keys may have had more rows ahead than the block has. In a lead, nothing loads values.
        self.lead = self.lead.min(top.map_or(0, MergeSource::ahead));
        Ok(())
    }

    /// Moves over `most` rows that a reader sees, or to the end if there are fewer. Counts them in `passed`,
    /// also before an error.
    pub fn pass_rows(&mut self, most: u64, passed: &mut u64) -> Result<()> {
        let end = passed.saturating_add(most);
        let mut singly = 0;
        while *passed < end {
            let mut rows = self.skip_puts(end - *passed);
            if rows == 0 {
                if !self.step_put() && !self.find_next()? {
                    break;
                }
                rows = 1;
            }
            singly = if rows > 1 { 0 } else { singly + 1 };
            *passed += rows;
            if singly == PASSED_SINGLY {
                self.pass_by_fronts(end, passed)?;
                singly = 0; // It may have stopped where each row has to be looked at.
            }
        }
        Ok(())
    }

    /// Moves over rows until `passed` is `end`, but stops early where their fronts are not enough.
    fn pass_by_fronts(&mut self, end: u64, passed: &mut u64) -> Result<()> {
        let Some(mut pass) = Pass::new(&mut self.inputs, self.order.iter().map(|place| place.input)) else {
            return Ok(());
        };
        let is_between = pass.run(PASSED_BY_FRONTS.min(end - *passed), passed)?;
        let inputs = pass.finish();
        self.order_all(inputs);
        let found = self.settle()?;
        if is_between && self.find_visible(found)? {
            *passed += 1;
        }
        Ok(())
    }
}
