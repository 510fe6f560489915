// SPDX-License-Identifier: GPL-2.0
/* What ethtool can see and set, and the ways it may go wrong (mqnic.h). */
#include <linux/delay.h>
#include <linux/log2.h>

#include "mqnic.h"

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

#define MQ_STATS_PER_QUEUE 6

static void mq_get_drvinfo(struct net_device *dev, struct ethtool_drvinfo *info)
{
	struct mqnic *nic = netdev_priv(dev);

	strscpy(info->driver, "mqnic", sizeof(info->driver));
	strscpy(info->fw_version, "1.0", sizeof(info->fw_version));
	strscpy(info->bus_info, pci_name(nic->pdev), sizeof(info->bus_info));
}

static void mq_get_channels(struct net_device *dev, struct ethtool_channels *c)
{
	struct mqnic *nic = netdev_priv(dev);

	if (mq_quirk(nic, MQ_HANG)) {
		int left = clamp(mq_hang, 0, 600) * 10;

		mq_hanging++;	/* under RTNL */
		while (left-- && mq_quirk(nic, MQ_HANG))
			msleep(100);
		mq_hanging--;
	}
	c->max_combined = nic->maxq;
	c->combined_count = nic->nq;
	c->max_other = 1;
	c->other_count = 1;
}

static int mq_new_vectors(struct mqnic *nic)
{
	int n;

	pci_free_irq_vectors(nic->pdev);
	n = mq_alloc_vectors(nic, nic->maxq);
	if (n < 0)
		return n;
	return n < nic->maxq + 1 ? -ENOSPC : 0;
}

static int mq_set_channels(struct net_device *dev, struct ethtool_channels *c)
{
	struct mqnic *nic = netdev_priv(dev);
	int err = 0, running = netif_running(dev);

	if (mq_quirk(nic, MQ_CHANNELS_BUSY))
		return -EBUSY;
	if (!c->combined_count || c->rx_count || c->tx_count || c->other_count != 1)
		return -EINVAL;
	if (mq_quirk(nic, MQ_NO_VECTORS) && (int)c->combined_count > mq_vlimit)
		return -ENOSPC;
	if (mq_quirk(nic, MQ_IGNORE_CHANNELS))
		return 0;
	if (running)
		mq_stop(dev);
	if (mq_quirk(nic, MQ_LOSE_AFFINITY))
		err = mq_new_vectors(nic);
	nic->nq = c->combined_count;
	if (!err)
		err = netif_set_real_num_tx_queues(dev, nic->nq);
	if (!err)
		err = netif_set_real_num_rx_queues(dev, nic->nq);
	if (mq_quirk(nic, MQ_CHANNELS_RESET)) {
		mq_default_rss(nic);
		mq_default_coalesce(nic);
		nic->rx_ring = MQ_RING;
		nic->tx_ring = MQ_RING;
	} else if (!netif_is_rxfh_configured(dev)) {
		mq_default_rss(nic);
	}
	if (running && !err)
		err = mq_open(dev);
	return err;
}

static void mq_get_ringparam(struct net_device *dev, struct ethtool_ringparam *r RING_ARGS)
{
	struct mqnic *nic = netdev_priv(dev);

	r->rx_max_pending = MQ_RING_MAX;
	r->tx_max_pending = MQ_RING_MAX;
	r->rx_pending = nic->rx_ring;
	r->tx_pending = nic->tx_ring;
}

static int mq_set_ringparam(struct net_device *dev, struct ethtool_ringparam *r RING_ARGS)
{
	struct mqnic *nic = netdev_priv(dev);
	int running = netif_running(dev);

	if (r->rx_pending < MQ_RING_MIN || r->tx_pending < MQ_RING_MIN) {
		RING_EXTACK("ring size below 64");
		return -EINVAL;
	}
	if (running)
		mq_stop(dev);
	nic->rx_ring = roundup_pow_of_two(r->rx_pending);
	nic->tx_ring = roundup_pow_of_two(r->tx_pending);
	return running ? mq_open(dev) : 0;
}

static int mq_get_queue_coalesce(struct net_device *dev, u32 i, struct ethtool_coalesce *c)
{
	struct mqnic *nic = netdev_priv(dev);
	struct mq_queue *q;

	if (i >= nic->nq)
		return -EINVAL;
	if ((i & 1) && mq_quirk(nic, MQ_ODD_QUEUES))
		return -EOPNOTSUPP;
	q = &nic->q[i];
	c->rx_coalesce_usecs = q->rx_usecs;
	c->rx_max_coalesced_frames = q->rx_frames;
	c->tx_coalesce_usecs = q->tx_usecs;
	c->tx_max_coalesced_frames = q->tx_frames;
	c->use_adaptive_rx_coalesce = q->adaptive;
	return 0;
}

