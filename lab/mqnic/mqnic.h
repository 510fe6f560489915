/* SPDX-License-Identifier: GPL-2.0 */
/*
 * mqnic - a multi-queue Ethernet NIC for testing tuning tools, with real MSI-X vectors.
 *
 * It binds to a PCI function that has MSI-X and no other driver: QEMU's nvme without a
 * disk. The vectors are real x86 vectors of that function, fired with irq_inject_interrupt(),
 * so affinity, effective affinity, migration and managed vectors are the kernel's own.
 * Devices are connected in pairs (0-1, 2-3, ...): what one sends, the other receives, through
 * its rules, its accelerated RFS, its RSS table and its interrupt moderation.
 */
#ifndef MQNIC_H
#define MQNIC_H

#include <linux/ethtool.h>
#include <linux/hrtimer.h>
#include <linux/if_ether.h>
#include <linux/netdevice.h>
#include <linux/pci.h>
#include <linux/skbuff.h>
#include <linux/version.h>
#include <linux/workqueue.h>

#define SINCE(a, b)	(LINUX_VERSION_CODE >= KERNEL_VERSION(a, b, 0))

#define MQ_MAXQ		64
#define MQ_INDIR	128
#define MQ_KEY		40
#define MQ_CONTEXTS	16	/* including that of the device, which is 0 */
#define MQ_RULES	64
#define MQ_FILTERS	256
#define MQ_DEVS		8
#define MQ_RING		512
#define MQ_RING_MIN	64
#define MQ_RING_MAX	8192
#define MQ_RING_CLAMP	4096
#define MQ_USECS_MAX	8191

#ifndef RXH_XFRM_NO_CHANGE
#define RXH_XFRM_NO_CHANGE	0xff
#endif

/* Faults of a device on demand: bits of /sys/module/mqnic/parameters/quirk. */
#define MQ_IGNORE_COALESCE	BIT(0)	/*   1 accepted, not done */
#define MQ_CHANNELS_BUSY	BIT(1)	/*   2 set_channels: EBUSY */
#define MQ_CHANNELS_RESET	BIT(2)	/*   4 set_channels resets coalescing, RSS and rings */
#define MQ_ROUND_USECS		BIT(3)	/*   8 usecs are rounded down to a multiple of 8 */
#define MQ_ODD_QUEUES		BIT(4)	/*  16 per-queue coalescing: EOPNOTSUPP on odd queues */
#define MQ_NO_VECTORS		BIT(5)	/*  32 set_channels above `vlimit`: ENOSPC */
#define MQ_LOSE_AFFINITY	BIT(6)	/*  64 set_channels allocates new vectors, as igb does */
#define MQ_HANG			BIT(7)	/* 128 get_channels sleeps for `hang` seconds or until the quirk ends, under RTNL */
#define MQ_IGNORE_CHANNELS	BIT(8)	/* 256 set_channels accepted, not done */
#define MQ_NO_TABLE		BIT(9)	/*     512 setting an RSS table: EOPNOTSUPP */
#define MQ_NO_KEY		BIT(10)	/*    1024 setting a hash key: EOPNOTSUPP */
#define MQ_FEW_CONTEXTS		BIT(11)	/*    2048 more RSS contexts than `climit`: ENOSPC */
#define MQ_NO_RULES		BIT(12)	/*    4096 a new rule: EOPNOTSUPP */
#define MQ_FEW_RULES		BIT(13)	/*    8192 more rules than `rlimit`: ENOSPC */
#define MQ_WIDE_MASKS		BIT(14)	/*   16384 masks of ports and VLAN become full, values lose what is not masked */
#define MQ_CLAMP_RINGS		BIT(15)	/*   32768 rings: rounded down to a power of two, 64 to 4096 instead of refused */
#define MQ_CLAMP_USECS		BIT(16)	/*   65536 usecs above 8191 become 8191 instead of refused */
#define MQ_IGNORE_FEATURES	BIT(17)	/*  131072 features do not change */
#define MQ_IGNORE_FIELDS	BIT(18)	/*  262144 hash fields: accepted, not done */
#define MQ_OWN_LOCATION		BIT(19)	/*  524288 the driver chooses a rule's location (any, first, last) */
#define MQ_LOSE_RULES		BIT(20)	/* 1048576 set_channels drops rules and RSS contexts */
#define MQ_ANY_QUEUE		BIT(21)	/* 2097152 a rule may name a queue that is not in use: packets that match it are lost */
#define MQ_NO_HASH		BIT(22)	/* 4194304 packets are steered by their hash, but it is not reported */
#define MQ_TABLE_RESETS		BIT(23)	/* 8388608 setting an RSS table or key sets up the device again, as bnxt does */
#define MQ_OLD_TABLE		BIT(24)	/* 16777216 packets go by the RSS table from before the quirk, whatever is set */

