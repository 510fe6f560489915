// SPDX-License-Identifier: GPL-2.0
/* What ethtool can read and set, and the faults on demand (mqnic.h). */
#include <linux/log2.h>
#include <linux/rtnetlink.h>

#include "mqnic.h"
#ifdef ETHTOOL_COALESCE_RX_PROFILE
#include <linux/dim.h>
#endif

/* The extra arguments that kernels have added to these calls. */
#if SINCE(5, 17)
#define RING_ARGS , struct kernel_ethtool_ringparam *kr, struct netlink_ext_ack *extack
#define RING_EXTACK(msg) NL_SET_ERR_MSG(extack, msg)
#else
#define RING_ARGS
#define RING_EXTACK(msg)
#endif
#if SINCE(5, 15)
#define COALESCE_ARGS , struct kernel_ethtool_coalesce *kc, struct netlink_ext_ack *extack
#define COALESCE_EXTACK(msg) NL_SET_ERR_MSG(extack, msg)
#else
#define COALESCE_ARGS
#define COALESCE_EXTACK(msg)
#endif

static void mq_get_drvinfo(struct net_device *dev, struct ethtool_drvinfo *info)
{
	struct mqnic *nic = netdev_priv(dev);

	strscpy(info->driver, "mqnic", sizeof(info->driver));
	strscpy(info->fw_version, "1.0", sizeof(info->fw_version));
	strscpy(info->bus_info, pci_name(nic->pdev), sizeof(info->bus_info));
}

void mq_default_coalesce(struct mqnic *nic)
{
	int i;

	nic->cqe_rx = 0;
	nic->cqe_tx = 0;
	nic->cqe_frames = 4;
	nic->cqe_nsecs = 1000;
	for (i = 0; i < nic->maxq; i++) {
		struct mq_queue *q = &nic->q[i];

		q->rx_usecs = 50;
		q->rx_frames = 64;
		q->tx_usecs = 50;
		q->tx_frames = 64;
		q->adaptive_rx = 0;
		q->adaptive_tx = 0;
	}
}

static void mq_get_ringparam(struct net_device *dev, struct ethtool_ringparam *r RING_ARGS)
{
	struct mqnic *nic = netdev_priv(dev);

	r->rx_max_pending = MQ_RING_MAX;
	r->tx_max_pending = MQ_RING_MAX;
	r->rx_pending = nic->rx_ring;
	r->tx_pending = nic->tx_ring;
}

static u32 mq_ring_size(const struct mqnic *nic, u32 n)
{
	if (mq_quirk(nic, MQ_CLAMP_RINGS))
		return clamp_t(u32, n ? rounddown_pow_of_two(n) : 0, MQ_RING_MIN, MQ_RING_CLAMP);
	return roundup_pow_of_two(n);
}

static int mq_set_ringparam(struct net_device *dev, struct ethtool_ringparam *r RING_ARGS)
{
	struct mqnic *nic = netdev_priv(dev);
	int running = netif_running(dev);

	if (!mq_quirk(nic, MQ_CLAMP_RINGS) &&
	    (r->rx_pending < MQ_RING_MIN || r->tx_pending < MQ_RING_MIN)) {
		RING_EXTACK("ring size below 64");
		return -EINVAL;
	}
	if (running)
		mq_stop(dev);
	nic->rx_ring = mq_ring_size(nic, r->rx_pending);
	nic->tx_ring = mq_ring_size(nic, r->tx_pending);
	return running ? mq_open(dev) : 0;
}

static int mq_get_queue_coalesce(struct net_device *dev, u32 i, struct ethtool_coalesce *c)
{
	struct mqnic *nic = netdev_priv(dev);
	struct mq_queue *q;

	if (i >= max(nic->nrx, nic->ntx))
		return -EINVAL;
	if ((i & 1) && mq_quirk(nic, MQ_ODD_QUEUES))
		return -EOPNOTSUPP;
	q = &nic->q[i];
	c->rx_coalesce_usecs = q->rx_usecs;
	c->rx_max_coalesced_frames = q->rx_frames;
	c->tx_coalesce_usecs = q->tx_usecs;
	c->tx_max_coalesced_frames = q->tx_frames;
	c->use_adaptive_rx_coalesce = q->adaptive_rx;
	c->use_adaptive_tx_coalesce = q->adaptive_tx;
	return 0;
}

