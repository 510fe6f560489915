// SPDX-License-Identifier: GPL-2.0
/* The CPU cost of the driver's poll when the lab's cost model is loaded: the parameter `poll_ns`. */
#include <linux/module.h>
#include <linux/rcupdate.h>

#include "mqnic.h"

#define MQ_POLL_NS_MAX	(100 * NSEC_PER_MSEC)

static unsigned int poll_ns;
static typeof(labcost_poll) __rcu *charge;

void mq_charge(struct net_device *dev)
{
	typeof(labcost_poll) *f;

	if (!READ_ONCE(poll_ns))
		return;
	rcu_read_lock();
	f = rcu_dereference(charge);
	if (f)
		f(dev, READ_ONCE(poll_ns));
	rcu_read_unlock();
}

/* A reference to the model is held while the cost is not 0. The caller holds the parameter's lock. */
static int mq_set_poll_ns(const char *value, const struct kernel_param *p)
{
	unsigned int n;
	int err = kstrtouint(value, 0, &n);

	if (err)
		return err;
	if (n > MQ_POLL_NS_MAX)
		return -EINVAL;
	if (n && !poll_ns) {
		typeof(labcost_poll) *f = symbol_get(labcost_poll);

		if (!f)
			return -ENOENT;
		rcu_assign_pointer(charge, f);
	}
	if (!n && poll_ns) {
		WRITE_ONCE(poll_ns, 0);
		RCU_INIT_POINTER(charge, NULL);
		synchronize_rcu();
		symbol_put(labcost_poll);
	}
	WRITE_ONCE(poll_ns, n);
	return 0;
}

static int mq_get_poll_ns(char *out, const struct kernel_param *p)
{
	return sprintf(out, "%u\n", poll_ns);
}

const struct kernel_param_ops mq_poll_ns_ops = { .set = mq_set_poll_ns, .get = mq_get_poll_ns };

void mq_charge_exit(void)
{
	if (poll_ns)
		symbol_put(labcost_poll);
}
