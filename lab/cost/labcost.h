/* SPDX-License-Identifier: GPL-2.0 */
/*
 * labcost - makes CPUs comparable in a guest with more CPUs than its host has.
 *
 * Each packet costs a fixed wall-clock time on the CPU that runs its IP receive path. The CPU spends this time halted, so
 * that it costs the host nothing. Softirqs, NAPI, RPS, ksoftirqd and drops are the kernel's own; only the cost is a model.
 */
#ifndef LABCOST_H
#define LABCOST_H

#include <linux/hrtimer.h>
#include <linux/netdevice.h>
#include <linux/percpu.h>
#include <linux/types.h>
#include <linux/version.h>

#define SINCE(a, b)	(LINUX_VERSION_CODE >= KERNEL_VERSION(a, b, 0))

/* The highest cost of a packet and the longest occupation, before their factors, in nanoseconds. */
#define LC_MAX		(100 * NSEC_PER_MSEC)
/* The highest cost of a buffer of many segments: a poll of 64 of them stays below what the kernel reports as a lockup. */
#define LC_MAX_BUFFER	(250 * NSEC_PER_MSEC)
/* The time that a CPU may catch up after the host has kept it waiting. */
#define LC_MAX_LAG	(200 * NSEC_PER_MSEC)
/* Less than the 15 s after which a guest with a dead CPU is lost, and than every watchdog of the kernel for CPUs. */
#define LC_MAX_DEAF_MS	12000
#define LC_MAX_PERCENT	1000

/* The charges of a CPU since the module was loaded. */
struct lc_counts {
	u64 packets;	/* buffers charged in the IP receive path */
	u64 segments;	/* the same, counting the segments of buffers that GRO or TSO joined */
	u64 polled;	/* packets charged in a driver's poll */
	u64 writes;	/* charges through the device file */
	u64 sibling;	/* charges with the factor of a busy hardware thread */
	u64 far;	/* charges with the factor of a remote node */
	u64 ns;		/* the time charged */
};

/* Softirqs may interrupt a program that occupies its CPU, so each level has a timer of its own. */
struct lc_level {
	struct hrtimer timer;
	bool charging;
	u64 want_end;	/* when the last charge should have ended */
	u64 real_end;	/* when it did end */
};

struct lc_cpu {
	struct lc_level soft, task;
	/* The CPU has had no idle time and no occupying program since the last charge of the soft level. */
	bool busy;
	/* The CPU has had no idle time since the last charge of the task level. */
	bool task_busy;
	u64 soft_time;	/* the time spent in charges of the soft level */
	u64 task_soft;	/* `soft_time` when the last charge of the task level ended */
	struct lc_counts counts;
};

DECLARE_PER_CPU(struct lc_cpu, lc_cpus);

#define lc_count(member, n)	this_cpu_add(lc_cpus.counts.member, n)

/* main.c */
extern unsigned int lc_packet_ns, lc_sibling_percent, lc_far_percent;

/* charge.c */
int lc_charge_init(void);
void lc_charge_exit(void);
bool lc_charge_soft(struct net_device *dev, u64 ns);
int lc_charge_task(u64 ns);

/* devices.c */
extern const struct kernel_param_ops lc_devices_ops;
bool lc_is_charged(const struct net_device *dev);
void lc_devices_exit(void);

/* For drivers of the lab, in their poll; see mqnic. */
void labcost_poll(struct net_device *dev, unsigned int ns);

#endif
