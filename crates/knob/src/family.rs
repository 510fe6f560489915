//! Families of settings, and the trait that describes the settings of a family.

use ringwise_model::{Fact, Nic, Snapshot};
use serde::{Deserialize, Serialize};

use crate::{
    Address, Match, NotProjected, Reaction, Setting, channels, coalesce, features, host, irq, irqbalance, napi, pause,
    rfs, rings, rps, rss, rules, xps,
};

/// Everything that is known about the settings of one family without access to a host. Each family implements it in its
/// own file. Passing a setting of another family is a bug of the caller; the answer is the same as for a setting that
/// does not exist.
pub(crate) trait Descriptor {
    /// Settings that the device may have now; some of them may still be absent.
    fn addresses(&self, _nic: &Nic) -> Vec<Address> {
        Vec::new()
    }

    /// Label for people: `eth1 interrupt CPU rx-3`.
    fn label(&self, address: &Address) -> String;

    /// The one file that holds the setting. `None` if the setting is written by a request, has several files, or has a
    /// file whose name contains a number that can change.
    fn file(&self, _address: &Address) -> Option<String> {
        None
    }

    /// The setting in this snapshot.
    fn live(&self, s: &Snapshot, address: &Address) -> Fact<Setting>;

    /// Compares the setting with this snapshot, where `got` is the value in the snapshot.
    fn compare(&self, s: &Snapshot, want: &Setting, got: &Fact<Setting>) -> Match {
        match got {
            Fact::Absent => Match::Gone,
            Fact::Unknown(u) => Match::Unknown(u.clone()),
            Fact::Known(got) => self.equivalent(s, want, got),
        }
    }

    /// Compares the value that was read with the requested value. Both have the same address.
    fn equivalent(&self, _s: &Snapshot, want: &Setting, got: &Setting) -> Match {
        if want == got { Match::Same } else { Match::Differs }
    }

    /// Writes the setting into the snapshot, with the value that the kernel would keep.
    fn project(&self, s: &mut Snapshot, setting: &Setting) -> Result<(), NotProjected>;

    /// The meaning of a failed write for this family. `None`: the meaning that applies to every setting.
    fn react(&self, _address: &Address, _errno: Option<i32>) -> Option<(Reaction, &'static str)> {
        None
    }

    /// See [`Address::invalidates`].
    fn invalidates(&self, _address: &Address) -> &'static [Family] {
        &[]
    }

    /// See [`Address::interrupts_traffic`].
    fn interrupts_traffic(&self, _address: &Address) -> bool {
        false
    }

    /// See [`Setting::value_text`].
    fn value_text(&self, setting: &Setting) -> String;

    /// See [`Setting::command`].
    fn command(&self, now: &Snapshot, setting: &Setting) -> Option<String>;
}

macro_rules! families {
    ($($(#[doc = $about:literal])* $name:ident $title:literal $descriptor:path;)*) => {
        /// A family of settings. Each crate has one file per family, with the same name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Family {
            $($(#[doc = $about])* $name,)*
        }

        impl Family {
            /// Every family.
            pub const ALL: &[Family] = &[$(Self::$name),*];

            /// Title for people: `interrupt CPU`, `XPS CPUs`, …
            pub fn title(self) -> &'static str {
                match self {
                    $(Self::$name => $title,)*
                }
            }

            pub(crate) fn descriptor(self) -> &'static dyn Descriptor {
                match self {
                    $(Self::$name => &$descriptor,)*
                }
            }
        }
    };
}

families! {
    /// Interrupts that irqbalance ignores.
    Rivals "irqbalance" irqbalance::RivalsFamily;
    /// Offloads and other features of the device.
    Features "features" features::FeaturesFamily;
    /// Channel counts.
    Channels "channels" channels::ChannelsFamily;
    /// Ring parameters.
    Rings "rings" rings::RingsFamily;
    /// Pause frames.
    Pause "pause frames" pause::PauseFamily;
    /// Interrupt moderation.
    Coalesce "moderation" coalesce::CoalesceFamily;
    /// Receive-side scaling.
    Rss "RSS" rss::RssFamily;
    /// Flow steering rules and the feature that they need.
    Rules "flow rules" rules::RulesFamily;
    /// Interrupt affinity.
    Irq "interrupt CPU" irq::IrqFamily;
    /// Transmit packet steering.
    Xps "XPS CPUs" xps::XpsFamily;
    /// Receive packet steering.
    Rps "RPS CPUs" rps::RpsFamily;
    /// Receive flow steering.
    Rfs "RFS entries" rfs::RfsFamily;
    /// NAPI polling and its threads.
    Napi "NAPI" napi::NapiFamily;
    /// Settings of the host.
    Host "host" host::HostFamily;
}
