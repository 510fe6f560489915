//! This process as one end of a test.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use crate::engine::Engine;
use crate::error::RequestError;
use crate::side::{Error, Reply, Request, RequestRefusal, Side};

/// All of its work ends when it is dropped. It belongs to the network namespace of the calling thread.
pub struct LocalSide {
    name: String,
    engine: Engine,
    id: u64,
    tell: Sender<(u64, Result<Reply, RequestError>)>,
    told: Receiver<(u64, Result<Reply, RequestError>)>,
}

impl LocalSide {
    /// `name`: for messages, as [`Side::name`] returns it.
    pub fn new(name: &str) -> Self {
        let (tell, told) = mpsc::channel();
        Self { name: name.into(), engine: Engine::default(), id: 0, tell, told }
    }
}

impl Side for LocalSide {
    fn name(&self) -> &str {
        &self.name
    }

    fn start(&mut self, request: Request) -> Result<(), Error> {
        self.id += 1;
        let (id, tell) = (self.id, self.tell.clone());
        // The receiver is gone when this side was dropped.
        self.engine.take(request, Box::new(move |reply| drop(tell.send((id, reply)))));
        Ok(())
    }

    fn finish(&mut self, bound: Duration) -> Result<Reply, Error> {
        let until = Instant::now() + bound;
        loop {
            match self.told.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok((id, _)) if id != self.id => {}
                Ok((_, Ok(reply))) => return Ok(reply),
                Ok((_, Err(e))) => {
                    return Err(Error::Refused { side: self.name.clone(), why: RequestRefusal::Here(Box::new(e)) });
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    return Err(Error::Late { side: self.name.clone(), seconds: bound.as_secs() });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::side::{LoadGroup, LoadGroups, Responder};

    const SOON: Duration = Duration::from_secs(20);

    #[test]
    fn two_sides_measure_and_one_thing_runs_at_a_time() {
        let (mut a, mut b) = (LocalSide::new("a"), LocalSide::new("b"));
        let answer = Responder { bind: Some("127.0.0.1".parse().unwrap()), threads: 2, ..Responder::default() };
        let Reply::Listening { at } = b.ask(Request::Answer(answer.clone()), SOON).unwrap() else { panic!() };
        assert_eq!(at.len(), 2);
        let again = b.ask(Request::Answer(answer), SOON).unwrap_err().to_string();
        assert!(again.starts_with("b: a task that answers"), "{again}");
        let group = LoadGroup { size_bytes: 64, threads: 2, to: at, ..LoadGroup::default() };
        let load = LoadGroups { groups: vec![group], time: Duration::from_millis(50), ..LoadGroups::default() };
        a.start(Request::Load(load.clone())).unwrap();
        assert!(
            matches!(b.ask(Request::Count { devs: vec!["lo".into()] }, SOON), Ok(Reply::Counted(c)) if c.len() == 1)
        );
        let Reply::Loaded(results) = a.finish(SOON).unwrap() else { panic!() };
        assert!(results[0].done_per_s > 0.0);
        // The next request follows at once and is stopped; its reply must not be taken for that of another request.
        let long = LoadGroups { time: Duration::from_secs(3000), ..load };
        a.start(Request::Load(long.clone())).unwrap();
        assert!(matches!(a.finish(Duration::from_millis(10)), Err(Error::Late { .. })));
        a.start(Request::Load(long)).unwrap();
        let busy = a.finish(SOON).unwrap_err().to_string();
        assert!(busy.contains("a load is running"), "{busy}");
        assert_eq!(a.ask(Request::Stop, SOON).unwrap(), Reply::Stopped { taken: vec![] });
        let Reply::Stopped { taken } = b.ask(Request::Stop, SOON).unwrap() else { panic!() };
        assert!(taken.iter().all(|t| t.packets > 0) && taken.len() == 2, "{taken:?}");
    }
}
