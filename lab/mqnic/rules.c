// SPDX-License-Identifier: GPL-2.0
/* Rules for receive flows (ethtool -N), and the other requests of RX NFC. */
#include "mqnic.h"

#define MQ_TYPE(flow_type)	((flow_type) & ~(FLOW_EXT | FLOW_MAC_EXT | FLOW_RSS))

/* The first rule that matches the packet, or -1. */
int mq_find_rule(const struct mqnic *nic, const struct sk_buff *skb, const struct mq_flow *f)
{
	int i;

	for (i = 0; nic->rules && i < MQ_RULES; i++)
		if (READ_ONCE(nic->used[i]) && mq_matches(&nic->rule[i], skb, f))
			return i;
	return -1;
}

/* Whether a rule names a queue that does not exist with `nrx` queues. */
bool mq_rule_needs(const struct mqnic *nic, int nrx)
{
	int i;

	for (i = 0; i < MQ_RULES; i++)
		if (nic->used[i] && nic->rule[i].ring_cookie != RX_CLS_FLOW_DISC &&
		    nic->rule[i].ring_cookie >= nrx)
			return true;
	return false;
}

bool mq_context_has_rule(const struct mqnic *nic, u32 id)
{
	int i;

	for (i = 0; i < MQ_RULES; i++)
		if (nic->used[i] && (nic->rule[i].flow_type & FLOW_RSS) &&
		    nic->rule_context[i] == id)
			return true;
	return false;
}

void mq_drop_rules(struct mqnic *nic)
{
	memset(nic->used, 0, sizeof(nic->used));
	nic->rules = 0;
}

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

static int mq_location(const struct mqnic *nic, u32 wanted)
{
	int i;

	if (wanted < MQ_RULES)
		return wanted;
	if (mq_quirk(nic, MQ_OWN_LOCATION) && wanted == RX_CLS_LOC_LAST) {
		for (i = MQ_RULES - 1; i >= 0; i--)
			if (!nic->used[i])
				return i;
	} else if (mq_quirk(nic, MQ_OWN_LOCATION) &&
		   (wanted == RX_CLS_LOC_ANY || wanted == RX_CLS_LOC_FIRST)) {
		for (i = 0; i < MQ_RULES; i++)
			if (!nic->used[i])
				return i;
	}
	return -ENOSPC;
}

static int mq_check_rule(const struct mqnic *nic, const struct ethtool_rxnfc *c)
{
	const struct ethtool_rx_flow_spec *fs = &c->fs;

	switch (MQ_TYPE(fs->flow_type)) {
	case TCP_V4_FLOW:
	case UDP_V4_FLOW:
	case SCTP_V4_FLOW:
	case AH_V4_FLOW:
	case ESP_V4_FLOW:
	case TCP_V6_FLOW:
	case UDP_V6_FLOW:
	case SCTP_V6_FLOW:
	case AH_V6_FLOW:
	case ESP_V6_FLOW:
	case IPV6_USER_FLOW:
	case ETHER_FLOW:
		break;
	case IPV4_USER_FLOW:
		if (fs->h_u.usr_ip4_spec.ip_ver != ETH_RX_NFC_IP4)
			return -EINVAL;
		break;
	default:
		return -EOPNOTSUPP;
	}
	if ((fs->flow_type & FLOW_EXT) && (fs->h_ext.data[0] & fs->m_ext.data[0]))
		return -EOPNOTSUPP;
	if (fs->flow_type & FLOW_RSS) {
		if (c->rss_context >= MQ_CONTEXTS || !nic->rss[c->rss_context].used)
			return -EINVAL;
		if (fs->ring_cookie == RX_CLS_FLOW_DISC)
			return -EINVAL;
	}
	/* There are no virtual functions, and no wake-up. */
	if (fs->ring_cookie != RX_CLS_FLOW_DISC &&
	    fs->ring_cookie >= (mq_quirk(nic, MQ_ANY_QUEUE) ? nic->maxq : nic->nrx))
		return -EINVAL;
	return 0;
}

static void mq_widen(__be16 *mask)
{
	if (*mask)
		*mask = htons(0xffff);
}

