// SPDX-License-Identifier: GPL-2.0
/* The hash, its key and fields, tables and RSS contexts. */
#include "mqnic.h"

void mq_default_rss(struct mqnic *nic)
{
	int i;

	for (i = 0; i < MQ_INDIR; i++)
		nic->rss[0].indir[i] = ethtool_rxfh_indir_default(i, nic->nrx);
}

static u32 mq_toeplitz(const u8 *key, const u8 *data, int n)
{
	u32 hash = 0, window = key[0] << 24 | key[1] << 16 | key[2] << 8 | key[3];
	int i, bit;

	for (i = 0; i < n; i++) {
		for (bit = 7; bit >= 0; bit--) {
			if (data[i] & BIT(bit))
				hash ^= window;
			window <<= 1;
			if (i + 4 < MQ_KEY)
				window |= key[i + 4] >> bit & 1;
		}
	}
	return hash;
}

/* Makes both directions of a flow look the same. */
static void mq_symmetric(u8 xfrm, u8 *src, u8 *dst, int n)
{
	u8 both;

	for (; n--; src++, dst++) {
		both = *src ^ *dst;
		*src = xfrm & BIT(0) ? both : *src | *dst;	/* RXH_XFRM_SYM_XOR */
		*dst = both;
	}
}

/* The hash of an IP packet; `l4` is set if ports are part of it. */
u32 mq_hash(const struct mq_rss *rss, const struct mq_flow *f, bool *l4)
{
	int n = 0, size = f->proto == htons(ETH_P_IPV6) ? 16 : 4;
	u32 fields = rss->fields[f->type];
	struct mq_flow s = *f;
	u8 in[36];

	if (rss->xfrm && rss->xfrm != RXH_XFRM_NO_CHANGE) {
		mq_symmetric(rss->xfrm, (u8 *)s.src, (u8 *)s.dst, size);
		mq_symmetric(rss->xfrm, (u8 *)&s.ports[0], (u8 *)&s.ports[1], 2);
	}
	if (fields & RXH_IP_SRC) {
		memcpy(in + n, s.src, size);
		n += size;
	}
	if (fields & RXH_IP_DST) {
		memcpy(in + n, s.dst, size);
		n += size;
	}
	*l4 = f->has_ports && (fields & (RXH_L4_B_0_1 | RXH_L4_B_2_3));
	if (f->has_ports && (fields & RXH_L4_B_0_1)) {
		memcpy(in + n, &s.ports[0], 2);
		n += 2;
	}
	if (f->has_ports && (fields & RXH_L4_B_2_3)) {
		memcpy(in + n, &s.ports[1], 2);
		n += 2;
	}
	return mq_toeplitz(rss->key, in, n);
}

/* Whether the table of a context names a queue that does not exist with `nrx` queues. */
bool mq_context_needs(const struct mqnic *nic, int nrx)
{
	int i, j;

	for (i = 1; i < MQ_CONTEXTS; i++)
		for (j = 0; nic->rss[i].used && j < MQ_INDIR; j++)
			if (nic->rss[i].indir[j] >= nrx)
				return true;
	return false;
}

void mq_lose_contexts(struct mqnic *nic)
{
	int i;

	for (i = 1; i < MQ_CONTEXTS; i++) {
		if (!nic->rss[i].used)
			continue;
		nic->rss[i].used = 0;
#if SINCE(6, 12)
		ethtool_rxfh_context_lost(nic->dev, i);
#endif
	}
}

u32 mq_indir_size(struct net_device *dev)
{
	return MQ_INDIR;
}

u32 mq_key_size(struct net_device *dev)
{
	return MQ_KEY;
}

static void mq_read_rss(const struct mqnic *nic, u32 id, u32 *indir, u8 *key)
{
	if (indir)
		memcpy(indir, nic->rss[id].indir, sizeof(nic->rss[id].indir));
	if (key)
		memcpy(key, nic->rss[id].key, MQ_KEY);
}

