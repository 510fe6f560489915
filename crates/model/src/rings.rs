//! Ring parameters of a device, and the one table of them. A new parameter needs a field in [`Rings`] and in
//! [`RingValues`], and an entry in [`RingPart::ALL`]. The configuration key with its check, printing, merging, export
//! and schema, the comparison, projection, commands and the pages that show it are made from the table.

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use crate::Count;

/// Ring parameters (`ethtool -g`). `None`: not reported by the driver.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rings {
    /// Descriptors of each receive ring.
    pub rx: Option<Count>,
    /// Descriptors of each transmit ring.
    pub tx: Option<Count>,
    /// Bytes of each receive buffer. No maximum is reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rx_buf_len: Option<u32>,
    /// Headers and data of received TCP segments go to separate buffers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp_data_split: Option<bool>,
    /// Bytes up to which a frame is not split, since Linux 6.14.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hds_thresh: Option<Count>,
    /// Bytes of a completion queue entry, since Linux 5.18. No maximum is reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cqe_size: Option<u32>,
    /// The driver writes descriptors of sent packets straight to the device, since Linux 5.19. `None`: it does not, or
    /// has no such mode; the kernel does not distinguish these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tx_push: Option<bool>,
    /// The driver writes descriptors of the receive ring straight to the device (ionic), since Linux 6.3. `None`: as for
    /// `tx_push`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rx_push: Option<bool>,
    /// Bytes of a sent packet that are pushed with its descriptor, since Linux 6.4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tx_push_buf_len: Option<Count>,
}

/// Values of ring parameters that are requested or were found. `None`: not changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingValues {
    /// Descriptors of each receive ring.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rx: Option<u32>,
    /// Descriptors of each transmit ring.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tx: Option<u32>,
    /// Bytes of each receive buffer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rx_buf_len: Option<u32>,
    /// Headers and data of received TCP segments go to separate buffers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp_data_split: Option<bool>,
    /// Bytes up to which a frame is not split.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hds_thresh: Option<u32>,
    /// Bytes of a completion queue entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cqe_size: Option<u32>,
    /// The driver writes descriptors of sent packets straight to the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tx_push: Option<bool>,
    /// The driver writes descriptors of the receive ring straight to the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rx_push: Option<bool>,
    /// Bytes of a sent packet that are pushed with its descriptor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tx_push_buf_len: Option<u32>,
}

/// The type of a ring parameter's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RingKind {
    /// Descriptors of a ring, at least 1. Drivers round it up.
    Size,
    /// A number of at least this, which drivers keep unchanged.
    Number(u32),
    /// 0 is off and 1 is on.
    Switch,
    /// As a switch, but reported only while it is on: the kernel sends off also for drivers without the mode.
    Mode,
}

/// One ring parameter, and where its value is.
#[derive(Debug)]
pub struct RingPart {
    /// Key in the configuration file, below `rings`, and in JSON.
    pub key: &'static str,
    /// Word of `ethtool -G`.
    pub word: &'static str,
    /// Name in the output of `ethtool -g`.
    pub printed: &'static str,
    /// What its value is.
    pub kind: RingKind,
    /// For the reference of the configuration file.
    pub about: &'static str,
    value: fn(&RingValues) -> Option<u32>,
    set: fn(&mut RingValues, Option<u32>),
    found: fn(&Rings) -> Option<Count>,
    store: fn(&mut Rings, Option<Count>),
}