static int mq_set_queue_coalesce(struct net_device *dev, u32 i, struct ethtool_coalesce *c)
{
	struct mqnic *nic = netdev_priv(dev);
	u32 mask = mq_quirk(nic, MQ_ROUND_USECS) ? ~7u : ~0u;
	struct mq_queue *q;

	if (i >= nic->nq)
		return -EINVAL;
	if (c->rx_coalesce_usecs > MQ_USECS_MAX || c->tx_coalesce_usecs > MQ_USECS_MAX)
		return -EINVAL;
	if ((i & 1) && mq_quirk(nic, MQ_ODD_QUEUES))
		return -EOPNOTSUPP;
	if (mq_quirk(nic, MQ_IGNORE_COALESCE))
		return 0;
	q = &nic->q[i];
	q->rx_usecs = c->rx_coalesce_usecs & mask;
	q->rx_frames = c->rx_max_coalesced_frames;
	q->tx_usecs = c->tx_coalesce_usecs & mask;
	q->tx_frames = c->tx_max_coalesced_frames;
	q->adaptive = c->use_adaptive_rx_coalesce;
	return 0;
}

static int mq_get_coalesce(struct net_device *dev, struct ethtool_coalesce *c COALESCE_ARGS)
{
	return mq_get_queue_coalesce(dev, 0, c);
}

static int mq_set_coalesce(struct net_device *dev, struct ethtool_coalesce *c COALESCE_ARGS)
{
	struct mqnic *nic = netdev_priv(dev);
	int i, err = 0;

	if (c->rx_coalesce_usecs > MQ_USECS_MAX || c->tx_coalesce_usecs > MQ_USECS_MAX) {
		COALESCE_EXTACK("usecs above 8191");
		return -ERANGE;
	}
	for (i = 0; i < nic->nq && !err; i++)
		err = mq_set_queue_coalesce(dev, i, c);
	return err;
}

static u32 mq_indir_size(struct net_device *dev)
{
	return MQ_INDIR;
}

static u32 mq_key_size(struct net_device *dev)
{
	return MQ_KEY;
}

static void mq_read_rss(struct mqnic *nic, u32 *indir, u8 *key)
{
	if (indir)
		memcpy(indir, nic->indir, sizeof(nic->indir));
	if (key)
		memcpy(key, nic->key, MQ_KEY);
}

static int mq_write_rss(struct mqnic *nic, const u32 *indir, const u8 *key, u8 hfunc)
{
	if (hfunc != ETH_RSS_HASH_NO_CHANGE && hfunc != ETH_RSS_HASH_TOP)
		return -EOPNOTSUPP;
	if (indir)
		memcpy(nic->indir, indir, sizeof(nic->indir));
	if (key)
		memcpy(nic->key, key, MQ_KEY);
	return 0;
}

#if SINCE(6, 8)
static int mq_get_rxfh(struct net_device *dev, struct ethtool_rxfh_param *r)
{
	r->hfunc = ETH_RSS_HASH_TOP;
	mq_read_rss(netdev_priv(dev), r->indir, r->key);
	return 0;
}

static int mq_set_rxfh(struct net_device *dev, struct ethtool_rxfh_param *r,
		       struct netlink_ext_ack *extack)
{
	return mq_write_rss(netdev_priv(dev), r->indir, r->key, r->hfunc);
}
#else
static int mq_get_rxfh(struct net_device *dev, u32 *indir, u8 *key, u8 *hfunc)
{
	if (hfunc)
		*hfunc = ETH_RSS_HASH_TOP;
	mq_read_rss(netdev_priv(dev), indir, key);
	return 0;
}

static int mq_set_rxfh(struct net_device *dev, const u32 *indir, const u8 *key, const u8 hfunc)
{
	return mq_write_rss(netdev_priv(dev), indir, key, hfunc);
}
#endif

static int mq_read_fields(struct mqnic *nic, u32 type, u64 *data)
{
	if (type > IPV6_FLOW)
		return -EINVAL;
	*data = nic->fields[type];
	return 0;
}

static int mq_write_fields(struct mqnic *nic, u32 type, u64 data)
{
	if (type != UDP_V4_FLOW && type != UDP_V6_FLOW && type != TCP_V4_FLOW &&
	    type != TCP_V6_FLOW)
		return -EINVAL;
	if (data & ~(u64)(RXH_IP_SRC | RXH_IP_DST | RXH_L4_B_0_1 | RXH_L4_B_2_3))
		return -EINVAL;
	nic->fields[type] = data;
	return 0;
}

#if SINCE(6, 17)
static int mq_get_fields(struct net_device *dev, struct ethtool_rxfh_fields *f)
{
	u64 data = 0;
	int err = mq_read_fields(netdev_priv(dev), f->flow_type, &data);

	f->data = data;
	return err;
}