static int mq_write_rss(struct mqnic *nic, u32 id, const u32 *indir, const u8 *key, u8 hfunc,
			u8 xfrm)
{
	struct mq_rss *rss = &nic->rss[id];

	if (hfunc != ETH_RSS_HASH_NO_CHANGE && hfunc != ETH_RSS_HASH_TOP)
		return -EOPNOTSUPP;
	if ((indir && mq_quirk(nic, MQ_NO_TABLE)) || (key && mq_quirk(nic, MQ_NO_KEY)))
		return -EOPNOTSUPP;
	if (indir) {
		memcpy(rss->indir, indir, sizeof(rss->indir));
		if (!mq_quirk(nic, MQ_OLD_TABLE))
			memcpy(rss->old, indir, sizeof(rss->old));
	}
	if (key)
		memcpy(rss->key, key, MQ_KEY);
	if (xfrm != RXH_XFRM_NO_CHANGE)
		rss->xfrm = xfrm;
	return 0;
}

/* Values that are not given are those of the device, with a table over all queues. */
static int mq_new_context(struct mqnic *nic, u32 id, const u32 *indir, const u8 *key, u8 hfunc,
			  u8 xfrm)
{
	struct mq_rss *rss = &nic->rss[id];
	int i, n = 0, err;

	for (i = 1; i < MQ_CONTEXTS; i++)
		n += nic->rss[i].used;
	if (mq_quirk(nic, MQ_FEW_CONTEXTS) && n >= mq_climit)
		return -ENOSPC;
	memcpy(rss->key, nic->rss[0].key, MQ_KEY);
	memcpy(rss->fields, nic->rss[0].fields, sizeof(rss->fields));
	rss->xfrm = nic->rss[0].xfrm;
	for (i = 0; i < MQ_INDIR; i++)
		rss->indir[i] = ethtool_rxfh_indir_default(i, nic->nrx);
	err = mq_write_rss(nic, id, indir, key, hfunc, xfrm);
	rss->used = !err;
	return err;
}

static int mq_end_context(struct mqnic *nic, u32 id)
{
	if (mq_context_has_rule(nic, id))
		return -EBUSY;
	nic->rss[id].used = 0;
	return 0;
}

/* bnxt_set_rxfh() closes and opens the device: its carrier goes off and on. */
static void mq_after_rss(struct net_device *dev, int err)
{
	if (err || !netif_running(dev) || !mq_quirk(netdev_priv(dev), MQ_TABLE_RESETS))
		return;
	netif_carrier_off(dev);
	netif_carrier_on(dev);
}

#if SINCE(6, 8)
int mq_get_rxfh(struct net_device *dev, struct ethtool_rxfh_param *r)
{
	struct mqnic *nic = netdev_priv(dev);

	r->hfunc = ETH_RSS_HASH_TOP;
	r->input_xfrm = nic->rss[0].xfrm;
	mq_read_rss(nic, 0, r->indir, r->key);
	return 0;
}

int mq_set_rxfh(struct net_device *dev, struct ethtool_rxfh_param *r,
		struct netlink_ext_ack *extack)
{
	int err = mq_write_rss(netdev_priv(dev), 0, r->indir, r->key, r->hfunc, r->input_xfrm);

	mq_after_rss(dev, err);
	return err;
}
#else
int mq_get_rxfh(struct net_device *dev, u32 *indir, u8 *key, u8 *hfunc)
{
	if (hfunc)
		*hfunc = ETH_RSS_HASH_TOP;
	mq_read_rss(netdev_priv(dev), 0, indir, key);
	return 0;
}

int mq_set_rxfh(struct net_device *dev, const u32 *indir, const u8 *key, const u8 hfunc)
{
	int err = mq_write_rss(netdev_priv(dev), 0, indir, key, hfunc, RXH_XFRM_NO_CHANGE);

	mq_after_rss(dev, err);
	return err;
}

int mq_get_context(struct net_device *dev, u32 *indir, u8 *key, u8 *hfunc, u32 id)
{
	struct mqnic *nic = netdev_priv(dev);

	if (!id || id >= MQ_CONTEXTS || !nic->rss[id].used)
		return -ENOENT;
	if (hfunc)
		*hfunc = ETH_RSS_HASH_TOP;
	mq_read_rss(nic, id, indir, key);
	return 0;
}

