// SPDX-License-Identifier: GPL-2.0
/* The duration of a charge, and how a CPU spends this time. */
#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/topology.h>
#include <linux/tracepoint.h>
#include <trace/events/power.h>

#include "labcost.h"

#ifdef CONFIG_PREEMPT_RT
#error "a charge relies on softirqs that cannot be preempted"
#endif

DEFINE_PER_CPU(struct lc_cpu, lc_cpus);

/* Only its interrupt is needed: it ends the halt. */
static enum hrtimer_restart lc_wake(struct hrtimer *t)
{
	return HRTIMER_NORESTART;
}

/*
 * Halts the CPU until `end`, or, if allowed, until its task must yield to another one. Earlier interrupts are
 * served, and the CPU halts again. Interrupts are only enabled together with the halt, so none can come in between.
 * Kernels export no common function for this.
 */
static void lc_halt_until(struct lc_level *level, u64 end, bool may_yield)
{
	hrtimer_start(&level->timer, ns_to_ktime(end), HRTIMER_MODE_ABS_PINNED_HARD);
	for (;;) {
		local_irq_disable();
		if (ktime_get_ns() >= end || (may_yield && need_resched()))
			break;
		asm volatile("sti; hlt" ::: "memory");
	}
	local_irq_enable();
}

static bool lc_was_charged(const struct lc_level *level, u64 now)
{
	return (s64)(now - READ_ONCE(level->real_end)) <= (s64)LC_MAX_LAG;
}

/* Whether a CPU is being charged, or is between two charges: it was not idle since the last one. */
static bool lc_is_busy(int cpu, u64 now)
{
	const struct lc_cpu *c = per_cpu_ptr(&lc_cpus, cpu);

	return READ_ONCE(c->soft.charging) || READ_ONCE(c->task.charging) ||
	       (READ_ONCE(c->busy) && lc_was_charged(&c->soft, now)) ||
	       (READ_ONCE(c->task_busy) && lc_was_charged(&c->task, now));
}

static bool lc_sibling_is_busy(u64 now)
{
	int cpu, self = smp_processor_id();

	for_each_cpu(cpu, topology_sibling_cpumask(self))
		if (cpu != self && lc_is_busy(cpu, now))
			return true;
	return false;
}

/* The time with its factors; also counts the charge. */
static u64 lc_time(struct net_device *dev, u64 now, u64 ns)
{
	int node = dev ? dev_to_node(&dev->dev) : NUMA_NO_NODE;

	if (lc_sibling_is_busy(now)) {
		ns = ns * READ_ONCE(lc_sibling_percent) / 100;
		lc_count(sibling, 1);
	}
	if (node != NUMA_NO_NODE && node != numa_node_id()) {
		ns = ns * READ_ONCE(lc_far_percent) / 100;
		lc_count(far, 1);
	}
	lc_count(ns, ns);
	return ns;
}

/* The lateness of the last charge of this level, because timers of an emulated machine are late. It is not charged again. */
static u64 lc_debt(const struct lc_level *level, u64 now)
{
	if (now - level->real_end > LC_MAX_LAG)
		return 0;
	return min_t(u64, level->real_end - level->want_end, LC_MAX_LAG);
}

/*
 * The time at which a charge begins. If the CPU was not idle since the last one, the kernel's work in the meantime is not charged
 * again, because it is part of the cost. If a process runs there, the time may have been the process's own.
 */
static u64 lc_soft_begin(const struct lc_cpu *c, u64 now, u64 ns)
{
	const struct lc_level *level = &c->soft;
	u64 gap = current->mm ? ns / 4 : LC_MAX_LAG;

	if (c->busy && !c->task.charging && now - level->real_end <= gap)
		return max(level->want_end, now - LC_MAX_LAG);
	return now - lc_debt(level, now);
}

