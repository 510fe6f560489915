// SPDX-License-Identifier: GPL-2.0
/* Probing, vectors, opening and closing. mqnic.h describes the module. */
#include <linux/etherdevice.h>
#include <linux/interrupt.h>
#include <linux/module.h>

#include "mqnic.h"
#if SINCE(6, 10)
#include <net/netdev_queues.h>
#endif

int mq_vlimit = 4, mq_hang = 8, mq_hanging, mq_climit = 1, mq_rlimit = 2, mq_separate;

static int managed = -1, quirk, quirk_dev = -1;
static int bus[MQ_DEVS];
static int buses;

module_param(managed, int, 0444);
MODULE_PARM_DESC(managed, "index of the device with kernel-managed vectors (-1: none)");
module_param_array(bus, int, &buses, 0444);
MODULE_PARM_DESC(bus, "PCI bus number of device 0, 1, ... (default: in the order they are found)");
module_param(quirk, int, 0644);
MODULE_PARM_DESC(quirk, "how to misbehave: see the bits in mqnic.h");
module_param(quirk_dev, int, 0644);
MODULE_PARM_DESC(quirk_dev, "bit mask of the devices that misbehave (default: all)");
module_param_named(vlimit, mq_vlimit, int, 0644);
MODULE_PARM_DESC(vlimit, "quirk 32: the most channels there are vectors for");
module_param_named(hang, mq_hang, int, 0644);
MODULE_PARM_DESC(hang, "quirk 128: seconds that get_channels takes at most (600); it ends with the quirk");
module_param_named(hanging, mq_hanging, int, 0444);
MODULE_PARM_DESC(hanging, "calls that hang now");
module_param_named(climit, mq_climit, int, 0644);
MODULE_PARM_DESC(climit, "quirk 2048: the most RSS contexts");
module_param_named(rlimit, mq_rlimit, int, 0644);
MODULE_PARM_DESC(rlimit, "quirk 8192: the most rules");
module_param_named(separate, mq_separate, int, 0644);
MODULE_PARM_DESC(separate, "bit mask of the devices that offer separate channels (default: none)");
module_param_cb(poll_ns, &mq_poll_ns_ops, NULL, 0644);
MODULE_PARM_DESC(poll_ns, "nanoseconds that a packet costs in the driver's poll; needs the module labcost (default: 0)");

struct mqnic *mq_devs[MQ_DEVS];

static int mq_moderation(char *out, const struct kernel_param *p)
{
	int i, n = 0;

	for (i = 0; i < MQ_DEVS; i++)
		if (mq_devs[i])
			n += mq_show_moderation(mq_devs[i], out + n, PAGE_SIZE - n);
	return n;
}

static const struct kernel_param_ops mq_moderation_ops = { .get = mq_moderation };
module_param_cb(moderation, &mq_moderation_ops, NULL, 0444);
MODULE_PARM_DESC(moderation, "CQE mode and profiles of each device, as the driver holds them");

bool mq_quirk(const struct mqnic *nic, u32 bit)
{
	return (quirk & bit) && (quirk_dev & BIT(nic->idx));
}

/* One vector for events, which is never managed, and one for each queue. */
int mq_alloc_vectors(struct mqnic *nic, int queues)
{
	struct irq_affinity aff = { .pre_vectors = 1 };

	if (nic->managed)
		return pci_alloc_irq_vectors_affinity(nic->pdev, 2, queues + 1,
						      PCI_IRQ_MSIX | PCI_IRQ_AFFINITY, &aff);
	return pci_alloc_irq_vectors(nic->pdev, 2, queues + 1, PCI_IRQ_MSIX);
}

static irqreturn_t mq_irq(int irq, void *data)
{
	struct mq_vec *v = data;

	if (v->rx)
		v->rx->irqs++;
	napi_schedule_irqoff(&v->napi);
	return IRQ_HANDLED;
}

static irqreturn_t mq_event(int irq, void *data)
{
	return IRQ_HANDLED;
}

static int mq_vectors(const struct mqnic *nic)
{
	return nic->combined + nic->rx_only + nic->tx_only;
}

