// SPDX-License-Identifier: GPL-2.0
/* The packets' way: from one device's transmit queue into its partner's receive queues. */
#include <linux/etherdevice.h>
#include <linux/interrupt.h>
#include <linux/ip.h>

#include "mqnic.h"

static void mq_fire(struct mq_queue *q)
{
	if (!test_bit(NAPI_STATE_SCHED, &q->napi.state))
		irq_inject_interrupt(q->irq);
}

enum hrtimer_restart mq_timer(struct hrtimer *t)
{
	mq_fire(container_of(t, struct mq_queue, timer));
	return HRTIMER_NORESTART;
}

/* Interrupt now, or after the moderation time. */
static void mq_kick(struct mq_queue *q)
{
	u32 n = skb_queue_len_lockless(&q->rx);

	if (!n)
		return;
	if (!q->rx_usecs || (q->rx_frames && n >= q->rx_frames))
		mq_fire(q);
	else if (!hrtimer_active(&q->timer))
		hrtimer_start(&q->timer, ns_to_ktime((u64)q->rx_usecs * NSEC_PER_USEC),
			      HRTIMER_MODE_REL);
}

int mq_poll(struct napi_struct *napi, int budget)
{
	struct mq_queue *q = container_of(napi, struct mq_queue, napi);
	struct sk_buff *skb;
	int done = 0;

	while (done < budget && (skb = skb_dequeue(&q->rx))) {
		q->rx_packets++;
		q->rx_bytes += skb->len;
		done++;
		skb_record_rx_queue(skb, q - q->nic->q);
		napi_gro_receive(napi, skb);
	}
	if (done < budget && napi_complete_done(napi, done))
		mq_kick(q);
	return done;
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

static bool mq_rule_matches(const struct ethtool_rx_flow_spec *r, const struct iphdr *ip,
			    const __be16 *ports)
{
	const struct ethtool_tcpip4_spec *v = &r->h_u.tcp_ip4_spec;
	const struct ethtool_tcpip4_spec *m = &r->m_u.tcp_ip4_spec;

	return !((ports[0] ^ v->psrc) & m->psrc) && !((ports[1] ^ v->pdst) & m->pdst) &&
	       !((ip->saddr ^ v->ip4src) & m->ip4src) && !((ip->daddr ^ v->ip4dst) & m->ip4dst);
}

/* The queue for a packet whose data starts at the network header; -1 drops it. */
static int mq_steer(struct mqnic *nic, struct sk_buff *skb, u32 *hash)
{
	u32 fields = RXH_IP_SRC | RXH_IP_DST;
	const __be16 *ports = NULL;
	const struct iphdr *ip;
	u32 type = 0;
	u8 in[12];
	int i, n = 0;

	/* IPv6 and everything else lands in queue 0. */
	if (skb->protocol != htons(ETH_P_IP) || !pskb_may_pull(skb, sizeof(*ip)))
		return 0;
	ip = (void *)skb->data;
	if (ip->protocol == IPPROTO_UDP)
		type = UDP_V4_FLOW;
	else if (ip->protocol == IPPROTO_TCP)
		type = TCP_V4_FLOW;
	if (type && pskb_may_pull(skb, ip->ihl * 4 + 4)) {
		ip = (void *)skb->data;
		ports = (void *)(skb->data + ip->ihl * 4);
	}
	if (type)
		fields = nic->fields[type];
	if (fields & RXH_IP_SRC) {
		memcpy(in + n, &ip->saddr, 4);
		n += 4;
	}
	if (fields & RXH_IP_DST) {
		memcpy(in + n, &ip->daddr, 4);
		n += 4;
	}
	if (ports && (fields & RXH_L4_B_0_1)) {
		memcpy(in + n, &ports[0], 2);
		n += 2;
	}
	if (ports && (fields & RXH_L4_B_2_3)) {
		memcpy(in + n, &ports[1], 2);
		n += 2;
	}
	*hash = mq_toeplitz(nic->key, in, n);

	if (nic->rules && ports && (nic->dev->features & NETIF_F_NTUPLE)) {
		for (i = 0; i < MQ_RULES; i++) {
			struct ethtool_rx_flow_spec *r = &nic->rule[i];

			if (!nic->used[i] || (r->flow_type & ~FLOW_EXT) != type ||
			    !mq_rule_matches(r, ip, ports))
				continue;
			return r->ring_cookie == RX_CLS_FLOW_DISC ? -1 : (int)r->ring_cookie;
		}
	}
	return nic->dev->features & NETIF_F_RXHASH ? nic->indir[*hash % MQ_INDIR] : 0;
}

netdev_tx_t mq_xmit(struct sk_buff *skb, struct net_device *dev)
{
	struct mqnic *nic = netdev_priv(dev), *other = mq_devs[nic->idx ^ 1];
	struct mq_queue *txq = &nic->q[skb_get_queue_mapping(skb)], *q;
	u32 hash = 0;
	int i;

	txq->tx_packets++;
	txq->tx_bytes += skb->len;
	skb_tx_timestamp(skb);
	if (!other || !READ_ONCE(other->up)) {
		kfree_skb(skb);
		return NETDEV_TX_OK;
	}
	if (__dev_forward_skb(other->dev, skb))
		return NETDEV_TX_OK;
	i = mq_steer(other, skb, &hash);
	if (i < 0) {
		kfree_skb(skb);
		return NETDEV_TX_OK;
	}
	q = &other->q[i % other->nq];
	skb_set_hash(skb, hash, PKT_HASH_TYPE_L4);
	if (skb_queue_len_lockless(&q->rx) >= other->rx_ring) {
		q->rx_drops++;
		kfree_skb(skb);
		return NETDEV_TX_OK;
	}
	skb_queue_tail(&q->rx, skb);
	mq_kick(q);
	return NETDEV_TX_OK;
}