static bool mq_usecs_ok(const struct mqnic *nic, const struct ethtool_coalesce *c)
{
	return mq_quirk(nic, MQ_CLAMP_USECS) || (c->rx_coalesce_usecs <= MQ_USECS_MAX &&
						 c->tx_coalesce_usecs <= MQ_USECS_MAX);
}

static int mq_set_queue_coalesce(struct net_device *dev, u32 i, struct ethtool_coalesce *c)
{
	struct mqnic *nic = netdev_priv(dev);
	u32 mask = mq_quirk(nic, MQ_ROUND_USECS) ? ~7u : ~0u;
	struct mq_queue *q;

	if (i >= max(nic->nrx, nic->ntx))
		return -EINVAL;
	if (!mq_usecs_ok(nic, c))
		return -EINVAL;
	if ((i & 1) && mq_quirk(nic, MQ_ODD_QUEUES))
		return -EOPNOTSUPP;
	if (mq_quirk(nic, MQ_IGNORE_COALESCE))
		return 0;
	q = &nic->q[i];
	q->rx_usecs = min_t(u32, c->rx_coalesce_usecs, MQ_USECS_MAX) & mask;
	q->rx_frames = c->rx_max_coalesced_frames;
	q->tx_usecs = min_t(u32, c->tx_coalesce_usecs, MQ_USECS_MAX) & mask;
	q->tx_frames = c->tx_max_coalesced_frames;
	q->adaptive_rx = c->use_adaptive_rx_coalesce;
	q->adaptive_tx = c->use_adaptive_tx_coalesce;
	return 0;
}

/* Parameters that exist for the device but not for a queue, and only in later kernels. */
#ifdef ETHTOOL_COALESCE_USE_CQE
static void mq_get_cqe(struct net_device *dev, struct kernel_ethtool_coalesce *kc)
{
	struct mqnic *nic = netdev_priv(dev);

	kc->use_cqe_mode_rx = nic->cqe_rx;
	kc->use_cqe_mode_tx = nic->cqe_tx;
#ifdef ETHTOOL_COALESCE_RX_CQE_FRAMES
	kc->rx_cqe_frames = nic->cqe_frames;
	kc->rx_cqe_nsecs = nic->cqe_nsecs;
#endif
}

static void mq_set_cqe(struct net_device *dev, const struct kernel_ethtool_coalesce *kc)
{
	struct mqnic *nic = netdev_priv(dev);

	if (mq_quirk(nic, MQ_IGNORE_COALESCE))
		return;
	nic->cqe_rx = kc->use_cqe_mode_rx;
	nic->cqe_tx = kc->use_cqe_mode_tx;
#ifdef ETHTOOL_COALESCE_RX_CQE_FRAMES
	nic->cqe_frames = kc->rx_cqe_frames;
	nic->cqe_nsecs = kc->rx_cqe_nsecs;
#endif
}
#endif

/* Profiles of adaptive moderation: the kernel stores them, this driver does not use them. */
int mq_init_profiles(struct net_device *dev)
{
#ifdef ETHTOOL_COALESCE_RX_PROFILE
	return net_dim_init_irq_moder(dev, DIM_PROFILE_RX | DIM_PROFILE_TX,
				      DIM_COALESCE_USEC | DIM_COALESCE_PKTS,
				      DIM_CQ_PERIOD_MODE_START_FROM_EQE,
				      DIM_CQ_PERIOD_MODE_START_FROM_EQE, NULL, NULL);
#else
	return 0;
#endif
}

void mq_free_profiles(struct net_device *dev)
{
#ifdef ETHTOOL_COALESCE_RX_PROFILE
	rtnl_lock();
	net_dim_free_irq_moder(dev);
	rtnl_unlock();
#endif
}

#ifdef ETHTOOL_COALESCE_RX_PROFILE
static int mq_show_profile(const char *name, const struct dim_cq_moder *p, char *out, size_t size)
{
	int i, n = scnprintf(out, size, " %s", name);

	for (i = 0; p && i < NET_DIM_PARAMS_NUM_PROFILES; i++)
		n += scnprintf(out + n, size - n, " %u/%u", p[i].usec, p[i].pkts);
	return n;
}
#endif

