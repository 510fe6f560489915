//! The first bytes of frames that an interface receives (packet(7)): sampled in the kernel, by receive queue, with limited
//! memory. Frames are momentary, and are never recorded.
//!
//! There is one socket for each receive queue in a fanout group by queue, and one for frames whose queue the driver does not
//! report: each frame arrives at only one of them. A filter of classic BPF drops sent frames and chooses the sample; the kernel
//! never copies what it drops. Formats: linux/if_packet.h, linux/filter.h, linux/virtio_net.h.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

pub use crate::captured_packet::CapturedPacket;
use crate::host::{Error, Result, SampleHeaders};
use crate::ifindex::ifindex;
use crate::many::{AT_ONCE, receive_many};
use crate::packet_socket;

/// Bytes before the frame in [`CapturedPacket::bytes`]: `struct virtio_net_hdr`, which identifies frames that the kernel has merged (GRO).
pub const VNET: usize = 10;
/// Space for each frame after that header.
const HEAD: usize = 128;
/// Number of sockets that a fanout group may have on every kernel; with more queues the frames are not separated by queue.
const MEMBERS: u32 = 256;
/// Kernel memory for waiting frames: of all sockets together, and the minimum for each.
const WAITING: u32 = 8 << 20;
const WAITING_EACH: u32 = 64 << 10;

const PACKET_STATISTICS: i32 = 6;
const PACKET_VNET_HDR: i32 = 15;
const PACKET_FANOUT: i32 = 18;
const FANOUT_QM: u32 = 5;
const FANOUT_UNIQUE_ID: u32 = 0x2000;
/// Since 5.15. Earlier kernels ignore it, and the filter does the same at a higher cost.
const FANOUT_IGNORE_OUTGOING: u32 = 0x4000;

/// Listens until it is dropped. Does not change the interface, and does not make it promiscuous.
pub struct PacketListener {
    what: String,
    sockets: Vec<OwnedFd>,
    /// Whether a socket's number in the group corresponds to a queue.
    by_queue: bool,
    buffer: Vec<u8>,
}

impl PacketListener {
    /// Listens on this interface with `queues` receive queues, and samples one frame in `one_in` (a power of two). Needs
    /// CAP_NET_RAW.
    pub fn open(dev: &str, queues: u32, one_in: u32) -> Result<Self> {
        let what = format!("listen on {dev}");
        let index = ifindex(&what, dev)?;
        let by_queue = (1..MEMBERS).contains(&queues);
        // A frame of queue q has the number q + 1, a frame without a queue 0; the group takes the remainder.
        let count = if by_queue { queues + 1 } else { 1 };
        let mut tap = Self { what, sockets: Vec::new(), by_queue, buffer: vec![0; AT_ONCE * (VNET + HEAD)] };
        let mut group = None;
        for _ in 0..count {
            let socket = tap.socket(index, (WAITING / count).max(WAITING_EACH))?;
            if by_queue {
                let flags = FANOUT_QM | FANOUT_IGNORE_OUTGOING;
                match group {
                    None => {
                        tap.set(&socket, libc::SOL_PACKET, PACKET_FANOUT, &((flags | FANOUT_UNIQUE_ID) << 16))?;
                        group = Some(tap.get::<u32>(&socket, PACKET_FANOUT)? & 0xffff);
                    }
                    Some(id) => tap.set(&socket, libc::SOL_PACKET, PACKET_FANOUT, &(flags << 16 | id))?,
                }
            }
            tap.sockets.push(socket);
        }
        tap.sample(one_in)?;
        Ok(tap)
    }

    /// Samples one frame in `one_in` at random from now on.
    pub fn sample(&mut self, one_in: u32) -> Result<()> {
        for socket in &self.sockets {
            self.filter(socket, Some(one_in))?;
        }
        Ok(())
    }

    /// A bound socket that receives nothing until the whole group exists: otherwise frames would go to the wrong member.
    fn socket(&self, index: u32, room: u32) -> Result<OwnedFd> {
        let socket =
            packet_socket::open().map_err(|_| self.failed("CAP_NET_RAW is needed to see packets (root has it)"))?;
        self.filter(&socket, None)?;
        self.set(&socket, libc::SOL_PACKET, PACKET_VNET_HDR, &1u32)?;
        // Without CAP_NET_ADMIN the limit of the system applies.
        if self.set(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &(room / 2)).is_err() {
            self.set(&socket, libc::SOL_SOCKET, libc::SO_RCVBUF, &(room / 2))?;
        }
        packet_socket::bind(&socket, index).map_err(|_| self.failed("bind"))?;
        Ok(socket)
    }