struct mqnic;
struct mq_queue;

/* An interrupt and its NAPI instance: for a receive queue, a transmit queue or both. */
struct mq_vec {
	struct napi_struct napi;
	struct mqnic *nic;
	struct mq_queue *rx, *tx;
	int irq;
	char name[IFNAMSIZ + 24];
};

/* Receive queue i and transmit queue i. */
struct mq_queue {
	struct mqnic *nic;
	struct mq_vec *rx_vec, *tx_vec;
	struct sk_buff_head rx;
	struct hrtimer rx_timer, tx_timer;
	atomic_t tx_pending;	/* sent, without a completion interrupt yet */
	atomic_t tx_asked;	/* the interrupt has been requested */
	/* moderation */
	u32 rx_usecs, rx_frames, tx_usecs, tx_frames, adaptive_rx, adaptive_tx;
	/* counters */
	u64 rx_packets, rx_bytes, rx_drops, tx_packets, tx_bytes, irqs, tx_irqs;
};

/* An RSS context; context 0 is that of the device. */
struct mq_rss {
	u8 used, xfrm;
	u8 key[MQ_KEY];
	u32 indir[MQ_INDIR];
	u32 old[MQ_INDIR];	/* as last set without MQ_OLD_TABLE */
	u32 fields[IPV6_FLOW + 1];
};

/* The fields of a packet that the NIC uses. */
struct mq_flow {
	const struct ethhdr *eth;
	__be16 proto;		/* behind the VLAN tags */
	__be16 vlan_tci, vlan_etype;
	u8 tagged, l4proto, tos, has_ports;
	u32 type;		/* for the hash fields; 0: not IP */
	__be32 src[4], dst[4];	/* IPv4 uses the first word */
	__be16 ports[2];	/* the first four bytes of L4 */
	__be32 spi;
	int payload;		/* offset of L4's payload; 0: none */
};

/* A flow that is steered by accelerated RFS. */
struct mq_filter {
	u8 used, l4proto;
	__be16 proto, ports[2];
	__be32 src[4], dst[4];
	u16 queue;
	u32 flow_id;
};

struct mqnic {
	struct net_device *dev;
	struct pci_dev *pdev;
	int idx, maxq, up, managed;
	int combined, rx_only, tx_only, nrx, ntx;
	u32 rx_ring, tx_ring, rx_pause, tx_pause, resets;
	u32 cqe_rx, cqe_tx, cqe_frames, cqe_nsecs;	/* stored, without any effect */
	struct mq_rss rss[MQ_CONTEXTS];
	struct ethtool_rx_flow_spec rule[MQ_RULES];
	u32 rule_context[MQ_RULES];
	u64 rule_hits[MQ_RULES];
	u8 used[MQ_RULES];
	int rules, event_irq;
	char event_name[IFNAMSIZ + 8];
	/* accelerated RFS */
	spinlock_t filter_lock;
	struct mq_filter filter[MQ_FILTERS];
	struct delayed_work expire;
	int filters;
	u64 arfs_added, arfs_expired, arfs_hits;
	struct mq_vec v[MQ_MAXQ];
	struct mq_queue q[MQ_MAXQ];
};

extern struct mqnic *mq_devs[MQ_DEVS];
extern int mq_vlimit, mq_hang, mq_hanging, mq_climit, mq_rlimit, mq_separate;

/* cost.c; labcost is the lab's cost model (lab/cost), which may be absent. */
void labcost_poll(struct net_device *dev, unsigned int ns);
extern const struct kernel_param_ops mq_poll_ns_ops;
void mq_charge(struct net_device *dev);
void mq_charge_exit(void);

/* main.c */
int mq_open(struct net_device *dev);
int mq_stop(struct net_device *dev);
int mq_alloc_vectors(struct mqnic *nic, int queues);
bool mq_quirk(const struct mqnic *nic, u32 bit);

