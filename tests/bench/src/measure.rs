//! CPU time and memory of processes, as Linux counts them.
//!
//! The trap: what /proc/PID/stat says comes in ticks of 10 ms, and what schedstat says in nanoseconds
//! is that of threads that live. So the finer figure is taken, unless threads have ended meanwhile.

use std::fs;
use std::io;
use std::time::Duration;

/// What processes have used since they started.
#[derive(Clone, Copy, Debug, Default)]
pub struct Used {
    /// By the tick.
    pub user: Duration,
    /// By the tick.
    pub system: Duration,
    /// Of the threads that live, by the nanosecond.
    fine: Duration,
}

/// A tick of /proc/PID/stat: USER_HZ, which is 100 on every architecture that the kernel still has.
const TICK: Duration = Duration::from_millis(10);

impl Used {
    /// By these processes together.
    ///
    /// # Errors
    /// If one has ended.
    pub fn by(pids: &[u32]) -> io::Result<Self> {
        let mut used = Self::default();
        for pid in pids {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
            used.user += ticks(&stat, 11);
            used.system += ticks(&stat, 12);
            for task in fs::read_dir(format!("/proc/{pid}/task"))? {
                // Without schedstat, and of a thread that ends meanwhile, there is nothing.
                let text = fs::read_to_string(task?.path().join("schedstat")).unwrap_or_default();
                let ran = text
                    .split_whitespace()
                    .next()
                    .and_then(|ran| ran.parse().ok());
                used.fine += Duration::from_nanos(ran.unwrap_or(0));
            }
        }
        Ok(used)
    }

    /// What has been used since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
            fine: self.fine.saturating_sub(earlier.fine),
        }
    }

    /// User and system time together, by the finer of the two clocks that has all of it.
    pub fn cpu(self) -> Duration {
        let ticks = self.user + self.system;
        if self.fine + TICK * 5 < ticks {
            ticks
        } else {
            self.fine
        }
    }
}

/// CPU time of all children of this process that have ended, by the tick.
///
/// # Errors
/// If /proc is not there.
pub fn of_ended_children() -> io::Result<Duration> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    Ok(ticks(&stat, 13) + ticks(&stat, 14))
}

/// A time of /proc/PID/stat, by its place behind the name, which may have blanks in it.
fn ticks(stat: &str, at: usize) -> Duration {
    let behind_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let number = behind_name.split_whitespace().nth(at);
    let number = number.and_then(|number| number.parse::<u32>().ok());
    TICK * number.unwrap_or(0)
}

/// Resident memory of these processes together in bytes: now, and the most that each ever had. What
/// processes share counts for each.
///
/// # Errors
/// If one has ended.
pub fn resident(pids: &[u32]) -> io::Result<(u64, u64)> {
    let (mut now, mut peak) = (0, 0);
    for pid in pids {
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let bytes = |field| {
            let line = status.lines().find_map(|line| line.strip_prefix(field));
            let kib = line.and_then(|rest| rest.trim().strip_suffix(" kB"));
            kib.and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) * 1024
        };
        now += bytes("VmRSS:");
        peak += bytes("VmHWM:");
    }
    Ok((now, peak))
}

/// CPU time of the whole machine since it started.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    busy: Duration,
    all: Duration,
}

impl Machine {
    /// As of now.
    ///
    /// # Errors
    /// If /proc is not there.
    pub fn now() -> io::Result<Self> {
        let stat = fs::read_to_string("/proc/stat")?;
        let line = stat.lines().next().unwrap_or_default();
        let columns = line.split_whitespace().skip(1).take(8);
        // user, nice, system, idle, iowait, irq, softirq, steal
        let columns: Vec<u64> = columns.filter_map(|ticks| ticks.parse().ok()).collect();
        let time = |ticks: u64| Duration::from_millis(ticks * 10);
        let all: u64 = columns.iter().sum();
        let idle: u64 = columns.iter().skip(3).take(2).sum();
        Ok(Self {
            busy: time(all - idle),
            all: time(all),
        })
    }

    /// The share (0 to 1) of the machine that others took since `earlier` than those who used `ours`.
    pub fn others_since(self, earlier: Self, ours: Duration) -> f64 {
        let busy = self.busy.saturating_sub(earlier.busy);
        let all = self.all.saturating_sub(earlier.all).max(TICK);
        busy.saturating_sub(ours).as_secs_f64() / all.as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn what_this_process_burns_is_counted_as_its_own() {
        let me = [std::process::id()];
        let (before, machine) = (Used::by(&me).unwrap(), Machine::now().unwrap());
        let start = Instant::now();
        while Used::by(&me).unwrap().since(before).cpu() < Duration::from_millis(100) {
            assert!(
                start.elapsed() < Duration::from_secs(30),
                "no CPU time is counted"
            );
        }
        let used = Used::by(&me).unwrap().since(before);
        let ticks = used.user + used.system;
        assert!(
            ticks.abs_diff(used.cpu()) < Duration::from_millis(60),
            "{used:?}"
        );
        let others = Machine::now().unwrap().others_since(machine, used.cpu());
        assert!((0.0..=1.0).contains(&others), "{others}");
        let (now, peak) = resident(&me).unwrap();
        assert!(0 < now && now <= peak);
    }
}
