//! Independent simulations on all cores, with results in the order of the questions.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

/// The number of threads that there is room for.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// `[job(0), …, job(n − 1)]`, worked out by as many threads as there are cores. `progress` hears,
/// on this thread, how many are done. Of several errors the first in order is returned; jobs behind one that has failed
/// need not begin.
///
/// Errors: those of the jobs.
pub fn parallel<T: Send, E: Send>(
    n: usize,
    mut progress: impl FnMut(usize),
    job: impl Fn(usize) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let (send, receive) = mpsc::channel();
    let next = AtomicUsize::new(0);
    // The calls before the first error all run: which error is the first depends on no thread's
    // speed.
    let end = AtomicUsize::new(n);
    let mut done: Vec<(usize, Result<T, E>)> = std::thread::scope(|scope| {
        for _ in 0..cores().min(n) {
            let (send, next, end, job) = (send.clone(), &next, &end, &job);
            scope.spawn(move || {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    if i >= end.load(Ordering::Relaxed) {
                        return;
                    }
                    let result = job(i);
                    if result.is_err() {
                        end.fetch_min(i, Ordering::Relaxed);
                    }
                    if send.send((i, result)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(send);
        let mut done = Vec::with_capacity(n);
        for result in receive {
            done.push(result);
            progress(done.len());
        }
        done
    });
    done.sort_by_key(|(i, _)| *i);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_and_the_first_error_counts() {
        let mut heard = Vec::new();
        let squares = parallel(100, |n| heard.push(n), |i| Ok::<_, ()>(i * i));
        assert_eq!(squares, Ok((0..100).map(|i| i * i).collect()));
        assert_eq!(heard, (1..=100).collect::<Vec<_>>());
        let odd = parallel(100, |_| (), |i| if i % 10 == 7 { Err(i) } else { Ok(()) });
        assert_eq!(odd, Err(7));
        let begun = AtomicUsize::new(0);
        let first = parallel(
            100_000,
            |_| (),
            |i| {
                begun.fetch_add(1, Ordering::Relaxed);
                if i == 0 {
                    return Err(());
                }
                std::thread::sleep(std::time::Duration::from_millis(1));
                Ok(())
            },
        );
        assert_eq!(first, Err(()));
        assert!(begun.into_inner() < 100_000, "what is behind an error need not begin");
        assert_eq!(parallel(0, |_| (), |_| Ok::<_, ()>(())), Ok(Vec::new()));
    }
}