/* Charges this CPU, in a softirq or with softirqs disabled. False if it cannot halt there (netpoll). */
bool lc_charge_soft(struct net_device *dev, u64 ns)
{
	struct lc_cpu *c = this_cpu_ptr(&lc_cpus);
	u64 now = ktime_get_ns(), begin, end;

	if (irqs_disabled() || WARN_ON_ONCE(c->soft.charging))
		return false;
	begin = lc_soft_begin(c, now, ns);
	end = begin + lc_time(dev, now, ns);
	WRITE_ONCE(c->soft.charging, true);
	if (end > now)
		lc_halt_until(&c->soft, end, false);
	c->soft.want_end = end;
	WRITE_ONCE(c->soft.real_end, max(ktime_get_ns(), end));
	c->soft_time += c->soft.real_end - now;
	WRITE_ONCE(c->busy, true);
	WRITE_ONCE(c->soft.charging, false);
	return true;
}

/* The time at which a program's charge begins or continues. As above, without the softirqs that were charged in between. */
static u64 lc_task_begin(const struct lc_cpu *c, u64 now, u64 ns)
{
	const struct lc_level *level = &c->task;
	u64 soft = c->soft_time - c->task_soft;

	if (c->task_busy && now - level->real_end - soft <= ns / 4)
		return max(level->want_end + soft, now - LC_MAX_LAG);
	return now - lc_debt(level, now);
}

/*
 * Charges the CPU on which the task runs; another one if the scheduler moves the task. Preemption is off during the charge.
 * The task yields when the scheduler requests it, as a program would, and continues afterwards. Time in which softirqs are
 * charged here does not count.
 */
int lc_charge_task(u64 ns)
{
	u64 total = 0, used, now, begin, soft;
	struct lc_cpu *c;

	for (;;) {
		if (fatal_signal_pending(current))
			return -EINTR;
		preempt_disable();
		c = this_cpu_ptr(&lc_cpus);
		now = ktime_get_ns();
		begin = lc_task_begin(c, now, total ?: ns);
		if (!total) {
			ns = lc_time(NULL, now, ns);
			total = ns;
			lc_count(writes, 1);
		}
		soft = c->soft_time;
		WRITE_ONCE(c->task.charging, true);
		do {
			lc_halt_until(&c->task, begin + ns + READ_ONCE(c->soft_time) - soft, true);
			now = ktime_get_ns();
			/* A softirq at the very end may have moved it. */
			used = now - begin - (READ_ONCE(c->soft_time) - soft);
		} while (used < ns && !need_resched());
		hrtimer_cancel(&c->task.timer);
		WRITE_ONCE(c->task.real_end, now);
		c->task.want_end = now - (used > ns ? used - ns : 0);
		c->task_soft = c->soft_time;
		WRITE_ONCE(c->task_busy, true);
		/* The next charge begins a new run of charges. */
		WRITE_ONCE(c->busy, false);
		WRITE_ONCE(c->task.charging, false);
		preempt_enable();
		if (need_resched())
			schedule();
		if (used >= ns)
			return 0;
		ns -= used;
	}
}

static void lc_idle(void *data, unsigned int state, unsigned int cpu)
{
	if (state != PWR_EVENT_EXIT) {
		this_cpu_write(lc_cpus.busy, false);
		this_cpu_write(lc_cpus.task_busy, false);
	}
}

static void lc_timer_init(struct hrtimer *t)
{
#if SINCE(6, 13)
	hrtimer_setup(t, lc_wake, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_HARD);
#else
	hrtimer_init(t, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_HARD);
	t->function = lc_wake;
#endif
}

int lc_charge_init(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		lc_timer_init(&per_cpu_ptr(&lc_cpus, cpu)->soft.timer);
		lc_timer_init(&per_cpu_ptr(&lc_cpus, cpu)->task.timer);
	}
	return register_trace_cpu_idle(lc_idle, NULL);
}

void lc_charge_exit(void)
{
	int cpu;

	unregister_trace_cpu_idle(lc_idle, NULL);
	tracepoint_synchronize_unregister();
	for_each_possible_cpu(cpu) {
		hrtimer_cancel(&per_cpu_ptr(&lc_cpus, cpu)->soft.timer);
		hrtimer_cancel(&per_cpu_ptr(&lc_cpus, cpu)->task.timer);
	}
}