    /// `None`: drops every frame.
    fn filter(&self, socket: &OwnedFd, one_in: Option<u32>) -> Result<()> {
        const LD_W_ABS: u16 = 0x20;
        const AND: u16 = 0x54;
        const JEQ: u16 = 0x15;
        const RET: u16 = 0x06;
        /// `SKF_AD_OFF`, the base of the ancillary data.
        const AD: u32 = 0xffff_f000;
        const PKTTYPE: u32 = 4;
        const RANDOM: u32 = 56;
        const OUTGOING: u32 = 4;
        let op = |code, k, jt, jf| libc::sock_filter { code, jt, jf, k };
        let mut program = match one_in {
            None => vec![op(RET, 0, 0, 0)],
            Some(n) => vec![
                op(LD_W_ABS, AD + PKTTYPE, 0, 0),
                op(JEQ, OUTGOING, 3, 0),
                op(LD_W_ABS, AD + RANDOM, 0, 0),
                op(AND, n.next_power_of_two().wrapping_sub(1), 0, 0),
                op(JEQ, 0, 1, 0),
                op(RET, 0, 0, 0),
                op(RET, u32::MAX, 0, 0),
            ],
        };
        let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
        self.set(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
    }

    fn failed(&self, words: &str) -> Error {
        let errno = io::Error::last_os_error().raw_os_error().unwrap_or(0);
        Error { words: Some(words.into()), ..Error::errno(&self.what, errno) }
    }

    fn set<T>(&self, socket: &OwnedFd, level: i32, name: i32, value: &T) -> Result<()> {
        packet_socket::set_option(socket, level, name, value).map_err(|_| self.failed(&format!("socket option {name}")))
    }

    /// `T` must be made of plain integers.
    fn get<T: Default>(&self, socket: &OwnedFd, name: i32) -> Result<T> {
        let mut value = T::default();
        let mut size = size_of::<T>() as libc::socklen_t;
        // SAFETY: the kernel writes at most `size` bytes into `value`, where every bit pattern is a value.
        let rc = unsafe {
            libc::getsockopt(socket.as_raw_fd(), libc::SOL_PACKET, name, (&raw mut value).cast(), &raw mut size)
        };
        if rc < 0 { Err(self.failed(&format!("socket option {name}"))) } else { Ok(value) }
    }

    /// Calls `each` for all waiting frames. Does not wait for more.
    pub fn drain(&mut self, mut each: impl FnMut(CapturedPacket)) -> Result<()> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let done = (0..self.sockets.len()).try_for_each(|i| self.drain_one(i, &mut buffer, &mut each));
        self.buffer = buffer;
        done
    }

    fn drain_one(&self, i: usize, buffer: &mut [u8], each: &mut impl FnMut(CapturedPacket)) -> Result<()> {
        let mut lengths = [0; AT_ONCE];
        let queue = if self.by_queue { (i as u32).checked_sub(1) } else { None };
        // Senders may fill the socket as fast as it is emptied, so the rest is read the next time.
        for _ in 0..1024 {
            let n = match receive_many(&self.sockets[i], buffer, VNET + HEAD, &mut lengths) {
                Ok(n) => n,
                Err(e) => match e.raw_os_error() {
                    // EINVAL: a frame without a virtio_net_hdr; the kernel has dropped it.
                    Some(libc::EINTR | libc::EINVAL) => continue,
                    Some(libc::EAGAIN) => return Ok(()),
                    errno => {
                        return Err(Error {
                            words: Some("recvmmsg".into()),
                            ..Error::errno(&self.what, errno.unwrap_or(0))
                        });
                    }
                },
            };
            for (length, bytes) in lengths.iter().zip(buffer.chunks_exact(VNET + HEAD)).take(n) {
                let bytes = &bytes[..(*length).min(bytes.len())];
                each(CapturedPacket { queue, bytes, length: length.saturating_sub(VNET) });
            }
            if n < AT_ONCE {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Number of sampled frames that were dropped because the buffer was full, since the last call.
    pub fn lost(&mut self) -> Result<u64> {
        let mut sum = 0;
        for socket in &self.sockets {
            // struct tpacket_stats: packets, drops. Reading sets them to 0.
            sum += u64::from(self.get::<[u32; 2]>(socket, PACKET_STATISTICS)?[1]);
        }
        Ok(sum)
    }
}

impl SampleHeaders for PacketListener {
    fn drain(&mut self, each: &mut dyn FnMut(CapturedPacket)) -> Result<()> {
        Self::drain(self, each)
    }

    fn lost(&mut self) -> Result<u64> {
        Self::lost(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_that_is_not_there() {
        let e = PacketListener::open("no-such-dev", 2, 1).err().unwrap();
        assert!(e.is_absent(), "{e}");
    }
}
