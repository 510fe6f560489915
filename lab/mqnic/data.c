// SPDX-License-Identifier: GPL-2.0
/* The data path: from one device's transmit queue into its partner's receive queues. */
#include <linux/etherdevice.h>
#include <linux/interrupt.h>

#include "mqnic.h"

/* False if the queue is being polled: the poll checks again at its end. */
static bool mq_fire(struct mq_vec *v)
{
	/* The pending work must be visible before the state is read. */
	smp_mb();
	if (test_bit(NAPI_STATE_SCHED, &v->napi.state))
		return false;
	irq_inject_interrupt(v->irq);
	return true;
}

enum hrtimer_restart mq_rx_timer(struct hrtimer *t)
{
	mq_fire(container_of(t, struct mq_queue, rx_timer)->rx_vec);
	return HRTIMER_NORESTART;
}

/* Only once until it is served: more packets do not raise more interrupts. */
static void mq_fire_tx(struct mq_queue *q)
{
	if (atomic_xchg(&q->tx_asked, 1))
		return;
	if (mq_fire(q->tx_vec))
		q->tx_irqs++;
	else
		atomic_set(&q->tx_asked, 0);
}

enum hrtimer_restart mq_tx_timer(struct hrtimer *t)
{
	mq_fire_tx(container_of(t, struct mq_queue, tx_timer));
	return HRTIMER_NORESTART;
}

/* Whether to interrupt now; if not, the timer interrupts after the moderation time. */
static bool mq_due(struct hrtimer *t, u32 n, u32 usecs, u32 frames)
{
	if (!n)
		return false;
	if (!usecs || (frames && n >= frames))
		return true;
	if (!hrtimer_active(t))
		hrtimer_start(t, ns_to_ktime((u64)usecs * NSEC_PER_USEC), HRTIMER_MODE_REL);
	return false;
}

static void mq_kick_rx(struct mq_queue *q)
{
	if (mq_due(&q->rx_timer, skb_queue_len_lockless(&q->rx), q->rx_usecs, q->rx_frames))
		mq_fire(q->rx_vec);
}

static void mq_kick_tx(struct mq_queue *q)
{
	if (mq_due(&q->tx_timer, atomic_read(&q->tx_pending), q->tx_usecs, q->tx_frames))
		mq_fire_tx(q);
}

int mq_poll(struct napi_struct *napi, int budget)
{
	struct mq_vec *v = container_of(napi, struct mq_vec, napi);
	struct sk_buff *skb;
	int done = 0;

	if (v->tx) {
		atomic_set(&v->tx->tx_asked, 0);
		atomic_set(&v->tx->tx_pending, 0);
	}
	while (v->rx && done < budget && (skb = skb_dequeue(&v->rx->rx))) {
		v->rx->rx_packets++;
		v->rx->rx_bytes += skb->len;
		done++;
		skb_record_rx_queue(skb, v->rx - v->nic->q);
		mq_charge(v->nic->dev);
		napi_gro_receive(napi, skb);
	}
	if (done < budget && napi_complete_done(napi, done)) {
		if (v->rx)
			mq_kick_rx(v->rx);
		if (v->tx)
			mq_kick_tx(v->tx);
	}
	return done;
}

/* The queue for a packet whose data starts at the network header; -1 drops it. */
static int mq_steer(struct mqnic *nic, struct sk_buff *skb)
{
	const struct mq_rss *rss = &nic->rss[0];
	int rule = -1, queue = -1, offset = 0;
	struct mq_flow f;
	u32 hash = 0;
	bool l4;

	mq_parse(skb, &f);
	if (nic->dev->features & NETIF_F_NTUPLE) {
		rule = mq_find_rule(nic, skb, &f);
		if (rule < 0)
			queue = mq_find_filter(nic, &f);
	}
	if (rule >= 0) {
		const struct ethtool_rx_flow_spec *r = &nic->rule[rule];

		nic->rule_hits[rule]++;
		if (r->ring_cookie == RX_CLS_FLOW_DISC)
			return -1;
		/* That queue is not polled. */
		if (!(r->flow_type & FLOW_RSS) && r->ring_cookie >= nic->nrx)
			return -1;
		if (r->flow_type & FLOW_RSS) {
			rss = &nic->rss[nic->rule_context[rule] % MQ_CONTEXTS];
			offset = r->ring_cookie;
		} else {
			queue = r->ring_cookie;
		}
	}
	/* The sender's software hash does not travel with the packet. */
	skb_clear_hash(skb);
	if (f.type) {
		hash = mq_hash(rss, &f, &l4);
		if (!mq_quirk(nic, MQ_NO_HASH))
			skb_set_hash(skb, hash, l4 ? PKT_HASH_TYPE_L4 : PKT_HASH_TYPE_L3);
	}
	if (queue >= 0)
		return queue;
	/* Packets that are not IP, and all packets without the feature, are received on queue 0. */
	if (!f.type || !(nic->dev->features & NETIF_F_RXHASH))
		return offset;
	if (mq_quirk(nic, MQ_OLD_TABLE) && rss->old[hash % MQ_INDIR] < nic->nrx)
		return rss->old[hash % MQ_INDIR] + offset;
	return rss->indir[hash % MQ_INDIR] + offset;
}

netdev_tx_t mq_xmit(struct sk_buff *skb, struct net_device *dev)
{
	struct mqnic *nic = netdev_priv(dev), *other = mq_devs[nic->idx ^ 1];
	struct mq_queue *txq = &nic->q[skb_get_queue_mapping(skb)], *q;
	struct sk_buff *copy;
	int i;

	txq->tx_packets++;
	txq->tx_bytes += skb->len;
	skb_tx_timestamp(skb);
	atomic_inc(&txq->tx_pending);
	mq_kick_tx(txq);
	if (!other || !READ_ONCE(other->up)) {
		kfree_skb(skb);
		return NETDEV_TX_OK;
	}
	if (__dev_forward_skb(other->dev, skb))
		return NETDEV_TX_OK;
	i = mq_steer(other, skb);
	if (i < 0) {
		kfree_skb(skb);
		return NETDEV_TX_OK;
	}
	q = &other->q[i % other->nrx];
	if (skb_queue_len_lockless(&q->rx) >= other->rx_ring) {
		q->rx_drops++;
		kfree_skb(skb);
		return NETDEV_TX_OK;
	}
	/*
	 * A received packet is a copy in the receiver's memory, as with DMA. Otherwise GRO would take packets apart that TCP keeps
	 * for retransmission and charges to its socket (underflow in tcp_wfree on 5.10, pages freed twice on 6.12).
	 */
	copy = skb_copy(skb, GFP_ATOMIC);
	consume_skb(skb);
	if (!copy) {
		q->rx_drops++;
		return NETDEV_TX_OK;
	}
	skb_queue_tail(&q->rx, copy);
	mq_kick_rx(q);
	return NETDEV_TX_OK;
}