impl RingPart {
    /// Every ring parameter, in the order in which they are shown.
    pub const ALL: &[RingPart] = &[
        RingPart {
            key: "rx",
            word: "rx",
            printed: "RX",
            kind: RingKind::Size,
            about: "descriptors of a receive ring",
            value: |v| v.rx,
            set: |v, n| v.rx = n,
            found: |r| r.rx,
            store: |r, c| r.rx = c,
        },
        RingPart {
            key: "tx",
            word: "tx",
            printed: "TX",
            kind: RingKind::Size,
            about: "descriptors of a transmit ring",
            value: |v| v.tx,
            set: |v, n| v.tx = n,
            found: |r| r.tx,
            store: |r, c| r.tx = c,
        },
        RingPart {
            key: "rx_buf_len",
            word: "rx-buf-len",
            printed: "RX Buf Len",
            kind: RingKind::Number(1),
            about: "size of a receive buffer in bytes",
            value: |v| v.rx_buf_len,
            set: |v, n| v.rx_buf_len = n,
            found: |r| r.rx_buf_len.map(|now| Count { now, max: 0 }),
            store: |r, c| r.rx_buf_len = c.map(|c| c.now),
        },
        RingPart {
            key: "tcp_data_split",
            word: "tcp-data-split",
            printed: "TCP data split",
            kind: RingKind::Switch,
            about: "put headers and data of received TCP segments into separate buffers",
            value: |v| v.tcp_data_split.map(u32::from),
            set: |v, n| v.tcp_data_split = n.map(|n| n != 0),
            found: |r| r.tcp_data_split.map(|on| Count { now: u32::from(on), max: 0 }),
            store: |r, c| r.tcp_data_split = c.map(|c| c.now != 0),
        },
        RingPart {
            key: "hds_thresh",
            word: "hds-thresh",
            printed: "HDS thresh",
            kind: RingKind::Number(0),
            about: "size in bytes up to which frames are not split, since Linux 6.14",
            value: |v| v.hds_thresh,
            set: |v, n| v.hds_thresh = n,
            found: |r| r.hds_thresh,
            store: |r, c| r.hds_thresh = c,
        },
        RingPart {
            key: "cqe_size",
            word: "cqe-size",
            printed: "CQE Size",
            kind: RingKind::Number(1),
            about: "size of a completion queue entry in bytes, since Linux 5.18",
            value: |v| v.cqe_size,
            set: |v, n| v.cqe_size = n,
            found: |r| r.cqe_size.map(|now| Count { now, max: 0 }),
            store: |r, c| r.cqe_size = c.map(|c| c.now),
        },
        RingPart {
            key: "tx_push",
            word: "tx-push",
            printed: "TX Push",
            kind: RingKind::Mode,
            about: "write descriptors of sent packets straight to the device, since Linux 5.19",
            value: |v| v.tx_push.map(u32::from),
            set: |v, n| v.tx_push = n.map(|n| n != 0),
            found: |r| r.tx_push.map(|on| Count { now: u32::from(on), max: 0 }),
            store: |r, c| r.tx_push = c.map(|c| c.now != 0),
        },
        RingPart {
            key: "rx_push",
            word: "rx-push",
            printed: "RX Push",
            kind: RingKind::Mode,
            about: "write descriptors of the receive ring straight to the device, since Linux 6.3",
            value: |v| v.rx_push.map(u32::from),
            set: |v, n| v.rx_push = n.map(|n| n != 0),
            found: |r| r.rx_push.map(|on| Count { now: u32::from(on), max: 0 }),
            store: |r, c| r.rx_push = c.map(|c| c.now != 0),
        },
        RingPart {
            key: "tx_push_buf_len",
            word: "tx-push-buf-len",
            printed: "TX push buff len",
            kind: RingKind::Number(0),
            about: "bytes of a sent packet that are pushed with its descriptor, since Linux 6.4",
            value: |v| v.tx_push_buf_len,
            set: |v, n| v.tx_push_buf_len = n,
            found: |r| r.tx_push_buf_len,
            store: |r, c| r.tx_push_buf_len = c,
        },
    ];

    /// The parameter with this key.
    pub fn of(key: &str) -> Option<&'static RingPart> {
        Self::ALL.iter().find(|p| p.key == key)
    }

    /// The device's value and the largest value that the driver accepts; 0 if no maximum is reported.
    pub fn found(&self, rings: &Rings) -> Option<Count> {
        (self.found)(rings)
    }

    /// Stores what a device has.
    pub fn store(&self, rings: &mut Rings, count: Option<Count>) {
        (self.store)(rings, count);
    }

    /// The value in a set of values.
    pub fn value(&self, values: &RingValues) -> Option<u32> {
        (self.value)(values)
    }

    /// Sets the value in a set of values.
    pub fn set(&self, values: &mut RingValues, value: Option<u32>) {
        (self.set)(values, value);
    }

    /// A value as ethtool writes it: `512`, `on`.
    pub fn text(&self, value: u32) -> String {
        match self.kind {
            RingKind::Switch | RingKind::Mode => if value == 0 { "off" } else { "on" }.into(),
            RingKind::Size | RingKind::Number(_) => value.to_string(),
        }
    }

    /// A value as the configuration file writes it: `512`, `true`.
    pub fn toml(&self, value: u32) -> String {
        match self.kind {
            RingKind::Switch | RingKind::Mode => (value != 0).to_string(),
            RingKind::Size | RingKind::Number(_) => value.to_string(),
        }
    }
}

