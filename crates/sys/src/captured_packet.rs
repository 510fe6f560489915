//! What a listener reads of one frame.

/// A sampled frame.
#[derive(Debug, Clone, Copy)]
pub struct CapturedPacket<'a> {
    /// Receive queue; `None`: the driver does not report it.
    pub queue: Option<u32>,
    /// `virtio_net_hdr` and the first bytes of the frame.
    pub bytes: &'a [u8],
    /// Length of the whole frame in bytes.
    pub length: usize,
}
