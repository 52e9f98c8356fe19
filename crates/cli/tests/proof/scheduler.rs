//! Two plans, step by step: who goes next is decided from outside, so that every interleaving can be tried.

use document::backend::Answer;
use parking_lot::Mutex;
use patterns::gate::{Gate, Point};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

tokio::task_local! {
    /// Which of the plans this task runs; others pass freely.
    pub(crate) static WHO: usize;
}

/// How long a plan that was let go may take to its next step before it counts as waiting for another one.
const BLOCKED: Duration = Duration::from_millis(40);

/// The same for a plan that nobody is in the way of: only a busy machine is.
const ALONE: Duration = Duration::from_secs(60);

/// What a plan reports: it stands before a step and goes on when told so, or it is done.
enum Event {
    Stands(usize, String, oneshot::Sender<()>),
    Done(usize),
}

#[derive(Default)]
pub(crate) struct Scheduler {
    events: Mutex<Option<mpsc::UnboundedSender<Event>>>,
    /// Whether plans that could be sent at once are run step by step all the same.
    apart: bool,
}

impl Gate for Scheduler {
    fn pass<'a>(&'a self, point: Point<'a>) -> Answer<'a, ()> {
        Box::pin(async move {
            let Ok(who) = WHO.try_with(|who| *who) else { return Ok(()) };
            let Some(events) = self.events.lock().clone() else { return Ok(()) };
            let (go, may_go) = oneshot::channel();
            let name = format!("{point:?}").chars().take(60).collect();
            if events.send(Event::Stands(who, name, go)).is_ok() {
                // Nobody holds the other end any more: the schedule is over, go on freely.
                let _ = may_go.await;
            }
            Ok(())
        })
    }

    fn wants_answers(&self) -> bool {
        self.apart
    }
}

/// The steps that were taken, for people.
#[derive(Debug, Default)]
pub(crate) struct Trace(pub(crate) Vec<(usize, String)>);

impl Scheduler {
    pub(crate) fn step_by_step() -> Scheduler {
        Scheduler { apart: true, ..Scheduler::default() }
    }

    /// Runs plans 0, 1, … so that they take turns as `order` says, then freely.
    pub(crate) async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        plans: Vec<std::pin::Pin<Box<dyn Future<Output = T> + Send>>>,
        order: &[usize],
    ) -> (Vec<T>, Trace) {
        let (sender, mut events) = mpsc::unbounded_channel();
        *self.events.lock() = Some(sender.clone());
        let count = plans.len();
        let patience = if count == 1 { ALONE } else { BLOCKED };
        let tasks: Vec<_> = plans
            .into_iter()
            .enumerate()
            .map(|(who, plan)| {
                let sender = sender.clone();
                tokio::spawn(WHO.scope(who, async move {
                    let result = plan.await;
                    let _ = sender.send(Event::Done(who));
                    result
                }))
            })
            .collect();
        drop(sender);
        let mut standing: Vec<Option<(String, oneshot::Sender<()>)>> = (0..count).map(|_| None).collect();
        let mut done = vec![false; count];
        let mut trace = Trace::default();
        // A plan that waits for the other one takes no turns until it stands again.
        let mut waits = vec![false; count];
        for who in order {
            while let Ok(event) = events.try_recv() {
                take(event, &mut standing, &mut done);
            }
            let ready = standing[*who].is_some()
                || (!waits[*who] && settle(*who, patience, &mut events, &mut standing, &mut done).await);
            waits[*who] = !ready;
            if let Some((name, go)) = standing[*who].take() {
                trace.0.push((*who, name));
                let _ = go.send(());
                // It takes its step before the next one is let go.
                waits[*who] = !settle(*who, patience, &mut events, &mut standing, &mut done).await;
            }
        }
        *self.events.lock() = None;
        drop(standing);
        drop(events);
        let mut results = Vec::new();
        for task in tasks {
            results.push(task.await.unwrap());
        }
        (results, trace)
    }

    /// How many steps a plan has when nobody disturbs it.
    pub(crate) async fn steps(self: &Arc<Self>, plan: std::pin::Pin<Box<dyn Future<Output = ()> + Send>>) -> usize {
        let (_, trace) = self.run(vec![plan], &[0; 60]).await;
        trace.0.len()
    }
}

/// Waits until a plan stands before its next step or is done; not for ever: it may wait for another plan.
async fn settle(
    who: usize,
    patience: Duration,
    events: &mut mpsc::UnboundedReceiver<Event>,
    standing: &mut [Option<(String, oneshot::Sender<()>)>],
    done: &mut [bool],
) -> bool {
    while standing[who].is_none() && !done[who] {
        match tokio::time::timeout(patience, events.recv()).await {
            Ok(Some(event)) => take(event, standing, done),
            Ok(None) | Err(_) => return false,
        }
    }
    true
}

fn take(event: Event, standing: &mut [Option<(String, oneshot::Sender<()>)>], done: &mut [bool]) {
    match event {
        Event::Stands(who, name, go) => standing[who] = Some((name, go)),
        Event::Done(who) => done[who] = true,
    }
}

/// Every order of `first` steps of plan 0 and `second` of plan 1, if there are at most `most`; else so many of them at
/// random, always the same.
pub(crate) fn orders(first: usize, second: usize, most: usize) -> Vec<Vec<usize>> {
    let count = (1..=first).try_fold(1_usize, |count, k| count.checked_mul(second + k).map(|count| count / k));
    if count.is_some_and(|count| count <= most) {
        let mut all = Vec::new();
        extend(first, second, &mut Vec::new(), &mut all);
        return all;
    }
    let mut random = StdRng::seed_from_u64(7);
    let one: Vec<usize> = [vec![0; first], vec![1; second]].concat();
    (0..most)
        .map(|_| {
            let mut order = one.clone();
            order.shuffle(&mut random);
            order
        })
        .collect()
}

fn extend(zeros: usize, ones: usize, so_far: &mut Vec<usize>, all: &mut Vec<Vec<usize>>) {
    if zeros == 0 && ones == 0 {
        all.push(so_far.clone());
        return;
    }
    for (who, left) in [(0, zeros), (1, ones)] {
        if left > 0 {
            so_far.push(who);
            extend(zeros - usize::from(who == 0), ones - usize::from(who == 1), so_far, all);
            so_far.pop();
        }
    }
}
