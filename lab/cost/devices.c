// SPDX-License-Identifier: GPL-2.0
/* The interfaces that are charged: the parameter `devices`. */
#include <linux/kernel.h>
#include <linux/moduleparam.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "labcost.h"

#define LC_NAMES	32

struct lc_names {
	struct rcu_head rcu;
	int n;
	char name[LC_NAMES][IFNAMSIZ];
};

/* Without names every interface is charged. */
static struct lc_names __rcu *lc_names;

bool lc_is_charged(const struct net_device *dev)
{
	const struct lc_names *names;
	bool charged = false;
	int i;

	if (dev->flags & IFF_LOOPBACK)
		return false;
	rcu_read_lock();
	names = rcu_dereference(lc_names);
	for (i = 0; names && i < names->n && !charged; i++)
		charged = !strcmp(names->name[i], dev->name);
	charged |= !names;
	rcu_read_unlock();
	return charged;
}

/* The caller holds the parameter's lock. */
static void lc_replace(struct lc_names *names)
{
	struct lc_names *old = rcu_dereference_protected(lc_names, true);

	rcu_assign_pointer(lc_names, names);
	if (old) {
		synchronize_rcu();
		kfree(old);
	}
}

static int lc_devices_set(const char *value, const struct kernel_param *p)
{
	struct lc_names *names = kzalloc(sizeof(*names), GFP_KERNEL);
	char *copy = kstrdup(value, GFP_KERNEL), *rest = copy, *word;
	int err = -ENOMEM;

	if (!names || !copy)
		goto out;
	err = -EINVAL;
	while ((word = strsep(&rest, ", \n"))) {
		if (!*word)
			continue;
		if (names->n == LC_NAMES || strlen(word) >= IFNAMSIZ)
			goto out;
		strscpy(names->name[names->n++], word, IFNAMSIZ);
	}
	err = 0;
	if (names->n) {
		lc_replace(names);
		names = NULL;
	} else {
		lc_replace(NULL);
	}
out:
	kfree(copy);
	kfree(names);
	return err;
}

static int lc_devices_get(char *out, const struct kernel_param *p)
{
	struct lc_names *names = rcu_dereference_protected(lc_names, true);
	int i, n = 0;

	for (i = 0; names && i < names->n; i++)
		n += scnprintf(out + n, PAGE_SIZE - n, "%s%s", i ? "," : "", names->name[i]);
	return n + scnprintf(out + n, PAGE_SIZE - n, "\n");
}

const struct kernel_param_ops lc_devices_ops = {
	.set = lc_devices_set,
	.get = lc_devices_get,
};

void lc_devices_exit(void)
{
	lc_replace(NULL);
}