int mq_set_context(struct net_device *dev, const u32 *indir, const u8 *key, const u8 hfunc,
		   u32 *id, bool delete)
{
	struct mqnic *nic = netdev_priv(dev);
	int i, err;

	if (*id == ETH_RXFH_CONTEXT_ALLOC) {
		if (delete)
			return -EINVAL;
		for (i = 1; i < MQ_CONTEXTS && nic->rss[i].used; i++)
			;
		if (i == MQ_CONTEXTS)
			return -ENOSPC;
		err = mq_new_context(nic, i, indir, key, hfunc, RXH_XFRM_NO_CHANGE);
		if (!err)
			*id = i;
		return err;
	}
	if (!*id || *id >= MQ_CONTEXTS || !nic->rss[*id].used)
		return -ENOENT;
	if (delete)
		return mq_end_context(nic, *id);
	return mq_write_rss(nic, *id, indir, key, hfunc, RXH_XFRM_NO_CHANGE);
}
#endif

#if SINCE(6, 12)
int mq_create_context(struct net_device *dev, struct ethtool_rxfh_context *ctx,
		      const struct ethtool_rxfh_param *r, struct netlink_ext_ack *extack)
{
	struct mqnic *nic = netdev_priv(dev);
	u32 id = r->rss_context;
	int err;

	err = mq_new_context(nic, id, r->indir, r->key, r->hfunc, r->input_xfrm);
	if (err)
		return err;
	/* The driver must return the values that the user did not give. */
	if (!r->indir)
		mq_read_rss(nic, id, ethtool_rxfh_context_indir(ctx), NULL);
	if (!r->key)
		mq_read_rss(nic, id, NULL, ethtool_rxfh_context_key(ctx));
	ctx->hfunc = ETH_RSS_HASH_TOP;
	ctx->input_xfrm = nic->rss[id].xfrm;
	return 0;
}

int mq_modify_context(struct net_device *dev, struct ethtool_rxfh_context *ctx,
		      const struct ethtool_rxfh_param *r, struct netlink_ext_ack *extack)
{
	return mq_write_rss(netdev_priv(dev), r->rss_context, r->indir, r->key, r->hfunc,
			    r->input_xfrm);
}

int mq_remove_context(struct net_device *dev, struct ethtool_rxfh_context *ctx, u32 id,
		      struct netlink_ext_ack *extack)
{
	return mq_end_context(netdev_priv(dev), id);
}
#endif

#if SINCE(6, 17)
static
#endif
int mq_read_fields(struct mqnic *nic, u32 id, u32 type, u64 *data)
{
	if (id >= MQ_CONTEXTS || !nic->rss[id].used)
		return -ENOENT;
	if (type > IPV6_FLOW)
		return -EINVAL;
	*data = nic->rss[id].fields[type];
	return 0;
}

#if SINCE(6, 17)
static
#endif
int mq_write_fields(struct mqnic *nic, u32 id, u32 type, u64 data)
{
	if (id >= MQ_CONTEXTS || !nic->rss[id].used)
		return -ENOENT;
	switch (type) {
	case UDP_V4_FLOW:
	case UDP_V6_FLOW:
	case TCP_V4_FLOW:
	case TCP_V6_FLOW:
	case SCTP_V4_FLOW:
	case SCTP_V6_FLOW:
		break;
	default:
		return -EINVAL;
	}
	if (data & ~(u64)(RXH_IP_SRC | RXH_IP_DST | RXH_L4_B_0_1 | RXH_L4_B_2_3))
		return -EINVAL;
	if (!mq_quirk(nic, MQ_IGNORE_FIELDS))
		nic->rss[id].fields[type] = data;
	return 0;
}

#if SINCE(6, 17)
int mq_get_fields(struct net_device *dev, struct ethtool_rxfh_fields *f)
{
	u64 data = 0;
	int err = mq_read_fields(netdev_priv(dev), f->rss_context, f->flow_type, &data);

	f->data = data;
	return err;
}

int mq_set_fields(struct net_device *dev, const struct ethtool_rxfh_fields *f,
		  struct netlink_ext_ack *extack)
{
	return mq_write_fields(netdev_priv(dev), f->rss_context, f->flow_type, f->data);
}
#endif
