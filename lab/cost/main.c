// SPDX-License-Identifier: GPL-2.0
/* Parameters, the netfilter hook, the device file and the counters. labcost.h describes the module. */
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <linux/netfilter_ipv6.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <net/net_namespace.h>

#include "labcost.h"

unsigned int lc_packet_ns, lc_sibling_percent = 150, lc_far_percent = 130;

static int lc_set_bounded(const char *value, const struct kernel_param *p, unsigned int low, unsigned int high)
{
	unsigned int n;
	int err = kstrtouint(value, 0, &n);

	if (err)
		return err;
	if (n < low || n > high)
		return -EINVAL;
	WRITE_ONCE(*(unsigned int *)p->arg, n);
	return 0;
}

static int lc_set_ns(const char *value, const struct kernel_param *p)
{
	return lc_set_bounded(value, p, 0, LC_MAX);
}

static int lc_set_percent(const char *value, const struct kernel_param *p)
{
	return lc_set_bounded(value, p, 100, LC_MAX_PERCENT);
}

static const struct kernel_param_ops lc_ns_ops = { .set = lc_set_ns, .get = param_get_uint };
static const struct kernel_param_ops lc_percent_ops = { .set = lc_set_percent, .get = param_get_uint };

module_param_cb(packet_ns, &lc_ns_ops, &lc_packet_ns, 0644);
MODULE_PARM_DESC(packet_ns, "nanoseconds that a packet costs in the IP receive path (default: 0, off)");
module_param_cb(sibling_percent, &lc_percent_ops, &lc_sibling_percent, 0644);
MODULE_PARM_DESC(sibling_percent, "cost in percent while the core's other hardware thread is charged (default: 150)");
module_param_cb(far_percent, &lc_percent_ops, &lc_far_percent, 0644);
MODULE_PARM_DESC(far_percent, "cost in percent of a packet whose NIC is on a remote node (default: 130)");
module_param_cb(devices, &lc_devices_ops, NULL, 0644);
MODULE_PARM_DESC(devices, "names of the interfaces that are charged, with commas (default: all but loopback)");

/* Charges a packet before any other hook sees it. */
static unsigned int lc_hook(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	u64 ns = READ_ONCE(lc_packet_ns), segments;

	if (!ns || !lc_is_charged(state->in))
		return NF_ACCEPT;
	segments = max_t(u64, 1, skb_shinfo(skb)->gso_segs);
	/* Counted at the end, so that only completed charges are counted. */
	if (lc_charge_soft(state->in, min_t(u64, ns * segments, LC_MAX_BUFFER))) {
		lc_count(packets, 1);
		lc_count(segments, segments);
	}
	return NF_ACCEPT;
}

static const struct nf_hook_ops lc_hooks[] = {
	{ .hook = lc_hook, .pf = NFPROTO_IPV4, .hooknum = NF_INET_PRE_ROUTING, .priority = NF_IP_PRI_FIRST },
	{ .hook = lc_hook, .pf = NFPROTO_IPV6, .hooknum = NF_INET_PRE_ROUTING, .priority = NF_IP6_PRI_FIRST },
};

static int __net_init lc_net_init(struct net *net)
{
	return nf_register_net_hooks(net, lc_hooks, ARRAY_SIZE(lc_hooks));
}

static void __net_exit lc_net_exit(struct net *net)
{
	nf_unregister_net_hooks(net, lc_hooks, ARRAY_SIZE(lc_hooks));
}

static struct pernet_operations lc_net_ops = {
	.init = lc_net_init,
	.exit = lc_net_exit,
};

/* Charges a packet in a driver's poll. */
void labcost_poll(struct net_device *dev, unsigned int ns)
{
	if (ns && lc_is_charged(dev) && lc_charge_soft(dev, min_t(u64, ns, LC_MAX)))
		lc_count(polled, 1);
}
EXPORT_SYMBOL_GPL(labcost_poll);

/* /dev/labcost: occupies the CPU for the microseconds that are written. */
static ssize_t lc_write(struct file *file, const char __user *from, size_t size, loff_t *at)
{
	unsigned int usecs;
	int err = kstrtouint_from_user(from, size, 10, &usecs);

	if (err)
		return err;
	if (usecs > LC_MAX / NSEC_PER_USEC)
		return -EINVAL;
	err = lc_charge_task((u64)usecs * NSEC_PER_USEC);
	return err ? err : size;
}

static const struct file_operations lc_file = {
	.owner = THIS_MODULE,
	.write = lc_write,
};

static struct miscdevice lc_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "labcost",
	.fops = &lc_file,
	.mode = 0666,
};

/* Reads the milliseconds that are written. */
static int lc_msecs(const char __user *from, size_t size, u64 *ns)
{
	unsigned int msecs;
	int err = kstrtouint_from_user(from, size, 10, &msecs);

	if (err)
		return err;
	if (msecs > LC_MAX_DEAF_MS)
		return -EINVAL;
	*ns = (u64)msecs * NSEC_PER_MSEC;
	return 0;
}

/* A halt would never end. */
static void lc_spin(u64 ns)
{
	u64 end = ktime_get_ns() + ns;

	while (ktime_get_ns() < end)
		cpu_relax();
}