/* data.c */
enum hrtimer_restart mq_rx_timer(struct hrtimer *t);
enum hrtimer_restart mq_tx_timer(struct hrtimer *t);
int mq_poll(struct napi_struct *napi, int budget);
netdev_tx_t mq_xmit(struct sk_buff *skb, struct net_device *dev);

/* flow.c */
void mq_parse(const struct sk_buff *skb, struct mq_flow *f);
bool mq_matches(const struct ethtool_rx_flow_spec *r, const struct sk_buff *skb,
		const struct mq_flow *f);

/* rss.c */
void mq_default_rss(struct mqnic *nic);
u32 mq_hash(const struct mq_rss *rss, const struct mq_flow *f, bool *l4);
bool mq_context_needs(const struct mqnic *nic, int nrx);
void mq_lose_contexts(struct mqnic *nic);
u32 mq_indir_size(struct net_device *dev);
u32 mq_key_size(struct net_device *dev);
#if SINCE(6, 8)
int mq_get_rxfh(struct net_device *dev, struct ethtool_rxfh_param *r);
int mq_set_rxfh(struct net_device *dev, struct ethtool_rxfh_param *r,
		struct netlink_ext_ack *extack);
#else
int mq_get_rxfh(struct net_device *dev, u32 *indir, u8 *key, u8 *hfunc);
int mq_set_rxfh(struct net_device *dev, const u32 *indir, const u8 *key, const u8 hfunc);
int mq_get_context(struct net_device *dev, u32 *indir, u8 *key, u8 *hfunc, u32 id);
int mq_set_context(struct net_device *dev, const u32 *indir, const u8 *key, const u8 hfunc,
		   u32 *id, bool delete);
#endif
#if SINCE(6, 12)
int mq_create_context(struct net_device *dev, struct ethtool_rxfh_context *ctx,
		      const struct ethtool_rxfh_param *r, struct netlink_ext_ack *extack);
int mq_modify_context(struct net_device *dev, struct ethtool_rxfh_context *ctx,
		      const struct ethtool_rxfh_param *r, struct netlink_ext_ack *extack);
int mq_remove_context(struct net_device *dev, struct ethtool_rxfh_context *ctx, u32 id,
		      struct netlink_ext_ack *extack);
#endif
#if SINCE(6, 17)
int mq_get_fields(struct net_device *dev, struct ethtool_rxfh_fields *f);
int mq_set_fields(struct net_device *dev, const struct ethtool_rxfh_fields *f,
		  struct netlink_ext_ack *extack);
#else
int mq_read_fields(struct mqnic *nic, u32 id, u32 type, u64 *data);
int mq_write_fields(struct mqnic *nic, u32 id, u32 type, u64 data);
#endif

/* rules.c */
int mq_find_rule(const struct mqnic *nic, const struct sk_buff *skb, const struct mq_flow *f);
bool mq_rule_needs(const struct mqnic *nic, int nrx);
bool mq_context_has_rule(const struct mqnic *nic, u32 id);
void mq_drop_rules(struct mqnic *nic);
int mq_get_rxnfc(struct net_device *dev, struct ethtool_rxnfc *c, u32 *locs);
int mq_set_rxnfc(struct net_device *dev, struct ethtool_rxnfc *c);

/* steer.c */
void mq_steer_init(struct mqnic *nic);
void mq_steer_stop(struct mqnic *nic);
void mq_drop_filters(struct mqnic *nic);
int mq_find_filter(struct mqnic *nic, const struct mq_flow *f);
int mq_map_irqs(struct mqnic *nic);
void mq_unmap_irqs(struct mqnic *nic);
#ifdef CONFIG_RFS_ACCEL
int mq_flow_steer(struct net_device *dev, const struct sk_buff *skb, u16 queue, u32 flow_id);
#endif

/* channels.c */
void mq_get_channels(struct net_device *dev, struct ethtool_channels *c);
int mq_set_channels(struct net_device *dev, struct ethtool_channels *c);

/* ethtool.c */
void mq_default_coalesce(struct mqnic *nic);
int mq_show_moderation(const struct mqnic *nic, char *out, size_t size);
int mq_init_profiles(struct net_device *dev);
void mq_free_profiles(struct net_device *dev);
extern const struct ethtool_ops mq_ethtool_ops;

#endif