static int mq_set_fields(struct net_device *dev, const struct ethtool_rxfh_fields *f,
			 struct netlink_ext_ack *extack)
{
	return mq_write_fields(netdev_priv(dev), f->flow_type, f->data);
}
#endif

#if SINCE(6, 19)
static u32 mq_get_rx_ring_count(struct net_device *dev)
{
	struct mqnic *nic = netdev_priv(dev);

	return nic->nq;
}
#endif

static int mq_list_rules(struct mqnic *nic, struct ethtool_rxnfc *c, u32 *locs)
{
	u32 i, n = 0;

	for (i = 0; i < MQ_RULES; i++) {
		if (!nic->used[i])
			continue;
		if (n >= c->rule_cnt)
			return -EMSGSIZE;
		locs[n++] = i;
	}
	c->rule_cnt = n;
	c->data = MQ_RULES;
	return 0;
}

static int mq_get_rxnfc(struct net_device *dev, struct ethtool_rxnfc *c, u32 *locs)
{
	struct mqnic *nic = netdev_priv(dev);

	switch (c->cmd) {
	case ETHTOOL_GRXRINGS:
		c->data = nic->nq;
		return 0;
#if !SINCE(6, 17)
	case ETHTOOL_GRXFH:
		return mq_read_fields(nic, c->flow_type, &c->data);
#endif
	case ETHTOOL_GRXCLSRLCNT:
		c->rule_cnt = nic->rules;
		c->data = MQ_RULES;
		return 0;
	case ETHTOOL_GRXCLSRULE:
		if (c->fs.location >= MQ_RULES || !nic->used[c->fs.location])
			return -ENOENT;
		c->fs = nic->rule[c->fs.location];
		return 0;
	case ETHTOOL_GRXCLSRLALL:
		return mq_list_rules(nic, c, locs);
	}
	return -EOPNOTSUPP;
}

static int mq_add_rule(struct mqnic *nic, const struct ethtool_rx_flow_spec *fs)
{
	u32 type = fs->flow_type & ~FLOW_EXT;

	if (!(nic->dev->features & NETIF_F_NTUPLE))
		return -EOPNOTSUPP;
	if (type != UDP_V4_FLOW && type != TCP_V4_FLOW)
		return -EOPNOTSUPP;
	if (fs->location >= MQ_RULES)
		return -ENOSPC;
	if (fs->ring_cookie != RX_CLS_FLOW_DISC && fs->ring_cookie >= nic->nq)
		return -EINVAL;
	nic->rules += !nic->used[fs->location];
	nic->used[fs->location] = 1;
	nic->rule[fs->location] = *fs;
	return 0;
}

static int mq_set_rxnfc(struct net_device *dev, struct ethtool_rxnfc *c)
{
	struct mqnic *nic = netdev_priv(dev);
	u32 at = c->fs.location;

	switch (c->cmd) {
#if !SINCE(6, 17)
	case ETHTOOL_SRXFH:
		return mq_write_fields(nic, c->flow_type, c->data);
#endif
	case ETHTOOL_SRXCLSRLINS:
		return mq_add_rule(nic, &c->fs);
	case ETHTOOL_SRXCLSRLDEL:
		if (at >= MQ_RULES || !nic->used[at])
			return -ENOENT;
		nic->used[at] = 0;
		nic->rules--;
		return 0;
	}
	return -EOPNOTSUPP;
}

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

static int mq_get_sset_count(struct net_device *dev, int set)
{
	struct mqnic *nic = netdev_priv(dev);

	return set == ETH_SS_STATS ? nic->maxq * MQ_STATS_PER_QUEUE + 1 : -EOPNOTSUPP;
}

static void mq_get_strings(struct net_device *dev, u32 set, u8 *out)
{
	static const char * const names[MQ_STATS_PER_QUEUE] = {
		"rx_queue_%d_packets", "rx_queue_%d_bytes", "rx_queue_%d_drops",
		"rx_queue_%d_irqs", "tx_queue_%d_packets", "tx_queue_%d_bytes",
	};
	struct mqnic *nic = netdev_priv(dev);
	int i, j;

	for (i = 0; i < nic->maxq; i++)
		for (j = 0; j < MQ_STATS_PER_QUEUE; j++, out += ETH_GSTRING_LEN)
			snprintf(out, ETH_GSTRING_LEN, names[j], i);
	strscpy(out, "resets", ETH_GSTRING_LEN);
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
	*v = nic->resets;
}

const struct ethtool_ops mq_ethtool_ops = {
	.supported_coalesce_params = ETHTOOL_COALESCE_USECS | ETHTOOL_COALESCE_MAX_FRAMES |
				     ETHTOOL_COALESCE_USE_ADAPTIVE_RX,
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