/* For users whose ethtool does not support these. */
int mq_show_moderation(const struct mqnic *nic, char *out, size_t size)
{
	int n = scnprintf(out, size, "%s cqe %u %u frames %u nsecs %u", nic->dev->name, nic->cqe_rx,
			  nic->cqe_tx, nic->cqe_frames, nic->cqe_nsecs);

#ifdef ETHTOOL_COALESCE_RX_PROFILE
	rcu_read_lock();
	n += mq_show_profile("rx", rcu_dereference(nic->dev->irq_moder->rx_profile), out + n,
			     size - n);
	n += mq_show_profile("tx", rcu_dereference(nic->dev->irq_moder->tx_profile), out + n,
			     size - n);
	rcu_read_unlock();
#endif
	return n + scnprintf(out + n, size - n, "\n");
}

static int mq_get_coalesce(struct net_device *dev, struct ethtool_coalesce *c COALESCE_ARGS)
{
#ifdef ETHTOOL_COALESCE_USE_CQE
	mq_get_cqe(dev, kc);
#endif
	return mq_get_queue_coalesce(dev, 0, c);
}

static int mq_set_coalesce(struct net_device *dev, struct ethtool_coalesce *c COALESCE_ARGS)
{
	struct mqnic *nic = netdev_priv(dev);
	int i, err = 0;

	if (!mq_usecs_ok(nic, c)) {
		COALESCE_EXTACK("usecs above 8191");
		return -ERANGE;
	}
	for (i = 0; i < max(nic->nrx, nic->ntx) && !err; i++)
		err = mq_set_queue_coalesce(dev, i, c);
#ifdef ETHTOOL_COALESCE_USE_CQE
	if (!err)
		mq_set_cqe(dev, kc);
#endif
	return err;
}

#if SINCE(6, 19)
static u32 mq_get_rx_ring_count(struct net_device *dev)
{
	struct mqnic *nic = netdev_priv(dev);

	return nic->nrx;
}
#endif

static void mq_get_pauseparam(struct net_device *dev, struct ethtool_pauseparam *p)
{
	struct mqnic *nic = netdev_priv(dev);

	p->autoneg = 0;
	p->rx_pause = nic->rx_pause;
	p->tx_pause = nic->tx_pause;
}

static int mq_set_pauseparam(struct net_device *dev, struct ethtool_pauseparam *p)
{
	struct mqnic *nic = netdev_priv(dev);

	if (p->autoneg)
		return -EINVAL;
	nic->rx_pause = !!p->rx_pause;
	nic->tx_pause = !!p->tx_pause;
	return 0;
}

static int mq_get_link_ksettings(struct net_device *dev, struct ethtool_link_ksettings *k)
{
	k->base.speed = 25000;
	k->base.duplex = DUPLEX_FULL;
	k->base.port = PORT_FIBRE;
	k->base.autoneg = 0;
	return 0;
}

static const char * const mq_queue_stats[] = {
	"rx_queue_%d_packets", "rx_queue_%d_bytes", "rx_queue_%d_drops",
	"rx_queue_%d_irqs", "tx_queue_%d_packets", "tx_queue_%d_bytes",
};

/* Add new names at the end. */
static const char * const mq_more_stats[] = {
	"resets", "arfs_filters", "arfs_added", "arfs_expired", "arfs_hits",
};

static int mq_get_sset_count(struct net_device *dev, int set)
{
	struct mqnic *nic = netdev_priv(dev);

	if (set != ETH_SS_STATS)
		return -EOPNOTSUPP;
	return nic->maxq * (ARRAY_SIZE(mq_queue_stats) + 1) + ARRAY_SIZE(mq_more_stats) + MQ_RULES;
}

static void mq_get_strings(struct net_device *dev, u32 set, u8 *out)
{
	struct mqnic *nic = netdev_priv(dev);
	int i, j;

	for (i = 0; i < nic->maxq; i++)
		for (j = 0; j < ARRAY_SIZE(mq_queue_stats); j++, out += ETH_GSTRING_LEN)
			snprintf(out, ETH_GSTRING_LEN, mq_queue_stats[j], i);
	for (i = 0; i < ARRAY_SIZE(mq_more_stats); i++, out += ETH_GSTRING_LEN)
		strscpy(out, mq_more_stats[i], ETH_GSTRING_LEN);
	for (i = 0; i < nic->maxq; i++, out += ETH_GSTRING_LEN)
		snprintf(out, ETH_GSTRING_LEN, "tx_queue_%d_irqs", i);
	for (i = 0; i < MQ_RULES; i++, out += ETH_GSTRING_LEN)
		snprintf(out, ETH_GSTRING_LEN, "rule_%d_hits", i);
}