/* /dev/labdeaf: for that time the CPU of the writer serves no interrupt at all, like a CPU whose timer or local APIC is dead. */
static ssize_t lc_deaf_write(struct file *file, const char __user *from, size_t size, loff_t *at)
{
	unsigned long flags;
	u64 ns;
	int err = lc_msecs(from, size, &ns);

	if (err)
		return err;
	local_irq_save(flags);
	lc_spin(ns);
	local_irq_restore(flags);
	return size;
}

/* /dev/labbusy: for that time nothing else runs there, but interrupts are served. */
static ssize_t lc_busy_write(struct file *file, const char __user *from, size_t size, loff_t *at)
{
	u64 ns;
	int err = lc_msecs(from, size, &ns);

	if (err)
		return err;
	preempt_disable();
	lc_spin(ns);
	preempt_enable();
	return size;
}

static const struct file_operations lc_deaf_file = {
	.owner = THIS_MODULE,
	.write = lc_deaf_write,
};

static const struct file_operations lc_busy_file = {
	.owner = THIS_MODULE,
	.write = lc_busy_write,
};

static struct miscdevice lc_deaf_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "labdeaf",
	.fops = &lc_deaf_file,
	.mode = 0600,
};

static struct miscdevice lc_busy_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "labbusy",
	.fops = &lc_busy_file,
	.mode = 0600,
};

/* /proc/labcost: the counters of each CPU since the last write to this file. */
static struct lc_counts *lc_base;
static u64 lc_since;
static DEFINE_MUTEX(lc_base_lock);

static int lc_show(struct seq_file *s, void *v)
{
	int cpu;

	mutex_lock(&lc_base_lock);
	seq_printf(s, "elapsed_ns %llu\n", ktime_get_ns() - lc_since);
	seq_puts(s, "cpu packets segments polled writes sibling far ns\n");
	for_each_possible_cpu(cpu) {
		const struct lc_counts *now = &per_cpu_ptr(&lc_cpus, cpu)->counts, *base = &lc_base[cpu];

		seq_printf(s, "%d %llu %llu %llu %llu %llu %llu %llu\n", cpu, READ_ONCE(now->packets) - base->packets,
			   READ_ONCE(now->segments) - base->segments, READ_ONCE(now->polled) - base->polled,
			   READ_ONCE(now->writes) - base->writes, READ_ONCE(now->sibling) - base->sibling,
			   READ_ONCE(now->far) - base->far, READ_ONCE(now->ns) - base->ns);
	}
	mutex_unlock(&lc_base_lock);
	return 0;
}

/* The counters belong to their CPUs, so a reset only changes the values that are subtracted. */
static void lc_reset(void)
{
	int cpu;

	mutex_lock(&lc_base_lock);
	for_each_possible_cpu(cpu)
		lc_base[cpu] = per_cpu_ptr(&lc_cpus, cpu)->counts;
	lc_since = ktime_get_ns();
	mutex_unlock(&lc_base_lock);
}

static int lc_open(struct inode *inode, struct file *file)
{
	return single_open(file, lc_show, NULL);
}

static ssize_t lc_reset_write(struct file *file, const char __user *from, size_t size, loff_t *at)
{
	lc_reset();
	return size;
}

static const struct proc_ops lc_proc = {
	.proc_open = lc_open,
	.proc_read = seq_read,
	.proc_write = lc_reset_write,
	.proc_lseek = seq_lseek,
	.proc_release = single_release,
};

static int __init lc_init(void)
{
	int err;

	/* A timer that waits for the next tick would charge up to 4 ms instead of the requested time. */
	if (hrtimer_resolution != 1) {
		pr_err("labcost: the kernel's timers have no high resolution (booted with highres=off?)\n");
		return -EOPNOTSUPP;
	}
	lc_base = kcalloc(nr_cpu_ids, sizeof(*lc_base), GFP_KERNEL);
	if (!lc_base)
		return -ENOMEM;
	lc_reset();
	err = lc_charge_init();
	if (err)
		goto base;
	err = register_pernet_subsys(&lc_net_ops);
	if (err)
		goto charge;
	err = misc_register(&lc_device);
	if (err)
		goto net;
	err = misc_register(&lc_deaf_device);
	if (err)
		goto device;
	err = misc_register(&lc_busy_device);
	if (err)
		goto deaf;
	err = -ENOMEM;
	if (!proc_create("labcost", 0644, NULL, &lc_proc))
		goto busy;
	return 0;
busy:
	misc_deregister(&lc_busy_device);
deaf:
	misc_deregister(&lc_deaf_device);
device:
	misc_deregister(&lc_device);
net:
	unregister_pernet_subsys(&lc_net_ops);
charge:
	lc_charge_exit();
base:
	lc_devices_exit();
	kfree(lc_base);
	return err;
}

static void __exit lc_exit(void)
{
	remove_proc_entry("labcost", NULL);
	misc_deregister(&lc_busy_device);
	misc_deregister(&lc_deaf_device);
	misc_deregister(&lc_device);
	unregister_pernet_subsys(&lc_net_ops);
	lc_charge_exit();
	lc_devices_exit();
	kfree(lc_base);
}

module_init(lc_init);
module_exit(lc_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("fixed cost of packets and of programs, for comparing layouts in the lab");
