//! Carries out what an end is asked, whoever asks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::load::{Service, answer, sink};
use crate::pktgen::{self, Generated};
use crate::programs;
use crate::side::{Program, Reply, Request};
use crate::{hello, load};

/// Takes a reply, when it is there.
pub(crate) type Tell = Box<dyn FnOnce(Reply) + Send>;

enum Up {
    Service(Service),
    Program(programs::Server),
}

struct Work {
    stop: Arc<AtomicBool>,
    /// Set before its reply is told: the next request is not refused for a thread that only has to end.
    over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

/// At most one request at a time, besides those to count and to stop. Everything ends when it is dropped.
#[derive(Default)]
pub(crate) struct Engine {
    up: Option<Up>,
    work: Option<Work>,
}

impl Engine {
    /// The reply may come later, from another thread. A stop comes before the reply to what it has stopped is of
    /// any interest, so both come.
    pub(crate) fn take(&mut self, request: Request, tell: Tell) {
        let failed = |why: String| Reply::Failed { why };
        match request {
            Request::Hello { .. } => tell(hello::hello().map_or_else(failed, Reply::Hello)),
            Request::Count { devs } => tell(hello::count(&devs).map_or_else(failed, Reply::Counted)),
            Request::Stop => tell(self.stop()),
            Request::Prove { .. } => tell(failed("a proof without a challenge".into())),
            request => match self.busy() {
                Some(what) => tell(failed(format!("{what} here: stop that first"))),
                None => self.begin(request, tell),
            },
        }
    }

    fn busy(&mut self) -> Option<&'static str> {
        if self.work.as_ref().is_some_and(|w| w.over.load(Ordering::Acquire)) {
            self.end_work();
        }
        match (&self.up, &self.work) {
            (None, None) => None,
            (Some(Up::Service(_)), _) => Some("something answers or counts"),
            (Some(Up::Program(_)), _) => Some("a program serves"),
            (None, Some(_)) => Some("a load runs"),
        }
    }

    fn begin(&mut self, request: Request, tell: Tell) {
        match request {
            Request::Answer(a) => self.listen(answer(&a).map(Up::Service), tell),
            Request::Sink(s) => self.listen(sink(&s).map(Up::Service), tell),
            Request::Program(Program::Serve { program, bind, port }) => {
                self.listen(programs::serve(&program, bind, port).map(Up::Program), tell);
            }
            Request::Load(l) => self.work(tell, Box::new(move |stop| load::run(&l, stop).map(Reply::Loaded))),
            Request::Pktgen(p) => self.work(tell, Box::new(move |stop| pktgen(&p, stop))),
            Request::Program(Program::Run { program, port, load }) => {
                self.work(tell, Box::new(move |stop| programs::run(&program, port, &load, stop).map(Reply::Loaded)));
            }
            // Taken care of by `take`.
            Request::Hello { .. } | Request::Prove { .. } | Request::Count { .. } | Request::Stop => {}
        }
    }

    fn listen(&mut self, up: Result<Up, String>, tell: Tell) {
        tell(match up {
            Ok(up) => {
                let at = match &up {
                    Up::Service(s) => s.at().to_vec(),
                    Up::Program(p) => vec![p.at()],
                };
                self.up = Some(up);
                Reply::Listening { at }
            }
            Err(why) => Reply::Failed { why },
        });
    }

    #[allow(clippy::type_complexity, reason = "one kind of work, written once")]
    fn work(&mut self, tell: Tell, run: Box<dyn FnOnce(&AtomicBool) -> Result<Reply, String> + Send>) {
        let (stop, over) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (stopped, done) = (stop.clone(), over.clone());
        let tell = Arc::new(std::sync::Mutex::new(Some(tell)));
        let by_thread = tell.clone();
        let take = |t: &std::sync::Mutex<Option<Tell>>| t.lock().ok().and_then(|mut t| t.take());
        let started = std::thread::Builder::new().name("work".into()).spawn(move || {
            let reply = run(&stopped).unwrap_or_else(|why| Reply::Failed { why });
            done.store(true, Ordering::Release);
            if let Some(tell) = take(&by_thread) {
                tell(reply);
            }
        });
        match started {
            Ok(thread) => self.work = Some(Work { stop, over, thread }),
            Err(e) => {
                if let Some(tell) = take(&tell) {
                    tell(Reply::Failed { why: format!("start a thread: {}", load::words(&e)) });
                }
            }
        }
    }

    fn stop(&mut self) -> Reply {
        self.end_work();
        match self.up.take() {
            None => Reply::Stopped { taken: Vec::new() },
            Some(Up::Service(s)) => Reply::Stopped { taken: s.stop() },
            Some(Up::Program(p)) => match p.stop() {
                Ok(()) => Reply::Stopped { taken: Vec::new() },
                Err(why) => Reply::Failed { why },
            },
        }
    }

    fn end_work(&mut self) {
        if let Some(w) = self.work.take() {
            w.stop.store(true, Ordering::Relaxed);
            // It has told its reply, or tells it now.
            let _ = w.thread.join();
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.end_work();
    }
}

fn pktgen(p: &crate::side::Pktgen, stop: &AtomicBool) -> Result<Reply, String> {
    let Generated { loads, counts } = pktgen::run(p, stop, &hello::count)?;
    Ok(Reply::Generated { loads, counts })
}
