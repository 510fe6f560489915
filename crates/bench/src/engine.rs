//! Executes the requests of an end, for the local and the remote caller.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::error::{Activity, RequestError, ThreadError};
use crate::load::{LoadService, answer, sink};
use crate::pktgen::{self, Generated};
use crate::programs;
use crate::side::{ExternalProgram, Reply, Request};
use crate::{hello, load};

/// Receives the reply when it is ready, or the reason for the failure.
pub(crate) type ReplyCallback = Box<dyn FnOnce(Result<Reply, RequestError>) + Send>;

enum Up {
    Service(LoadService),
    Program(programs::Server),
}

struct Work {
    stop: Arc<AtomicBool>,
    /// Set before the reply is sent, so that the next request is not refused because of a thread that only has to end.
    over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

/// At most one request at a time, besides counting and stopping. Dropping this ends everything.
#[derive(Default)]
pub(crate) struct Engine {
    up: Option<Up>,
    work: Option<Work>,
}

impl Engine {
    /// The reply may come later, from another thread. A stop is answered before the stopped request, and both replies
    /// are sent.
    pub(crate) fn take(&mut self, request: Request, tell: ReplyCallback) {
        match request {
            Request::Hello { .. } => tell(hello::hello().map(Reply::Hello).map_err(RequestError::from)),
            Request::Count { devs } => tell(hello::count(&devs).map(Reply::Counted).map_err(RequestError::from)),
            Request::Stop => tell(self.stop()),
            Request::Prove { .. } => tell(Err(RequestError::UnexpectedProof)),
            request => match self.busy() {
                Some(activity) => tell(Err(RequestError::Busy(activity))),
                None => self.begin(request, tell),
            },
        }
    }

    fn busy(&mut self) -> Option<Activity> {
        if self.work.as_ref().is_some_and(|w| w.over.load(Ordering::Acquire)) {
            self.end_work();
        }
        match (&self.up, &self.work) {
            (None, None) => None,
            (Some(Up::Service(_)), _) => Some(Activity::Answering),
            (Some(Up::Program(_)), _) => Some(Activity::Serving),
            (None, Some(_)) => Some(Activity::Loading),
        }
    }

    fn begin(&mut self, request: Request, tell: ReplyCallback) {
        match request {
            Request::Answer(a) => self.listen(answer(&a).map(Up::Service).map_err(RequestError::from), tell),
            Request::Sink(s) => self.listen(sink(&s).map(Up::Service).map_err(RequestError::from), tell),
            Request::Program(ExternalProgram::Serve { program, bind, port }) => {
                let server = programs::serve(&program, bind, port);
                self.listen(server.map(Up::Program).map_err(RequestError::from), tell);
            }
            Request::Load(l) => self.work(tell, Box::new(move |stop| Ok(Reply::Loaded(load::run(&l, stop)?)))),
            Request::Pktgen(p) => self.work(tell, Box::new(move |stop| pktgen(&p, stop))),
            Request::Program(ExternalProgram::Run { program, port, load }) => {
                let run = move |stop: &AtomicBool| Ok(Reply::Loaded(programs::run(&program, port, &load, stop)?));
                self.work(tell, Box::new(run));
            }
            // `take` handles these.
            Request::Hello { .. } | Request::Prove { .. } | Request::Count { .. } | Request::Stop => {}
        }
    }

    fn listen(&mut self, up: Result<Up, RequestError>, tell: ReplyCallback) {
        tell(up.map(|up| {
            let at = match &up {
                Up::Service(s) => s.at().to_vec(),
                Up::Program(p) => vec![p.at()],
            };
            self.up = Some(up);
            Reply::Listening { at }
        }));
    }

    #[allow(clippy::type_complexity, reason = "one kind of work, written once")]
    fn work(&mut self, tell: ReplyCallback, run: Box<dyn FnOnce(&AtomicBool) -> Result<Reply, RequestError> + Send>) {
        let (stop, over) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (stopped, done) = (stop.clone(), over.clone());
        let tell = Arc::new(std::sync::Mutex::new(Some(tell)));
        let by_thread = tell.clone();
        let take = |t: &std::sync::Mutex<Option<ReplyCallback>>| t.lock().ok().and_then(|mut t| t.take());
        let started = std::thread::Builder::new().name("work".into()).spawn(move || {
            let reply = run(&stopped);
            done.store(true, Ordering::Release);
            if let Some(tell) = take(&by_thread) {
                tell(reply);
            }
        });
        match started {
            Ok(thread) => self.work = Some(Work { stop, over, thread }),
            Err(e) => {
                if let Some(tell) = take(&tell) {
                    tell(Err(ThreadError::not_started(e).into()));
                }
            }
        }
    }

    fn stop(&mut self) -> Result<Reply, RequestError> {
        self.end_work();
        let taken = match self.up.take() {
            None => Vec::new(),
            Some(Up::Service(s)) => s.stop(),
            Some(Up::Program(p)) => {
                p.stop()?;
                Vec::new()
            }
        };
        Ok(Reply::Stopped { taken })
    }

    fn end_work(&mut self) {
        if let Some(w) = self.work.take() {
            w.stop.store(true, Ordering::Relaxed);
            // The thread has sent its reply, or sends it now.
            let _ = w.thread.join();
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.end_work();
    }
}

fn pktgen(p: &crate::side::Pktgen, stop: &AtomicBool) -> Result<Reply, RequestError> {
    let Generated { loads, counts } = pktgen::run(p, stop, &hello::count)?;
    Ok(Reply::Generated { loads, counts })
}