/* Which vector serves which queues: the combined ones first, then receive, then transmit. */
static void mq_layout(struct mqnic *nic)
{
	const char *name = nic->dev->name;
	int i, at;

	for (i = 0; i < mq_vectors(nic); i++) {
		struct mq_vec *v = &nic->v[i];

		v->irq = pci_irq_vector(nic->pdev, i + 1);
		v->rx = i < nic->nrx ? &nic->q[i] : NULL;
		if (i < nic->combined)
			at = i;
		else
			at = i < nic->nrx ? -1 : i - nic->rx_only;
		v->tx = at < 0 ? NULL : &nic->q[at];
		if (v->rx)
			v->rx->rx_vec = v;
		if (v->tx)
			v->tx->tx_vec = v;
		if (v->rx && v->tx)
			snprintf(v->name, sizeof(v->name), "%s-TxRx-%d", name, i);
		else if (v->rx)
			snprintf(v->name, sizeof(v->name), "%s-rx-%d", name, i);
		else
			snprintf(v->name, sizeof(v->name), "%s-tx-%d", name, at);
	}
}

/* Reports the NAPI instance of each queue to netdev-genl. */
static void mq_link_napi(struct mq_vec *v, bool on)
{
#if SINCE(6, 8)
	struct napi_struct *napi = on ? &v->napi : NULL;

	if (on)
		netif_napi_set_irq(&v->napi, v->irq);
	if (v->rx)
		netif_queue_set_napi(v->nic->dev, v->rx - v->nic->q, NETDEV_QUEUE_TYPE_RX, napi);
	if (v->tx)
		netif_queue_set_napi(v->nic->dev, v->tx - v->nic->q, NETDEV_QUEUE_TYPE_TX, napi);
#endif
}

static void mq_quiet_vec(struct mq_vec *v)
{
	mq_link_napi(v, false);
	/* Polling may start the timers, so it is stopped first. */
	napi_disable(&v->napi);
	if (v->rx)
		hrtimer_cancel(&v->rx->rx_timer);
	if (v->tx)
		hrtimer_cancel(&v->tx->tx_timer);
}

static void mq_free_vec(struct mq_vec *v)
{
	free_irq(v->irq, v);
	if (v->rx)
		skb_queue_purge(&v->rx->rx);
	if (v->tx) {
		atomic_set(&v->tx->tx_pending, 0);
		atomic_set(&v->tx->tx_asked, 0);
	}
}

static void mq_close(struct mqnic *nic, int vectors)
{
	int i;

	for (i = 0; i < vectors; i++)
		mq_quiet_vec(&nic->v[i]);
	/* Polling reads the map, and an interrupt that the map watches cannot be freed. */
	mq_unmap_irqs(nic);
	mq_steer_stop(nic);
	for (i = 0; i < vectors; i++)
		mq_free_vec(&nic->v[i]);
	free_irq(nic->event_irq, nic);
}

int mq_open(struct net_device *dev)
{
	struct mqnic *nic = netdev_priv(dev);
	int i, err;

	snprintf(nic->event_name, sizeof(nic->event_name), "%s-event", dev->name);
	nic->event_irq = pci_irq_vector(nic->pdev, 0);
	err = request_irq(nic->event_irq, mq_event, 0, nic->event_name, nic);
	if (err)
		return err;
	mq_layout(nic);
	for (i = 0; i < mq_vectors(nic); i++) {
		struct mq_vec *v = &nic->v[i];

		napi_enable(&v->napi);
		err = request_irq(v->irq, mq_irq, 0, v->name, v);
		if (err) {
			napi_disable(&v->napi);
			goto undo;
		}
		mq_link_napi(v, true);
	}
	err = mq_map_irqs(nic);
	if (err)
		goto undo;
	WRITE_ONCE(nic->up, 1);
	nic->resets++;
	netif_tx_start_all_queues(dev);
	netif_carrier_on(dev);
	return 0;
undo:
	mq_close(nic, i);
	return err;
}

int mq_stop(struct net_device *dev)
{
	struct mqnic *nic = netdev_priv(dev);

	WRITE_ONCE(nic->up, 0);
	netif_carrier_off(dev);
	netif_tx_disable(dev);
	/* The partner's transmit path reads `up` under RCU. */
	synchronize_net();
	mq_close(nic, mq_vectors(nic));
	return 0;
}

static netdev_features_t mq_fix_features(struct net_device *dev, netdev_features_t f)
{
	netdev_features_t changeable = dev->hw_features;

	if (mq_quirk(netdev_priv(dev), MQ_IGNORE_FEATURES))
		f = (f & ~changeable) | (dev->features & changeable);
	return f;
}

