/* heartbeat FILE: a sign of life from every CPU of the guest.
 *
 * A thread is pinned to each CPU, sleeps half a second, and counts. A thread that wakes writes all counts to FILE, in one
 * line, at most twice a second: a number for each CPU, `-` for an offline CPU. A CPU whose timer or local APIC is
 * dead does not wake its thread, so its number stops while the others grow (xtask/src/heartbeat.rs reads it).
 *
 * The threads have real-time priority: a busy CPU counts, a dead one does not.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_CPUS 1024
#define PERIOD_NS 500000000L

static volatile long counts[MAX_CPUS]; /* -1: offline */
static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;
static long written_ns;
static int cpus, file;

static long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void write_counts(void)
{
	static char line[MAX_CPUS * 12];
	int n = 0;

	for (int c = 0; c < cpus; c++) {
		long v = counts[c];

		if (v < 0)
			n += sprintf(line + n, "- ");
		else
			n += sprintf(line + n, "%ld ", v);
	}
	line[n++] = '\n';
	/* The numbers only grow: an older, longer line is never left behind, except when a CPU goes offline. */
	if (pwrite(file, line, n, 0) != n || ftruncate(file, n) != 0)
		fprintf(stderr, "heartbeat: %s\n", strerror(errno));
}

static void *beat(void *arg)
{
	int cpu = (int)(long)arg;
	long life = 0;

	for (;;) {
		struct timespec half = { 0, PERIOD_NS };
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET(cpu, &set);
		/* This fails while the CPU is offline; a CPU that comes back gets its thread back. */
		if (sched_setaffinity(0, sizeof(set), &set) == 0 && sched_getcpu() == cpu)
			counts[cpu] = ++life;
		else
			counts[cpu] = -1;
		if (pthread_mutex_trylock(&writing) == 0) {
			if (now_ns() - written_ns >= PERIOD_NS * 9 / 10) {
				written_ns = now_ns();
				write_counts();
			}
			pthread_mutex_unlock(&writing);
		}
		nanosleep(&half, NULL);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct sched_param first = { .sched_priority = 50 };
	pthread_attr_t attr;

	if (argc != 2) {
		fprintf(stderr, "usage: heartbeat FILE\n");
		return 2;
	}
	file = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (file < 0) {
		fprintf(stderr, "heartbeat: %s: %s\n", argv[1], strerror(errno));
		return 1;
	}
	cpus = (int)sysconf(_SC_NPROCESSORS_CONF);
	if (cpus > MAX_CPUS)
		cpus = MAX_CPUS;
	if (sched_setscheduler(0, SCHED_FIFO, &first) != 0)
		fprintf(stderr, "heartbeat: no real-time priority: %s\n", strerror(errno));
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 * 1024);
	for (long c = 0; c < cpus; c++) {
		pthread_t thread;

		if (pthread_create(&thread, &attr, beat, (void *)c) != 0) {
			fprintf(stderr, "heartbeat: CPU %ld: no thread\n", c);
			return 1;
		}
	}
	for (;;)
		pause();
}