static void mq_get_stats(struct net_device *dev, struct ethtool_stats *s, u64 *v)
{
	struct mqnic *nic = netdev_priv(dev);
	int i;

	for (i = 0; i < nic->maxq; i++) {
		struct mq_queue *q = &nic->q[i];

		*v++ = q->rx_packets;
		*v++ = q->rx_bytes;
		*v++ = q->rx_drops;
		*v++ = q->irqs;
		*v++ = q->tx_packets;
		*v++ = q->tx_bytes;
	}
	*v++ = nic->resets;
	*v++ = nic->filters;
	*v++ = nic->arfs_added;
	*v++ = nic->arfs_expired;
	*v++ = nic->arfs_hits;
	for (i = 0; i < nic->maxq; i++)
		*v++ = nic->q[i].tx_irqs;
	for (i = 0; i < MQ_RULES; i++)
		*v++ = nic->rule_hits[i];
}

/* Members that the kernel does not have yet are empty. */
#ifndef ETHTOOL_COALESCE_USE_CQE
#define ETHTOOL_COALESCE_USE_CQE	0
#endif
#ifndef ETHTOOL_COALESCE_RX_PROFILE
#define ETHTOOL_COALESCE_RX_PROFILE	0
#define ETHTOOL_COALESCE_TX_PROFILE	0
#endif
#ifndef ETHTOOL_COALESCE_RX_CQE_FRAMES
#define ETHTOOL_COALESCE_RX_CQE_FRAMES	0
#define ETHTOOL_COALESCE_RX_CQE_NSECS	0
#endif

const struct ethtool_ops mq_ethtool_ops = {
	.supported_coalesce_params = ETHTOOL_COALESCE_USECS | ETHTOOL_COALESCE_MAX_FRAMES |
				     ETHTOOL_COALESCE_USE_ADAPTIVE | ETHTOOL_COALESCE_USE_CQE |
				     ETHTOOL_COALESCE_RX_PROFILE | ETHTOOL_COALESCE_TX_PROFILE |
				     ETHTOOL_COALESCE_RX_CQE_FRAMES | ETHTOOL_COALESCE_RX_CQE_NSECS,
#if SINCE(6, 12)
	.supported_input_xfrm = RXH_XFRM_SYM_XOR | RXH_XFRM_SYM_OR_XOR,
	.cap_rss_rxnfc_adds = 1,
	.rxfh_per_ctx_key = 1,
	.rxfh_max_num_contexts = MQ_CONTEXTS,
	.create_rxfh_context = mq_create_context,
	.modify_rxfh_context = mq_modify_context,
	.remove_rxfh_context = mq_remove_context,
#elif !SINCE(6, 8)
	.get_rxfh_context = mq_get_context,
	.set_rxfh_context = mq_set_context,
#endif
	.get_drvinfo = mq_get_drvinfo,
	.get_link = ethtool_op_get_link,
	.get_link_ksettings = mq_get_link_ksettings,
	.get_channels = mq_get_channels,
	.set_channels = mq_set_channels,
	.get_ringparam = mq_get_ringparam,
	.set_ringparam = mq_set_ringparam,
	.get_coalesce = mq_get_coalesce,
	.set_coalesce = mq_set_coalesce,
	.get_per_queue_coalesce = mq_get_queue_coalesce,
	.set_per_queue_coalesce = mq_set_queue_coalesce,
	.get_rxfh_indir_size = mq_indir_size,
	.get_rxfh_key_size = mq_key_size,
	.get_rxfh = mq_get_rxfh,
	.set_rxfh = mq_set_rxfh,
#if SINCE(6, 17)
	.rxfh_per_ctx_fields = 1,
	.get_rxfh_fields = mq_get_fields,
	.set_rxfh_fields = mq_set_fields,
#endif
#if SINCE(6, 19)
	.get_rx_ring_count = mq_get_rx_ring_count,
#endif
	.get_rxnfc = mq_get_rxnfc,
	.set_rxnfc = mq_set_rxnfc,
	.get_pauseparam = mq_get_pauseparam,
	.set_pauseparam = mq_set_pauseparam,
	.get_sset_count = mq_get_sset_count,
	.get_strings = mq_get_strings,
	.get_ethtool_stats = mq_get_stats,
	.get_ts_info = ethtool_op_get_ts_info,
};