/* Without the feature there are no rules, as with most drivers. */
static int mq_set_features(struct net_device *dev, netdev_features_t f)
{
	struct mqnic *nic = netdev_priv(dev);

	if (!(f & NETIF_F_NTUPLE)) {
		mq_drop_rules(nic);
		mq_drop_filters(nic);
	}
	return 0;
}

static void mq_stats64(struct net_device *dev, struct rtnl_link_stats64 *s)
{
	struct mqnic *nic = netdev_priv(dev);
	int i;

	for (i = 0; i < nic->maxq; i++) {
		struct mq_queue *q = &nic->q[i];

		s->rx_packets += q->rx_packets;
		s->rx_bytes += q->rx_bytes;
		s->tx_packets += q->tx_packets;
		s->tx_bytes += q->tx_bytes;
		s->rx_missed_errors += q->rx_drops;
	}
}

static const struct net_device_ops mq_netdev_ops = {
	.ndo_open = mq_open,
	.ndo_stop = mq_stop,
	.ndo_start_xmit = mq_xmit,
	.ndo_get_stats64 = mq_stats64,
	.ndo_set_features = mq_set_features,
	.ndo_fix_features = mq_fix_features,
#ifdef CONFIG_RFS_ACCEL
	.ndo_rx_flow_steer = mq_flow_steer,
#endif
	.ndo_set_mac_address = eth_mac_addr,
	.ndo_validate_addr = eth_validate_addr,
};

#if SINCE(6, 10)
static void mq_queue_rx(struct net_device *dev, int i, struct netdev_queue_stats_rx *s)
{
	struct mqnic *nic = netdev_priv(dev);

	s->packets = nic->q[i].rx_packets;
	s->bytes = nic->q[i].rx_bytes;
}

static void mq_queue_tx(struct net_device *dev, int i, struct netdev_queue_stats_tx *s)
{
	struct mqnic *nic = netdev_priv(dev);

	s->packets = nic->q[i].tx_packets;
	s->bytes = nic->q[i].tx_bytes;
}

static void mq_queue_base(struct net_device *dev, struct netdev_queue_stats_rx *rx,
			  struct netdev_queue_stats_tx *tx)
{
	rx->packets = 0;
	rx->bytes = 0;
	tx->packets = 0;
	tx->bytes = 0;
}

static const struct netdev_stat_ops mq_stat_ops = {
	.get_queue_stats_rx = mq_queue_rx,
	.get_queue_stats_tx = mq_queue_tx,
	.get_base_stats = mq_queue_base,
};
#endif

