// SPDX-License-Identifier: GPL-2.0
/* The number of queues, combined or separate. */
#include <linux/delay.h>

#include "mqnic.h"

static bool mq_may_separate(const struct mqnic *nic)
{
	return (mq_separate & BIT(nic->idx)) || nic->rx_only || nic->tx_only;
}

void mq_get_channels(struct net_device *dev, struct ethtool_channels *c)
{
	struct mqnic *nic = netdev_priv(dev);

	if (mq_quirk(nic, MQ_HANG)) {
		int left = clamp(mq_hang, 0, 600) * 10;

		mq_hanging++;	/* under RTNL */
		while (left-- && mq_quirk(nic, MQ_HANG))
			msleep(100);
		mq_hanging--;
	}
	if (mq_may_separate(nic)) {
		c->max_rx = nic->maxq;
		c->max_tx = nic->maxq;
	}
	c->rx_count = nic->rx_only;
	c->tx_count = nic->tx_only;
	c->max_combined = nic->maxq;
	c->combined_count = nic->combined;
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

static int mq_check_channels(const struct mqnic *nic, const struct ethtool_channels *c)
{
	u32 vectors = c->combined_count + c->rx_count + c->tx_count;

	if (c->other_count != 1 || !(c->combined_count + c->rx_count) ||
	    !(c->combined_count + c->tx_count))
		return -EINVAL;
	if ((c->rx_count || c->tx_count) && !mq_may_separate(nic))
		return -EINVAL;
	if (vectors > nic->maxq || (mq_quirk(nic, MQ_NO_VECTORS) && (int)vectors > mq_vlimit))
		return -ENOSPC;
	/* Newer kernels check this themselves. */
	if (mq_rule_needs(nic, c->combined_count + c->rx_count) ||
	    mq_context_needs(nic, c->combined_count + c->rx_count))
		return -EINVAL;
	return 0;
}

int mq_set_channels(struct net_device *dev, struct ethtool_channels *c)
{
	struct mqnic *nic = netdev_priv(dev);
	int err, running = netif_running(dev);

	if (mq_quirk(nic, MQ_CHANNELS_BUSY))
		return -EBUSY;
	err = mq_check_channels(nic, c);
	if (err || mq_quirk(nic, MQ_IGNORE_CHANNELS))
		return err;
	if (running)
		mq_stop(dev);
	if (mq_quirk(nic, MQ_LOSE_AFFINITY))
		err = mq_new_vectors(nic);
	nic->combined = c->combined_count;
	nic->rx_only = c->rx_count;
	nic->tx_only = c->tx_count;
	nic->nrx = nic->combined + nic->rx_only;
	nic->ntx = nic->combined + nic->tx_only;
	if (!err)
		err = netif_set_real_num_tx_queues(dev, nic->ntx);
	if (!err)
		err = netif_set_real_num_rx_queues(dev, nic->nrx);
	if (mq_quirk(nic, MQ_LOSE_RULES)) {
		mq_drop_rules(nic);
		mq_lose_contexts(nic);
	}
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