/* Changes a rule like a driver that supports fewer masks. */
static void mq_normalise(struct ethtool_rx_flow_spec *fs)
{
	u8 *h = (u8 *)&fs->h_u, *m = (u8 *)&fs->m_u;
	int i;

	switch (MQ_TYPE(fs->flow_type)) {
	case TCP_V4_FLOW:
	case UDP_V4_FLOW:
	case SCTP_V4_FLOW:
		mq_widen(&fs->m_u.tcp_ip4_spec.psrc);
		mq_widen(&fs->m_u.tcp_ip4_spec.pdst);
		break;
	case TCP_V6_FLOW:
	case UDP_V6_FLOW:
	case SCTP_V6_FLOW:
		mq_widen(&fs->m_u.tcp_ip6_spec.psrc);
		mq_widen(&fs->m_u.tcp_ip6_spec.pdst);
		break;
	}
	if (fs->flow_type & FLOW_EXT)
		mq_widen(&fs->m_ext.vlan_tci);
	if (MQ_TYPE(fs->flow_type) != IPV4_USER_FLOW)
		for (i = 0; i < sizeof(fs->h_u); i++)
			h[i] &= m[i];
}

static int mq_add_rule(struct mqnic *nic, struct ethtool_rxnfc *c)
{
	int at, err;

	if (!(nic->dev->features & NETIF_F_NTUPLE) || mq_quirk(nic, MQ_NO_RULES))
		return -EOPNOTSUPP;
	err = mq_check_rule(nic, c);
	if (err)
		return err;
	at = mq_location(nic, c->fs.location);
	if (at < 0)
		return at;
	if (mq_quirk(nic, MQ_FEW_RULES) && !nic->used[at] && nic->rules >= mq_rlimit)
		return -ENOSPC;
	c->fs.location = at;
	nic->rules += !nic->used[at];
	WRITE_ONCE(nic->used[at], 0);
	nic->rule[at] = c->fs;
	if (mq_quirk(nic, MQ_WIDE_MASKS))
		mq_normalise(&nic->rule[at]);
	nic->rule_context[at] = c->fs.flow_type & FLOW_RSS ? c->rss_context : 0;
	nic->rule_hits[at] = 0;
	smp_store_release(&nic->used[at], 1);
	return 0;
}

int mq_get_rxnfc(struct net_device *dev, struct ethtool_rxnfc *c, u32 *locs)
{
	struct mqnic *nic = netdev_priv(dev);
	u32 at;

	switch (c->cmd) {
	case ETHTOOL_GRXRINGS:
		c->data = nic->nrx;
		return 0;
#if !SINCE(6, 17)
	case ETHTOOL_GRXFH:
		return mq_read_fields(nic, 0, c->flow_type, &c->data);
#endif
	case ETHTOOL_GRXCLSRLCNT:
		c->rule_cnt = nic->rules;
		c->data = MQ_RULES;
		if (mq_quirk(nic, MQ_OWN_LOCATION))
			c->data |= RX_CLS_LOC_SPECIAL;
		return 0;
	case ETHTOOL_GRXCLSRULE:
		at = c->fs.location;
		if (at >= MQ_RULES || !nic->used[at])
			return -ENOENT;
		c->fs = nic->rule[at];
		c->rss_context = nic->rule_context[at];
		return 0;
	case ETHTOOL_GRXCLSRLALL:
		return mq_list_rules(nic, c, locs);
	}
	return -EOPNOTSUPP;
}

int mq_set_rxnfc(struct net_device *dev, struct ethtool_rxnfc *c)
{
	struct mqnic *nic = netdev_priv(dev);
	u32 at = c->fs.location;

	switch (c->cmd) {
#if !SINCE(6, 17)
	case ETHTOOL_SRXFH:
		return mq_write_fields(nic, 0, c->flow_type, c->data);
#endif
	case ETHTOOL_SRXCLSRLINS:
		return mq_add_rule(nic, c);
	case ETHTOOL_SRXCLSRLDEL:
		if (at >= MQ_RULES || !nic->used[at])
			return -ENOENT;
		nic->used[at] = 0;
		nic->rules--;
		return 0;
	}
	return -EOPNOTSUPP;
}