static void mq_init_timer(struct hrtimer *t, enum hrtimer_restart (*fn)(struct hrtimer *))
{
#if SINCE(6, 13)
	hrtimer_setup(t, fn, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
#else
	hrtimer_init(t, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	t->function = fn;
#endif
}

static void mq_init_queue(struct mqnic *nic, int i)
{
	struct mq_queue *q = &nic->q[i];
	struct mq_vec *v = &nic->v[i];

	q->nic = nic;
	v->nic = nic;
	skb_queue_head_init(&q->rx);
	mq_init_timer(&q->rx_timer, mq_rx_timer);
	mq_init_timer(&q->tx_timer, mq_tx_timer);
#if SINCE(6, 1)
	netif_napi_add(nic->dev, &v->napi, mq_poll);
#else
	netif_napi_add(nic->dev, &v->napi, mq_poll, NAPI_POLL_WEIGHT);
#endif
}

static void mq_set_mac(struct net_device *dev, int idx)
{
	u8 mac[ETH_ALEN] = { 0x02, 0x6d, 0x71, 0, 0, idx };

#if SINCE(5, 15)
	eth_hw_addr_set(dev, mac);
#else
	ether_addr_copy(dev->dev_addr, mac);
#endif
}

static int mq_index(struct pci_dev *pdev)
{
	int i;

	for (i = 0; i < buses; i++)
		if (bus[i] == pdev->bus->number)
			return mq_devs[i] ? -EBUSY : i;
	if (buses)
		return -ENODEV;
	for (i = 0; i < MQ_DEVS; i++)
		if (!mq_devs[i])
			return i;
	return -ENOSPC;
}

static int mq_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	int i, err, queues, idx = mq_index(pdev);
	struct net_device *dev;
	struct mqnic *nic;

	if (idx < 0)
		return idx;
	queues = min3(pci_msix_vec_count(pdev) - 1, MQ_MAXQ, (int)num_possible_cpus());
	if (queues < 1)
		return -ENODEV;
	err = pci_enable_device(pdev);
	if (err)
		return err;
	pci_set_master(pdev);
	err = -ENOMEM;
	dev = alloc_etherdev_mqs(sizeof(*nic), queues, queues);
	if (!dev)
		goto disable;
	nic = netdev_priv(dev);
	nic->dev = dev;
	nic->pdev = pdev;
	nic->idx = idx;
	nic->managed = idx == managed;
	err = mq_alloc_vectors(nic, queues);
	if (err < 0)
		goto free;
	nic->maxq = err - 1;
	nic->combined = nic->maxq;
	nic->nrx = nic->maxq;
	nic->ntx = nic->maxq;
	nic->rx_ring = MQ_RING;
	nic->tx_ring = MQ_RING;
	SET_NETDEV_DEV(dev, &pdev->dev);
	mq_set_mac(dev, idx);
	nic->rss[0].used = 1;
	netdev_rss_key_fill(nic->rss[0].key, MQ_KEY);
	mq_default_rss(nic);
	mq_default_coalesce(nic);
	for (i = 1; i <= IPV6_FLOW; i++)
		nic->rss[0].fields[i] = RXH_IP_SRC | RXH_IP_DST;
	nic->rss[0].fields[TCP_V4_FLOW] |= RXH_L4_B_0_1 | RXH_L4_B_2_3;
	nic->rss[0].fields[TCP_V6_FLOW] |= RXH_L4_B_0_1 | RXH_L4_B_2_3;
	for (i = 0; i < nic->maxq; i++)
		mq_init_queue(nic, i);
	mq_steer_init(nic);
	dev->netdev_ops = &mq_netdev_ops;
	dev->ethtool_ops = &mq_ethtool_ops;
#if SINCE(6, 10)
	dev->stat_ops = &mq_stat_ops;
#endif
	/* A packet waits in the partner's queue, so pktgen must not send the same buffer twice. */
	dev->priv_flags &= ~IFF_TX_SKB_SHARING;
	dev->max_mtu = 9000;
	dev->hw_features = NETIF_F_SG | NETIF_F_HW_CSUM | NETIF_F_RXCSUM | NETIF_F_RXHASH |
			   NETIF_F_NTUPLE | NETIF_F_TSO;
	dev->features = dev->hw_features & ~NETIF_F_NTUPLE;
	pci_set_drvdata(pdev, nic);
	netif_carrier_off(dev);
	err = mq_init_profiles(dev);
	if (err)
		goto vectors;
	err = netif_set_real_num_tx_queues(dev, nic->ntx);
	if (!err)
		err = netif_set_real_num_rx_queues(dev, nic->nrx);
	if (!err)
		err = register_netdev(dev);
	if (err)
		goto profiles;
	mq_devs[idx] = nic;
	return 0;
profiles:
	mq_free_profiles(dev);
vectors:
	pci_free_irq_vectors(pdev);
free:
	free_netdev(dev);
disable:
	pci_disable_device(pdev);
	return err;
}

static void mq_remove(struct pci_dev *pdev)
{
	struct mqnic *nic = pci_get_drvdata(pdev);

	unregister_netdev(nic->dev);
	mq_devs[nic->idx] = NULL;
	synchronize_net();
	mq_free_profiles(nic->dev);
	pci_free_irq_vectors(pdev);
	free_netdev(nic->dev);
	pci_disable_device(pdev);
}

/* QEMU's nvme. The lab's initramfs leaves the nvme driver out. */
static const struct pci_device_id mq_ids[] = {
	{ PCI_DEVICE(0x1b36, 0x0010) },
	{ }
};
MODULE_DEVICE_TABLE(pci, mq_ids);

static struct pci_driver mq_driver = {
	.name = "mqnic",
	.id_table = mq_ids,
	.probe = mq_probe,
	.remove = mq_remove,
};

static int __init mq_init(void)
{
	return pci_register_driver(&mq_driver);
}

static void __exit mq_exit(void)
{
	pci_unregister_driver(&mq_driver);
	mq_charge_exit();
}

module_init(mq_init);
module_exit(mq_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("multi-queue NIC for tests");
