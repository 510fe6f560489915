// SPDX-License-Identifier: GPL-2.0
/* Accelerated RFS: the stack requests that a flow is received where its reader runs. */
#include <linux/cpu_rmap.h>

#include "mqnic.h"

#ifdef CONFIG_RFS_ACCEL
static bool mq_same(const struct mq_filter *a, const struct mq_flow *f)
{
	return a->used && a->proto == f->proto && a->l4proto == f->l4proto &&
	       !memcmp(a->ports, f->ports, sizeof(f->ports)) &&
	       !memcmp(a->src, f->src, sizeof(f->src)) && !memcmp(a->dst, f->dst, sizeof(f->dst));
}

int mq_flow_steer(struct net_device *dev, const struct sk_buff *skb, u16 queue, u32 flow_id)
{
	struct mqnic *nic = netdev_priv(dev);
	struct mq_filter *a;
	struct mq_flow f;
	int i, at = -ENOSPC;

	if (queue >= nic->nrx)
		return -EINVAL;
	mq_parse(skb, &f);
	if (!f.has_ports || f.tagged)
		return -EPROTONOSUPPORT;
	spin_lock_bh(&nic->filter_lock);
	for (i = 0; i < MQ_FILTERS; i++) {
		if (mq_same(&nic->filter[i], &f)) {
			at = i;
			break;
		}
		if (at < 0 && !nic->filter[i].used)
			at = i;
	}
	if (at >= 0) {
		a = &nic->filter[at];
		if (!a->used) {
			nic->filters++;
			nic->arfs_added++;
		}
		a->used = 1;
		a->proto = f.proto;
		a->l4proto = f.l4proto;
		memcpy(a->ports, f.ports, sizeof(f.ports));
		memcpy(a->src, f.src, sizeof(f.src));
		memcpy(a->dst, f.dst, sizeof(f.dst));
		a->queue = queue;
		a->flow_id = flow_id;
		schedule_delayed_work(&nic->expire, HZ);
	}
	spin_unlock_bh(&nic->filter_lock);
	return at;
}

static void mq_expire(struct work_struct *work)
{
	struct mqnic *nic = container_of(work, struct mqnic, expire.work);
	int i;

	spin_lock_bh(&nic->filter_lock);
	for (i = 0; i < MQ_FILTERS; i++) {
		struct mq_filter *a = &nic->filter[i];

		if (!a->used || !rps_may_expire_flow(nic->dev, a->queue, a->flow_id, i))
			continue;
		a->used = 0;
		nic->filters--;
		nic->arfs_expired++;
	}
	if (nic->filters)
		schedule_delayed_work(&nic->expire, HZ);
	spin_unlock_bh(&nic->filter_lock);
}

/* The queue to which a flow was steered, or -1. */
int mq_find_filter(struct mqnic *nic, const struct mq_flow *f)
{
	int i, queue = -1;

	if (!READ_ONCE(nic->filters) || !f->has_ports || f->tagged)
		return -1;
	spin_lock_bh(&nic->filter_lock);
	for (i = 0; i < MQ_FILTERS && queue < 0; i++)
		if (mq_same(&nic->filter[i], f))
			queue = nic->filter[i].queue;
	nic->arfs_hits += queue >= 0;
	spin_unlock_bh(&nic->filter_lock);
	return queue;
}

void mq_drop_filters(struct mqnic *nic)
{
	spin_lock_bh(&nic->filter_lock);
	memset(nic->filter, 0, sizeof(nic->filter));
	nic->filters = 0;
	spin_unlock_bh(&nic->filter_lock);
}

void mq_steer_init(struct mqnic *nic)
{
	spin_lock_init(&nic->filter_lock);
	INIT_DELAYED_WORK(&nic->expire, mq_expire);
}

/* Polling has stopped, so nothing is steered. */
void mq_steer_stop(struct mqnic *nic)
{
	mq_drop_filters(nic);
	cancel_delayed_work_sync(&nic->expire);
}

/*
 * The reverse map, from a CPU to the queue whose interrupt is nearest. netif_enable_cpu_rmap()
 * would also count the NAPI instances of transmit queues; this map holds receive queues only.
 */
int mq_map_irqs(struct mqnic *nic)
{
	int i, err = 0;

	nic->dev->rx_cpu_rmap = alloc_irq_cpu_rmap(nic->nrx);
	if (!nic->dev->rx_cpu_rmap)
		return -ENOMEM;
	for (i = 0; i < nic->nrx && !err; i++)
		err = irq_cpu_rmap_add(nic->dev->rx_cpu_rmap, nic->q[i].rx_vec->irq);
	if (err)
		mq_unmap_irqs(nic);
	return err;
}

void mq_unmap_irqs(struct mqnic *nic)
{
	free_irq_cpu_rmap(nic->dev->rx_cpu_rmap);
	nic->dev->rx_cpu_rmap = NULL;
}
#else
void mq_steer_init(struct mqnic *nic) { }
void mq_steer_stop(struct mqnic *nic) { }
void mq_drop_filters(struct mqnic *nic) { }
int mq_find_filter(struct mqnic *nic, const struct mq_flow *f) { return -1; }
int mq_map_irqs(struct mqnic *nic) { return 0; }
void mq_unmap_irqs(struct mqnic *nic) { }
#endif
