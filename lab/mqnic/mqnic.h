/* SPDX-License-Identifier: GPL-2.0 */
/*
 * mqnic - a multi-queue Ethernet NIC for testing tuning tools, with real MSI-X vectors.
 *
 * It binds to a PCI function that has MSI-X and that nobody else drives: QEMU's nvme without a
 * disk. The vectors are real x86 vectors of that function, fired with irq_inject_interrupt(),
 * so affinity, effective affinity, migration and managed vectors are the kernel's own.
 * Devices are connected in pairs (0-1, 2-3, ...): what one sends, the other receives, through
 * its RSS table, its rules and its interrupt moderation.
 */
#ifndef MQNIC_H
#define MQNIC_H

#include <linux/ethtool.h>
#include <linux/hrtimer.h>
#include <linux/netdevice.h>
#include <linux/pci.h>
#include <linux/skbuff.h>
#include <linux/version.h>

#define SINCE(a, b)	(LINUX_VERSION_CODE >= KERNEL_VERSION(a, b, 0))

#define MQ_MAXQ		64
#define MQ_INDIR	128
#define MQ_KEY		40
#define MQ_RULES	64
#define MQ_DEVS		8
#define MQ_RING		512
#define MQ_RING_MIN	64
#define MQ_RING_MAX	8192
#define MQ_USECS_MAX	8191

/* How a device misbehaves on demand: bits of /sys/module/mqnic/parameters/quirk. */
#define MQ_IGNORE_COALESCE	BIT(0)	/*   1 accepted, not done */
#define MQ_CHANNELS_BUSY	BIT(1)	/*   2 set_channels: EBUSY */
#define MQ_CHANNELS_RESET	BIT(2)	/*   4 set_channels resets coalescing, RSS and rings */
#define MQ_ROUND_USECS		BIT(3)	/*   8 usecs are rounded down to a multiple of 8 */
#define MQ_ODD_QUEUES		BIT(4)	/*  16 per-queue coalescing: EOPNOTSUPP on odd queues */
#define MQ_NO_VECTORS		BIT(5)	/*  32 set_channels above `vlimit`: ENOSPC */
#define MQ_LOSE_AFFINITY	BIT(6)	/*  64 set_channels allocates the vectors anew, as igb does */
#define MQ_HANG			BIT(7)	/* 128 get_channels sleeps for `hang` seconds or until the quirk ends, under RTNL */
#define MQ_IGNORE_CHANNELS	BIT(8)	/* 256 set_channels accepted, not done */

struct mqnic;

struct mq_queue {
	struct napi_struct napi;
	struct mqnic *nic;
	struct sk_buff_head rx;
	struct hrtimer timer;
	int irq;
	char name[IFNAMSIZ + 16];
	/* moderation */
	u32 rx_usecs, rx_frames, tx_usecs, tx_frames, adaptive;
	/* counters */
	u64 rx_packets, rx_bytes, rx_drops, tx_packets, tx_bytes, irqs;
};

struct mqnic {
	struct net_device *dev;
	struct pci_dev *pdev;
	int idx, maxq, nq, up, managed;
	u32 rx_ring, tx_ring, rx_pause, tx_pause, resets;
	u32 fields[IPV6_FLOW + 1];
	u8 key[MQ_KEY];
	u32 indir[MQ_INDIR];
	struct ethtool_rx_flow_spec rule[MQ_RULES];
	u8 used[MQ_RULES];
	int rules, event_irq;
	char event_name[IFNAMSIZ + 8];
	struct mq_queue q[MQ_MAXQ];
};

extern struct mqnic *mq_devs[MQ_DEVS];
extern int mq_vlimit, mq_hang, mq_hanging;

/* main.c */
int mq_open(struct net_device *dev);
int mq_stop(struct net_device *dev);
int mq_alloc_vectors(struct mqnic *nic, int queues);
bool mq_quirk(const struct mqnic *nic, u32 bit);
void mq_default_rss(struct mqnic *nic);
void mq_default_coalesce(struct mqnic *nic);

/* data.c */
enum hrtimer_restart mq_timer(struct hrtimer *t);
int mq_poll(struct napi_struct *napi, int budget);
netdev_tx_t mq_xmit(struct sk_buff *skb, struct net_device *dev);

/* ethtool.c */
extern const struct ethtool_ops mq_ethtool_ops;

#endif