impl Rings {
    /// A device that reports only the sizes of its rings.
    pub fn sizes(rx: Option<Count>, tx: Option<Count>) -> Self {
        Self { rx, tx, ..Self::default() }
    }

    /// The values in use.
    pub fn now(&self) -> RingValues {
        RingValues::each(|p| p.found(self).map(|c| c.now))
    }
}

impl RingValues {
    /// Only the sizes of rings.
    pub fn sizes(rx: Option<u32>, tx: Option<u32>) -> Self {
        Self { rx, tx, ..Self::default() }
    }

    /// What `value` answers for each parameter.
    pub fn each(mut value: impl FnMut(&'static RingPart) -> Option<u32>) -> Self {
        let mut out = Self::default();
        for part in RingPart::ALL {
            part.set(&mut out, value(part));
        }
        out
    }

    /// Parameters that have a value.
    pub fn iter(&self) -> impl Iterator<Item = (&'static RingPart, u32)> + '_ {
        RingPart::ALL.iter().filter_map(|p| Some((p, p.value(self)?)))
    }

    /// Whether no parameter has a value.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// These values, completed with those of `other`.
    pub fn or(&self, other: &Self) -> Self {
        Self::each(|p| p.value(self).or(p.value(other)))
    }

    /// Only the parameters that have a value in `other`.
    pub fn only(&self, other: &Self) -> Self {
        Self::each(|p| p.value(self).filter(|_| p.value(other).is_some()))
    }

    /// In the form of wishes: sizes are written even if they are `null`, as every version has done.
    pub(crate) fn as_wish<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(None)?;
        for part in RingPart::ALL {
            match (part.kind, part.value(self)) {
                (RingKind::Size, value) => map.serialize_entry(part.key, &value)?,
                (_, None) => {}
                (RingKind::Switch | RingKind::Mode, Some(value)) => map.serialize_entry(part.key, &(value != 0))?,
                (RingKind::Number(_), Some(value)) => map.serialize_entry(part.key, &value)?,
            }
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Knob, Wish};

    /// Without this test, a parameter whose functions access another parameter's field would be compared and written as
    /// that.
    #[test]
    fn each_parameter_has_a_field_of_its_own() {
        for (i, part) in RingPart::ALL.iter().enumerate() {
            let mut values = RingValues::default();
            part.set(&mut values, Some(1));
            assert_eq!(values.iter().map(|(p, n)| (p.key, n)).collect::<Vec<_>>(), [(part.key, 1)]);
            let json = serde_json::to_value(values).unwrap();
            let value = if matches!(part.kind, RingKind::Switch | RingKind::Mode) {
                true.into()
            } else {
                serde_json::Value::from(1)
            };
            assert_eq!(json.as_object().unwrap().get(part.key), Some(&value), "the key is the name of the field");
            let mut rings = Rings::default();
            part.store(&mut rings, Some(Count { now: 1, max: 1 }));
            assert_eq!(rings.now(), values);
            assert!(RingPart::ALL[..i].iter().all(|p| p.key != part.key && p.word != part.word));
        }
    }

    #[test]
    fn wishes_are_written_as_before() {
        let knob = Knob::Rings { values: RingValues::sizes(Some(512), None) };
        let wish =
            Wish { dev: Some("eth0".into()), knob, by: crate::ConfiguredBy::InEffect, params_by: Default::default() };
        let text = r#"{"dev":"eth0","wish":"rings","rx":512,"tx":null,"by":{"kind":"in_effect"}}"#;
        assert_eq!(serde_json::to_string(&wish).unwrap(), text);
        assert_eq!(serde_json::from_str::<Wish>(text).unwrap(), wish);
    }
}
