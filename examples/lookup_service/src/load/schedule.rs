//! When each connection asks for what.

use super::store::{Mix, Request};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// The requests of one connection.
pub enum Queue {
    /// Each with the time at which it began to wait.
    Open(UnboundedReceiver<(Request, Instant)>),
    Closed(Mix),
}

/// Begins requests at random times, in turn on each connection.
pub struct Schedule {
    rate: u64,
    mix: Mix,
    connections: Vec<UnboundedSender<(Request, Instant)>>,
}

impl Schedule {
    /// A rate of 0 is a closed load.
    pub fn new(rate: u64, connections: usize, mix: Mix) -> (Self, Vec<Queue>) {
        if rate == 0 {
            let queues = (0..connections).map(|_| Queue::Closed(mix)).collect();
            return (Schedule { rate, mix, connections: Vec::new() }, queues);
        }
        let (connections, queues) = (0..connections).map(|_| unbounded_channel()).unzip();
        (Schedule { rate, mix, connections }, Vec::into_iter(queues).map(Queue::Open).collect())
    }

    /// Needs a thread of its own: timers of tokio are precise to a millisecond.
    pub fn run(self, duration: Duration) {
        let mut next = Instant::now();
        let end = next + duration;
        for connection in self.connections.iter().cycle() {
            // The gaps between independent requests are distributed exponentially.
            next += Duration::from_secs_f64(-(1.0 - fastrand::f64()).ln() / self.rate as f64);
            if next > end {
                return;
            }
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
            // Fails if the connection is lost, which it reports itself.
            _ = connection.send((self.mix.next(), Instant::now()));
        }
    }
}
